import numpy as np

from policies.learned.vectoriser import Vectoriser
from tests.contract.policy_contract import request


def test_columns_and_values_line_up():
    vectoriser = Vectoriser()
    (row,) = vectoriser.transform([request(dates=("2023", "2024"), language="zh")])
    named = dict(zip(vectoriser.columns, row, strict=True))
    assert (1, 0, 1, 1) == (
        named["language=zh"],
        named["language=en"],
        named["question=what"],
        named["any_dates"],
    )
    assert np.log(3) == named["log_dates"]


def test_learns_collections_and_live_numbers_that_are_frequent():
    requests = [request(collection="a", signals={"probe.gap": 1.0})] * 60
    requests += [request(collection="b")] * 39 + [request(collection="rare", signals={"odd": 1})]
    vectoriser = Vectoriser.fit(requests, min_share=0.05)
    assert ("a", "b") == vectoriser.collections
    assert ("probe.gap",) == vectoriser.live


def test_scaled_columns_are_about_zero_with_spread_one():
    rng = np.random.default_rng(0)
    requests = [request(num_chars=int(n), signals={"p": n}) for n in rng.integers(1, 500, 400)]
    x = Vectoriser.fit(requests).transform(requests)
    column = Vectoriser.fit(requests).columns.index("p")
    assert abs(x.mean(axis=0)).max() < 1e-9
    np.testing.assert_allclose(x[:, column].std(), 1)


def test_a_live_number_that_is_not_there_counts_as_its_mean():
    vectoriser = Vectoriser.fit([request(signals={"p": v}) for v in (1.0, 3.0)])
    x = vectoriser.transform([request(), request(signals={"p": 2.0})])
    np.testing.assert_array_equal(x[0], x[1])


def test_an_extreme_request_is_clipped():
    requests = [request(signals={"p": v}) for v in (0.9, 1.0, 1.1)]
    x = Vectoriser.fit(requests).transform([request(signals={"p": 1e9})])
    assert abs(x).max() <= 6


def test_survives_json():
    vectoriser = Vectoriser.fit([request(collection="a", signals={"p": 1.0})] * 3)
    assert vectoriser == Vectoriser.model_validate_json(vectoriser.model_dump_json())


def test_no_requests_no_rows():
    assert (0, len(Vectoriser().columns)) == Vectoriser().transform([]).shape
