"""Results as JSON. Bytes are made by orjson straight from our values: no second model in
between.
"""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import orjson
from fastapi.responses import Response

from policies.drift.book import DriftState
from serve_app.api.discretion import missing_for, stages_for
from serve_app.callers import Principal
from serve_app.execution.types import StageTrace
from serve_app.requests import Retrieved
from skills.types import Hit, Provenance


def json_response(body: object, status: int = 200) -> Response:
    """A response of values that orjson knows: dataclasses, enums, numbers, text, lists, dicts."""
    content = orjson.dumps(body, default=_plain, option=orjson.OPT_NON_STR_KEYS)
    return Response(content, status, media_type="application/json")


def retrieved_view(retrieved: Retrieved, principal: Principal) -> dict[str, Any]:
    """The body of `/v1/retrieve`."""
    return {
        "request_id": retrieved.request_id,
        "passages": [hit_view(hit) for hit in retrieved.hits],
        "decision": retrieved.decision,
        "missing": missing_for(principal, retrieved.missing),
        "timings_ms": retrieved.timings_ms,
        "stages": [stage_view(stage) for stage in stages_for(principal, retrieved.stages)],
        "index_version": retrieved.index_version,
        "cached": retrieved.cached,
        "session": retrieved.session,
    }


def answered_view(retrieved: Retrieved, principal: Principal) -> dict[str, Any]:
    """The body of `/v1/answer`: the one of `/v1/retrieve` and the answer, null when there is
    none.
    """
    answer = retrieved.answer.model_dump() if retrieved.answer is not None else None
    return retrieved_view(retrieved, principal) | {"answer": answer}


def hit_view(hit: Hit) -> dict[str, Any]:
    """One passage with its score and where it came from."""
    passage = hit.passage
    return {
        "id": passage.id,
        "document_id": passage.document_id,
        "title": passage.title,
        "text": passage.text,
        "score": hit.score,
        "metadata": passage.metadata,
        "provenance": [_provenance_view(each) for each in hit.provenance],
    }


def _provenance_view(found: Provenance) -> dict[str, Any]:
    shown = {name: getattr(found, name) for name in ("stage", "skill", "rank", "score", "group")}
    return shown | ({"parts": dict(found.parts)} if found.parts else {})


def stage_view(stage: StageTrace) -> dict[str, Any]:
    """One stage, its drops as counts by reason; the request's record has them one by one."""
    return {
        "stage": stage.stage,
        "ms": stage.ms,
        "calls": stage.calls,
        "num_hits": stage.num_hits,
        "dropped": Counter(dropped.reason for dropped in stage.dropped),
        "filters": stage.filters,
    }


def drift_view(drift: DriftState) -> dict[str, Any]:
    """Whether exploration is raised, until when, and the changes that led to it."""
    raised = drift.raised(datetime.now(UTC))
    return {
        "raised": raised,
        "raised_until": drift.raised_until if raised else None,
        "num_alarms": drift.num_alarms,
        "alarms": [alarm.model_dump(mode="json") for alarm in drift.alarms[-10:]],
    }


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if hasattr(value, "items"):
        return dict(value.items())
    return str(value)
