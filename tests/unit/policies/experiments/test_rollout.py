import numpy as np
import pytest

from policies.experiments.assignment import Split
from policies.experiments.observation import Observation, views
from policies.experiments.rollout import Guardrails, RolloutSettings, Verdict, look
from policies.types import Intent

UNITS = [f"session-{i}" for i in range(5000)]


def test_a_unit_always_gets_the_same_arm():
    split = Split(experiment="trees", share=0.5)
    assert [split.arm(u) for u in UNITS] == [split.arm(u) for u in UNITS]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_the_share_is_kept(share):
    treated = np.mean([Split(experiment="x", share=share).arm(u) == "treatment" for u in UNITS])
    assert treated == pytest.approx(share, abs=0.02)


def test_raising_the_share_moves_nobody_out():
    small, large = (
        {u for u in UNITS if Split(experiment="x", share=share).arm(u) == "treatment"}
        for share in (0.1, 0.5)
    )
    assert small < large


def test_another_experiment_spreads_the_treated():
    first = [u for u in UNITS if Split(experiment="one", share=0.5).arm(u) == "treatment"]
    again = np.mean([Split(experiment="two", share=0.5).arm(u) == "treatment" for u in first])
    assert again == pytest.approx(0.5, abs=0.03)


def observed(split, seed=0, units=UNITS, lift=0.0, more_ms=0.0, more_failed=0.0, more_missing=0.0):
    rng = np.random.default_rng(seed)
    for unit in units:
        treated = split.arm(unit) == "treatment"
        for _ in range(int(rng.integers(1, 4))):
            yield Observation(
                unit=unit,
                arm=split.arm(unit),
                intent=Intent.FACT if rng.random() < 0.7 else Intent.HOW_TO,
                total_ms=float(rng.gamma(4, 20)) + more_ms * treated,
                failed=bool(rng.random() < 0.01 + more_failed * treated),
                missing=bool(rng.random() < 0.05 + more_missing * treated),
                reward=float(rng.random() < 0.6 + lift * treated) if rng.random() < 0.8 else None,
            )


def judged(stage=0, settings=None, units=UNITS, share=None, **changed):
    settings = settings or RolloutSettings()
    split = Split(experiment="x", share=settings.stages[stage] if share is None else share)
    arms = views(observed(split, units=units, **changed))
    return look(arms["control"], arms["treatment"], stage, settings)


def test_a_better_policy_advances_stage_by_stage():
    first, second = (judged(stage, lift=0.1) for stage in (0, 1))
    assert (Verdict.ADVANCE, 0.5) == (first.verdict, first.share)
    assert (Verdict.ADVANCE, 1.0) == (second.verdict, second.share)


def test_the_last_stage_finishes():
    settings = RolloutSettings(stages=(0.5,))
    report = judged(settings=settings, lift=0.1)
    assert (Verdict.FINISH, 1.0) == (report.verdict, report.share)


def test_a_worse_policy_is_stopped():
    report = judged(1, lift=-0.1)
    assert (Verdict.STOP, 0.0) == (report.verdict, report.share)
    assert "reward is lower" in report.reason


def test_too_few_units_wait():
    report = judged(units=UNITS[:600], lift=0.1)
    assert (Verdict.WAIT, 0.1) == (report.verdict, report.share)
    assert "units with a reward" in report.reason


def test_a_loss_that_cannot_be_ruled_out_waits():
    report = judged(1, units=UNITS[:800])
    assert Verdict.WAIT == report.verdict
    assert "cannot be ruled out" in report.reason


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        ({"more_ms": 120.0}, "p95"),
        ({"more_failed": 0.05}, "failed share"),
        ({"more_missing": 0.1}, "missing share"),
    ],
)
def test_guardrails_stop_whatever_is_earned(harm, reason):
    report = judged(1, lift=0.1, **harm)
    assert Verdict.STOP == report.verdict
    assert reason in report.reason


def alike(seed, units=400, requests=6, looks=10):
    """Looks at an A/A experiment on the way; requests of one session fare alike."""
    rng = np.random.default_rng(seed)
    split, seen = Split(experiment=f"a{seed}", share=0.5), []
    for i in range(units):
        slow, failing, missing = rng.random(3) < (0.08, 0.1, 0.12)
        seen += [
            Observation(
                f"{i}",
                split.arm(f"{i}"),
                Intent.FACT,
                float(rng.gamma(4, 20)) * (1 + 9 * slow),
                failed=bool(failing),
                missing=bool(missing),
            )
            for _ in range(requests)
        ]
        if (i + 1) % (units // looks) == 0:
            arms = views(seen)
            yield look(arms["control"], arms["treatment"], 0, RolloutSettings(stages=(0.5,)))


def test_sessions_that_fare_badly_in_both_arms_break_no_guardrail():
    stopped = [
        [r.reason for r in alike(seed) if r.verdict is Verdict.STOP][:1] for seed in range(25)
    ]
    assert [[]] * 25 == stopped


@pytest.mark.parametrize("harm", ["failed", "missing"])
def test_a_treatment_that_never_works_is_stopped_after_fifty_units(harm):
    def seen(units):
        plain = {"intent": Intent.FACT, "total_ms": 9.0, "failed": False, "missing": False}
        for i in range(2 * units):
            arm = ("control", "treatment")[i % 2]
            yield Observation(f"{i}", arm, **plain | {harm: arm == "treatment"})

    def verdict(units):
        arms = views(seen(units))
        return look(arms["control"], arms["treatment"], 1, RolloutSettings()).verdict

    assert (Verdict.WAIT, Verdict.STOP) == (verdict(49), verdict(50))


def test_guardrails_kept_by_an_earlier_release_can_be_read():
    assert 100 == Guardrails.model_validate({"min_requests": 100}).min_units


def test_a_wrong_split_stops_first():
    report = judged(1, share=0.45, lift=0.1)
    assert Verdict.STOP == report.verdict
    assert "split is wrong" in report.reason


def test_says_what_happened_per_intent():
    report = judged(1, lift=0.1)
    assert report.by_intent[Intent.FACT].low > 0
    assert report.by_intent[Intent.SUMMARY].p_value == 1.0
    assert report.welch.low > 0


def test_requests_of_one_unit_count_once():
    split = Split(experiment="x", share=0.5)
    unit = next(u for u in UNITS if split.arm(u) == "treatment")
    one = Observation(unit, "treatment", Intent.FACT, 5.0, failed=False, missing=False, reward=1.0)
    arms = views([one] * 500)
    assert (500, 1, 1) == (
        arms["treatment"].num_requests,
        arms["treatment"].num_units,
        arms["treatment"].reward.count,
    )


def test_equal_policies_are_seldom_stopped():
    stopped = [
        judged(1, units=UNITS[:1000], seed=seed).verdict is Verdict.STOP for seed in range(40)
    ]
    assert np.mean(stopped) <= 0.08
