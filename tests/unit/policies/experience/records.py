"""Records and signals for the tests of the experience store."""

from datetime import UTC, datetime, timedelta

from policies.experience.record import (
    ExperienceRecord,
    RankedPassage,
    RequestKind,
    Signal,
    SignalKind,
)
from policies.types import Decision, Intent, PlanScore, QueryFeatures
from skills.types import Missing, MissingReason

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def record(request_id="r1", minutes=0, **changed):
    plain = {
        "request_id": request_id,
        "at": START + timedelta(minutes=minutes),
        "kind": RequestKind.RETRIEVE,
        "collection": "docs",
        "index_version": "v3",
        "query": "《民法典》 what changed in 2023",
        "query_digest": "ab12",
        "features": QueryFeatures(
            "mixed", 24, 6, "what", Intent.FACT, dates=("2023",), entities=("民法典",)
        ),
        "live": {"keyword.p50_ms": 4.5, "probe.gap": 0.25},
        "decision": Decision(
            "hybrid_filtered",
            0.92,
            "rules",
            "v1-e0.1",
            "rule `dated` (dates = 2023)",
            (PlanScore("hybrid_filtered", 0.92), PlanScore("keyword", 0.08, 0.5, 4.0)),
            explored=False,
            mode="observe",
            details={"rule": "dated"},
        ),
        "execution": {"stages": [{"calls": [{"skill": "keyword", "ms": 3.5}]}]},
        "passages": (RankedPassage("p1", "d1", 0.75), RankedPassage("p2", "d1", 0.5)),
        "missing": (Missing(MissingReason.TIMED_OUT, "dense", "no answer in 300 ms"),),
        "timings_ms": {"analyze": 0.5, "stage_0": 12.0},
        "total_ms": 14.25,
        "user_digest": "u1",
        "session_digest": "s1",
        "tenant": "acme",
        "budget_ms": 800.0,
    }
    return ExperienceRecord(**(plain | changed))


def thumb(signal_id="s1", request_id="r1", minutes=1, **changed):
    plain = {
        "signal_id": signal_id,
        "request_id": request_id,
        "kind": SignalKind.THUMB,
        "value": 1.0,
        "at": START + timedelta(minutes=minutes),
    }
    return Signal(**(plain | changed))
