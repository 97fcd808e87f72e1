"""What callers that are no admins are told: codes and short reasons instead of the words of back
ends, which name addresses and paths, and nothing of collections that are not theirs.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson

from serve_app.callers import Principal
from serve_app.execution.types import CallStatus, StageTrace
from serve_app.why_not.types import Outcome, WhyNot
from skills.stores.store import CollectionInfo
from skills.types import Caller, Missing, MissingReason

_SHORT = {
    MissingReason.UNAVAILABLE: "does not work now",
    MissingReason.TIMED_OUT: "gave no answer in time",
}
"""What is said instead of a detail that may quote a back end."""

_PLAIN_STATUS = frozenset({CallStatus.OK, CallStatus.INVALID, CallStatus.OVER_BUDGET})
"""Calls whose detail is about the request."""


def missing_for(principal: Principal, missing: Sequence[Missing]) -> Sequence[Missing]:
    """What could not be delivered, as this caller is told."""
    if principal.admin:
        return missing
    return [replace(one, detail=_SHORT.get(one.reason, one.detail)) for one in missing]


def stages_for(principal: Principal, stages: Sequence[StageTrace]) -> Sequence[StageTrace]:
    """The stages of a plan, as this caller is told."""
    if principal.admin:
        return stages
    return [
        replace(
            stage,
            calls=tuple(
                call if call.status in _PLAIN_STATUS else replace(call, detail="")
                for call in stage.calls
            ),
        )
        for stage in stages
    ]


def execution_for(principal: Principal, execution: Any) -> Any:
    """The execution of a record, as this caller is told; JSON values unless they are an admin."""
    if principal.admin:
        return execution
    plain = orjson.loads(orjson.dumps(execution))
    for stage in plain.get("stages", ()):
        for call in stage.get("calls", ()):
            if call.get("status") not in _PLAIN_STATUS:
                call["detail"] = ""
    return plain


def why_not_for(principal: Principal, answer: WhyNot) -> WhyNot:
    """Why a passage is not there, as this caller is told."""
    if principal.admin:
        return answer
    short = _SHORT[MissingReason.UNAVAILABLE]
    steps = tuple(
        replace(step, detail=short) if step.outcome == Outcome.UNAVAILABLE else step
        for step in answer.steps
    )
    if answer.outcome is Outcome.UNAVAILABLE:
        answer = replace(answer, detail=f"the skill that finds it {short}")
    return replace(answer, steps=steps)


def collections_for(
    principal: Principal, infos: Sequence[CollectionInfo]
) -> Sequence[CollectionInfo | dict[str, Any]]:
    """The collections that may hold something for this caller. How much they hold, and which
    values, comes from all passages, also from those that the caller may not read.
    """
    if principal.admin:
        return infos
    return [
        {
            "name": info.name,
            "version": info.version,
            "passages": None,
            "documents": None,
            "created_at": info.created_at,
            "vectors": info.vectors,
            "fields": [{"name": field.name, "kind": field.kind} for field in info.fields],
        }
        for info in infos
        if _concerns(info, principal.caller)
    ]


def _concerns(info: CollectionInfo, caller: Caller) -> bool:
    """Whether a passage there may be of the caller's tenant, or of none."""
    tenants = next((field for field in info.fields if field.name == "tenant"), None)
    return (
        tenants is None
        or tenants.count < info.passages
        or not {"", caller.tenant}.isdisjoint(map(str, tenants.values))
    )
