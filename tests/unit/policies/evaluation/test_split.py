from policies.evaluation.split import split_of

IDS = [f"q{i}" for i in range(4000)]


def test_the_share_is_kept():
    share = sum(split_of(i, test_share=0.3) == "test" for i in IDS) / len(IDS)
    assert abs(share - 0.3) < 0.03


def test_a_query_stays_where_it_is():
    assert [split_of(i) for i in IDS] == [split_of(i) for i in IDS]
    assert split_of("q1", salt="stard-zh") == split_of("q1", salt="stard-zh")


def test_a_larger_test_share_only_adds():
    small = {i for i in IDS if split_of(i, test_share=0.2) == "test"}
    large = {i for i in IDS if split_of(i, test_share=0.5) == "test"}
    assert small < large


def test_another_salt_is_another_split():
    moved = sum(split_of(i, salt="a") != split_of(i, salt="b") for i in IDS) / len(IDS)
    assert abs(moved - 0.5) < 0.05


def test_the_ends_hold():
    assert {split_of(i, test_share=0) for i in IDS} == {"dev"}
    assert {split_of(i, test_share=1) for i in IDS} == {"test"}
