from datetime import timedelta

import numpy as np
import pytest

from policies.experience.record import Experience, RankedPassage, SignalKind
from policies.rewards.reward import rewards
from policies.rewards.settings import RewardSettings
from tests.unit.policies.experience.records import START, record, thumb

NOW = START + timedelta(days=1)


def experience(*signals, **changed):
    return Experience(record(**changed), signals)


def signal(kind, value=1.0, signal_id="s", user="u", **changed):
    return thumb(signal_id, kind=kind, value=value, user_digest=user, **changed)


def rewarded(*signals, settings=None, **changed):
    found = rewards([experience(*signals, **changed)], NOW, settings)
    return found[0] if found else None


def test_a_thumb_by_hand():
    found = rewarded(signal(SignalKind.THUMB))
    assert ((1 + 0.25 * 0.5) / 1.25, 1 / 1.25) == (found.reward, found.weight)


def test_silence_is_no_reward():
    assert rewarded() is None


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (signal(SignalKind.THUMB, 1), signal(SignalKind.THUMB, 0)),
        (signal(SignalKind.RATING, 5), signal(SignalKind.RATING, 2)),
        (signal(SignalKind.COPY), signal(SignalKind.REFORMULATION)),
        (signal(SignalKind.FOLLOW_UP), signal(SignalKind.REFORMULATION)),
        (signal(SignalKind.LEAVE, 40), signal(SignalKind.LEAVE, 2)),
        (signal(SignalKind.VERDICT, 0.9), signal(SignalKind.VERDICT, 0.4)),
        (signal(SignalKind.THUMB), signal(SignalKind.COPY)),
    ],
)
def test_orders_signals(better, worse):
    assert rewarded(better).reward > rewarded(worse).reward


def test_what_is_said_outright_outweighs_what_is_implied():
    found = rewarded(signal(SignalKind.THUMB, 0, "a"), signal(SignalKind.COPY, 1, "b"))
    assert found.reward < 0.4


def test_every_reward_is_a_share():
    for kind in SignalKind:
        for value in (-100.0, 0.0, 0.5, 1.0, 1e9):
            found = rewarded(signal(kind, value))
            assert 0 <= found.reward <= 1
            assert 0 < found.weight < 1


def test_a_copy_from_the_top_is_worth_more_than_one_from_below():
    passages = tuple(RankedPassage(f"p{i}", f"d{i}", 1.0) for i in range(10))
    top, deep = (
        rewarded(signal(SignalKind.COPY, passage_id=name), passages=passages)
        for name in ("p0", "p9")
    )
    assert top.reward > 0.5 > deep.reward
    assert deep.weight > top.weight


def test_the_rank_counts_no_more_than_the_cap():
    passages = tuple(RankedPassage(f"p{i}", f"d{i}", 1.0) for i in range(1000))
    found = rewarded(signal(SignalKind.COPY, passage_id="p999"), passages=passages)
    assert 1.6 / 1.85 == pytest.approx(found.weight)


def test_people_change_their_minds():
    early = signal(SignalKind.THUMB, 0, "a", minutes=1)
    late = signal(SignalKind.THUMB, 1, "b", minutes=5)
    assert rewarded(late) == rewarded(early, late) == rewarded(late, early)


def test_two_people_are_two_voices():
    one = signal(SignalKind.THUMB, 1, "a", user="u1")
    other = signal(SignalKind.THUMB, 0, "b", user="u2")
    found = rewarded(one, other)
    assert found.reward == pytest.approx(0.5)
    assert found.weight > rewarded(one).weight


def test_one_user_cannot_outvote_the_others():
    loud = [
        experience(signal(SignalKind.THUMB, 0, f"s{i}", user="loud"), request_id=f"r{i}")
        for i in range(200)
    ]
    quiet = [experience(signal(SignalKind.THUMB, 1, "q", user="quiet"), request_id="q")]
    found = {r.record.request_id: r for r in rewards(loud + quiet, NOW)}
    assert 0.1 / 0.35 == pytest.approx(found["r7"].weight)
    assert 1 / 1.25 == found["q"].weight


def test_nobodys_signals_count_half():
    assert 0.5 / 0.75 == pytest.approx(rewarded(signal(SignalKind.THUMB, user="")).weight)


def test_late_signals_are_left_out_and_signals_in_time_are_not():
    a_week = 7 * 24 * 60
    assert rewarded(signal(SignalKind.THUMB, minutes=a_week + 1)) is None
    assert rewarded(signal(SignalKind.THUMB, minutes=a_week)) is not None


def test_a_request_must_have_settled():
    young = experience(signal(SignalKind.THUMB), at=NOW - timedelta(seconds=599))
    old = experience(signal(SignalKind.THUMB), at=NOW - timedelta(seconds=600))
    assert [] == rewards([young], NOW)
    assert 1 == len(rewards([old], NOW))


def test_trust_is_configuration():
    meanings = dict(RewardSettings().meanings)
    del meanings[SignalKind.COPY]
    assert rewarded(signal(SignalKind.COPY), settings=RewardSettings(meanings=meanings)) is None


def test_thirty_percent_wrong_thumbs_leave_the_better_plan_the_better():
    rng = np.random.default_rng(3)
    means = {}
    for plan, satisfied in (("good", 0.8), ("bad", 0.6)):
        experiences = []
        for i in range(2000):
            truth = rng.random() < satisfied
            said = truth != (rng.random() < 0.3)
            thumbed = signal(SignalKind.THUMB, float(said), f"{plan}{i}", user=f"u{i}")
            experiences.append(experience(thumbed, request_id=f"{plan}{i}"))
        means[plan] = np.mean([r.reward for r in rewards(experiences, NOW)])
    assert means["good"] - means["bad"] == pytest.approx(0.2 * 0.4 * 0.8, abs=0.02)
