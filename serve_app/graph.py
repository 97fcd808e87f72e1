"""Joins parts to a gateway: the same for replicas (`serve_app.deployments`) and for one process
(`local_gateway`).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypedDict

import numpy as np

from policies.experience.digests import Digester
from policies.rules import RULES, RulesPolicy, load_rules
from serve_app.calls import CoalescedTarget, Coalescing, DirectTarget, Send, inline_send
from serve_app.catalogue import Catalogue, current
from serve_app.config import TacticianConfig
from serve_app.execution.cache import ResultCache
from serve_app.execution.executor import Executor
from serve_app.execution.stage import SkillTarget
from serve_app.gateway import Gateway
from serve_app.gateway_graph import Graph
from serve_app.parts import ANALYZER, GENERATOR, ORCHESTRATOR, RECORDER, SKILL, Part, build_part
from serve_app.parts.hosted import HostedPart
from serve_app.recording import Recording
from serve_app.sessions.conversations import Conversations
from serve_app.shadow import ShadowArms
from skills.manifest import SkillManifest
from skills.registry import SkillRegistry, build_skill
from skills.resources import Resources
from skills.skill import SkillKind

SendOf = Callable[[str], "Send[Any, Any]"]
"""How a part is reached, by its name."""


def is_inline(part: str, config: TacticianConfig, registry: SkillRegistry) -> bool:
    """Whether a part lives in the gateway's process."""
    if part.startswith(SKILL):
        placed_inline = registry[part.removeprefix(SKILL)].placement == "inline"
        return config.inline_skills or placed_inline
    return bool(getattr(config.parts, part).placement == "inline")


def part_names(catalogue: Catalogue) -> list[str]:
    """Every part of the graph."""
    skills = [SKILL + name for name in catalogue.runs]
    return [ANALYZER, ORCHESTRATOR, GENERATOR, RECORDER, *skills]


def skill_target(
    manifest: SkillManifest, send: "Send[Any, Any]", *, is_inline: bool
) -> SkillTarget:
    """How the executor calls a skill."""
    alone = manifest.kind is SkillKind.FUSE and is_inline
    return (DirectTarget if alone else CoalescedTarget)(manifest.skill_id, send)


def build_graph(config: TacticianConfig, catalogue: Catalogue, send_of: SendOf) -> Graph:
    """The graph of the configured parts."""
    targets = {
        name: skill_target(
            catalogue.registry[name],
            send_of(SKILL + name),
            is_inline=is_inline(SKILL + name, config, catalogue.registry),
        )
        for name in catalogue.runs
    }
    rules = load_rules(config.rules_file or RULES, current(config).plans)
    return Graph(
        analyzer=CoalescedTarget(ANALYZER, send_of(ANALYZER)),
        orchestrator=CoalescedTarget(ORCHESTRATOR, send_of(ORCHESTRATOR)),
        generator=CoalescedTarget(GENERATOR, send_of(GENERATOR)),
        fallback=RulesPolicy(rules),
        **_skills_and_plans(config, catalogue, targets),
    )


def changed_graph(
    graph: Graph,
    config: TacticianConfig,
    catalogue: Catalogue,
    targets: Mapping[str, SkillTarget],
) -> Graph:
    """The same parts with other skills and plans, and no results of the old ones."""
    return replace(graph, **_skills_and_plans(config, catalogue, targets))


class _SkillsAndPlans(TypedDict):
    executor: Executor
    results: ResultCache
    catalogue: Catalogue
    candidates: tuple[str, ...]
    first_look: tuple[str, ...]


def _skills_and_plans(
    config: TacticianConfig, catalogue: Catalogue, targets: Mapping[str, SkillTarget]
) -> _SkillsAndPlans:
    manifests, running = {name: catalogue.registry[name] for name in targets}, set(targets)
    executor = Executor(targets, manifests, config.breakers, config.deduplication)
    return {
        "executor": executor,
        "results": ResultCache(executor, config.results),
        "catalogue": catalogue,
        "candidates": tuple(n for n, p in catalogue.plans.items() if p.is_candidate(running)),
        "first_look": tuple(name for name in config.policy.first_look if name in running),
    }


def build_gateway(
    config: TacticianConfig, catalogue: Catalogue, resources: Resources, send_of: SendOf
) -> Gateway:
    """A gateway on the configured parts."""
    recorder = CoalescedTarget[Any, Any](
        RECORDER,
        send_of(RECORDER),
        Coalescing(gather_ms=20.0, max_batch=256, max_waiting=config.experience.max_waiting),
    )
    config.home.mkdir(parents=True, exist_ok=True)
    return Gateway(
        build_graph(config, catalogue, send_of),
        resources.vector_store(),
        Recording(recorder, config.experience.max_waiting),
        Digester.open(config.home / "salt"),
        Conversations.open(config.sessions),
        max_concurrent_requests=config.limits.max_concurrent_requests,
        store_query_text=config.experience.store_query_text,
        shadows=ShadowArms(config.policy.shadow_share, np.random.default_rng(config.seed)),
    )


def inline_sends(
    parts: Iterable[str], config: TacticianConfig, registry: SkillRegistry, resources: Resources
) -> dict[str, "Send[Any, Any]"]:
    """Sends to parts that are built here."""

    def build(name: str) -> Part:
        if name.startswith(SKILL):
            return build_skill(registry[name.removeprefix(SKILL)], resources)
        return build_part(name, config, resources)

    return {name: inline_send(name, HostedPart(name, partial(build, name)).run) for name in parts}


def local_gateway(config: TacticianConfig, registry: SkillRegistry | None = None) -> Gateway:
    """Everything in this process, without Ray: evaluation, tests, very small machines."""
    catalogue = current(config)
    if registry is not None:
        catalogue = replace(catalogue, registry=registry)
    resources = Resources(config.resources)
    sends = inline_sends(part_names(catalogue), config, catalogue.registry, resources)
    return build_gateway(config, catalogue, resources, sends.__getitem__)
