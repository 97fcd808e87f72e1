"""Tries one skill out on the configured stores and encoders: `tactician skills test`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from serve_app.catalogue import current
from serve_app.config import TacticianConfig
from serve_app.errors import NotFound, RequestRejected
from skills.conformance import Finding, conform
from skills.manifest import load_manifest
from skills.registry import SkillRegistry
from skills.resources import Resources
from skills.skill import SkillKind, SkillRequest
from skills.stores.store import KeywordSearch
from skills.types import OPERATOR, Arm, Hit

TRIAL_BUDGET_MS = 30_000.0
TOP_K = 10


def registry_with(config: TacticianConfig, target: str) -> tuple[SkillRegistry, str]:
    """The known skills and the one that is meant, which may be a manifest file.

    Raises:
        SkillMisconfigured: the file is wrong, or what it requires is not there.
        NotFound: no skill of this name.
    """
    registry = current(config).registry
    if target in registry:
        return registry, target
    if not Path(target).is_file():
        known = ", ".join(registry.manifests)
        raise NotFound("skill", f"{target!r} is no file and no skill; there are: {known}")
    manifest = load_manifest(Path(target))
    manifests = registry.manifests | {manifest.skill_id: manifest}
    return SkillRegistry(manifests), manifest.skill_id


async def try_skill(
    registry: SkillRegistry, skill_id: str, resources: Resources, collection: str, query: str
) -> list[Finding]:
    """Build a skill and run the checks of its kind on a collection.

    Args:
        registry: knows the skill.
        skill_id: the skill.
        resources: what it is built on.
        collection: empty means the first one there is.
        query: one that the skill should answer; empty means the manifest's probe.

    Raises:
        SkillMisconfigured: the skill cannot be built.
        RequestRejected: there is no collection.
    """
    manifest = registry[skill_id]
    skill = registry.build(skill_id, resources)
    request = SkillRequest(
        query=query or manifest.health.probe,
        collection=collection or await _first_collection(resources),
        top_k=TOP_K,
        budget_ms=TRIAL_BUDGET_MS,
        caller=OPERATOR,
    )
    request = await _with_candidates(request, manifest.kind, resources)
    return await conform(skill, manifest.kind, request)


async def _first_collection(resources: Resources) -> str:
    infos = await resources.keyword_store().collections()
    if not infos:
        detail = "there is none to try the skill on; `tactician ingest` makes one"
        raise RequestRejected("collection", detail)
    return infos[0].name


async def _with_candidates(
    request: SkillRequest, kind: SkillKind, resources: Resources
) -> SkillRequest:
    """The request with what a ranking skill needs: candidates that share words with the query."""
    if kind not in {SkillKind.RERANK, SkillKind.FUSE}:
        return request
    search = KeywordSearch(request.collection, "", TOP_K, caller=request.caller, text=request.query)
    (ranking,) = await resources.keyword_store().match([search])
    hits: Sequence[Hit] = ranking if isinstance(ranking, list) else ()
    if not hits:
        detail = f"no passage shares a word with {request.query!r}: there is nothing to rank"
        raise RequestRejected("query", detail)
    if kind is SkillKind.RERANK:
        return replace(request, hits=tuple(hits))
    return replace(request, arms=(Arm("keyword", tuple(hits)), Arm("other", tuple(hits[::2]))))
