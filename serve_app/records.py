"""What is kept of a request: from what was asked and what came of it to a record."""

from datetime import datetime

from policies.experience.digests import Digester
from policies.experience.record import ExperienceRecord, RankedPassage, RequestKind
from serve_app.callers import scope_of
from serve_app.requests import Retrieved, RetrieveRequest


def record_of(
    request: RetrieveRequest,
    retrieved: Retrieved,
    arrived: datetime,
    kind: RequestKind,
    digester: Digester,
) -> ExperienceRecord:
    """The record of a request, query text included; ids of people are digests."""
    return ExperienceRecord(
        request_id=request.request_id,
        at=arrived,
        kind=kind,
        collection=request.collection,
        index_version=retrieved.index_version,
        query=request.query,
        query_digest=digester.query(request.query),
        features=retrieved.features,
        live=retrieved.live,
        decision=retrieved.decision,
        execution=_executed(request, retrieved),
        passages=tuple(
            RankedPassage(hit.passage.id, hit.passage.document_id, hit.score)
            for hit in retrieved.hits
        ),
        missing=retrieved.missing,
        timings_ms=retrieved.timings_ms,
        total_ms=retrieved.timings_ms["total"],
        user_digest=digester.user(request.user_id, request.caller.tenant),
        session_digest=digester.session(request.session_id, request.caller.tenant),
        tenant=request.caller.tenant,
        budget_ms=request.budget_ms,
    )


def _executed(request: RetrieveRequest, retrieved: Retrieved) -> dict[str, object]:
    """What the record keeps of the execution."""
    executed: dict[str, object] = {
        "stages": retrieved.stages,
        "caller": scope_of(request.caller),
        "asked": {"top_k": request.top_k, "filters": request.filters},
    }
    if retrieved.session is not None:
        executed["session"] = retrieved.session
    if retrieved.cached:
        executed["cached"] = True
        executed["saved_ms"] = sum(stage.ms for stage in retrieved.stages)
    return executed
