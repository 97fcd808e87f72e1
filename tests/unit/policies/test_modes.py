import numpy as np
import pytest

from policies.modes import Mode, choose_in_mode
from policies.rules import Rules, RulesPolicy
from tests.contract.policy_contract import request

RULES = RulesPolicy(Rules(default="hybrid_convex"))
LEARNED = RulesPolicy(Rules(default="keyword"))


@pytest.mark.parametrize(
    ("mode", "plan"),
    [(Mode.APPLY, "keyword"), (Mode.OBSERVE, "hybrid_convex"), (Mode.BYPASS, "hybrid_convex")],
)
def test_who_acts_in_which_mode(mode, plan):
    (decision,) = choose_in_mode(mode, RULES, LEARNED, [request()], np.random.default_rng(0))
    assert (plan, mode) == (decision.plan, decision.mode)


def test_observing_logs_what_would_have_been_chosen():
    (decision,) = choose_in_mode(
        Mode.OBSERVE, RULES, LEARNED, [request()], np.random.default_rng(0)
    )
    assert ("keyword", 1.0, LEARNED.version) == tuple(
        decision.details[f"observed.{name}"] for name in ("plan", "propensity", "version")
    )
