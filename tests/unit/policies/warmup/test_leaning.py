import pytest

from policies.plan import load_plans
from policies.warmup.leaning import keyword_share, leaning_more, weighing_siblings

PLANS = load_plans()


@pytest.mark.parametrize(
    ("plan", "share"),
    [
        ("keyword", 1.0),
        ("keyword_filtered", 1.0),
        ("hybrid_lexical", 0.7),
        ("hybrid_rrf", 0.5),
        ("hybrid_convex", 0.3),
        ("compared", 0.3),
        ("dense", 0.0),
    ],
)
def test_the_share_is_that_of_the_fusion(plan, share):
    assert share == pytest.approx(keyword_share(PLANS[plan]))


def test_what_leans_no_more_than_the_incumbent_may_be_compared():
    more = leaning_more(PLANS, "hybrid_filtered")
    assert {"keyword", "keyword_filtered", "hybrid_lexical", "hybrid_rrf"} == set(more)
    assert () == leaning_more(PLANS, "keyword")
    assert () == leaning_more(PLANS, "of another service")


def test_what_siblings_are_worth_is_not_to_be_compared():
    assert {"focused", "spread"} == set(weighing_siblings(PLANS))
