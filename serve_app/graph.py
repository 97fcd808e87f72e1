"""Joins parts to a gateway: the same for replicas (`serve_app.deployments`) and for one process
(`local_gateway`).
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from policies.experience.digests import Digester
from policies.plan import known_plans
from policies.rules import RULES, RulesPolicy, load_rules
from serve_app.calls import CoalescedTarget, Coalescing, DirectTarget, Send, inline_send
from serve_app.config import TacticianConfig
from serve_app.execution.cache import ResultCache
from serve_app.execution.executor import Executor
from serve_app.execution.stage import SkillTarget
from serve_app.gateway import Gateway, Graph
from serve_app.parts import ANALYZER, GENERATOR, ORCHESTRATOR, RECORDER, SKILL, build_part
from serve_app.parts.hosted import HostedPart
from serve_app.recording import Recording
from serve_app.sessions.conversations import Conversations
from serve_app.shadow import ShadowArms
from skills.registry import SkillRegistry
from skills.resources import Resources
from skills.skill import SkillKind

SendOf = Callable[[str], "Send[Any, Any]"]
"""How a part is reached, by its name."""


def skill_names(config: TacticianConfig, registry: SkillRegistry) -> list[str]:
    """The skills that the configuration wants to run, and those that they require."""
    wanted = config.skills or tuple(n for n, m in registry.manifests.items() if m.enabled)
    return list(registry.with_required(wanted))


def is_inline(part: str, config: TacticianConfig, registry: SkillRegistry) -> bool:
    """Whether a part lives in the gateway's process."""
    if part.startswith(SKILL):
        placed_inline = registry[part.removeprefix(SKILL)].placement == "inline"
        return config.inline_skills or placed_inline
    return bool(getattr(config.parts, part).placement == "inline")


def part_names(config: TacticianConfig, registry: SkillRegistry) -> list[str]:
    """Every part of the graph."""
    skills = [SKILL + name for name in skill_names(config, registry)]
    return [ANALYZER, ORCHESTRATOR, GENERATOR, RECORDER, *skills]


def build_graph(config: TacticianConfig, registry: SkillRegistry, send_of: SendOf) -> Graph:
    """The graph of the configured parts."""
    targets: dict[str, SkillTarget] = {}
    for name in skill_names(config, registry):
        alone = registry[name].kind is SkillKind.FUSE and is_inline(SKILL + name, config, registry)
        targets[name] = (DirectTarget if alone else CoalescedTarget)(name, send_of(SKILL + name))
    plans = known_plans(config.plan_dirs)
    manifests = {name: registry[name] for name in targets}
    executor = Executor(targets, manifests, config.breakers, config.deduplication)
    rules = load_rules(config.rules_file or RULES, plans)
    return Graph(
        analyzer=CoalescedTarget(ANALYZER, send_of(ANALYZER)),
        orchestrator=CoalescedTarget(ORCHESTRATOR, send_of(ORCHESTRATOR)),
        generator=CoalescedTarget(GENERATOR, send_of(GENERATOR)),
        executor=executor,
        results=ResultCache(executor, config.results),
        plans=plans,
        candidates=tuple(name for name, plan in plans.items() if plan.is_candidate(set(targets))),
        fallback=RulesPolicy(rules),
        first_look=tuple(name for name in config.policy.first_look if name in targets),
    )


def build_gateway(
    config: TacticianConfig, registry: SkillRegistry, resources: Resources, send_of: SendOf
) -> Gateway:
    """A gateway on the configured parts."""
    recorder = CoalescedTarget[Any, Any](
        RECORDER,
        send_of(RECORDER),
        Coalescing(gather_ms=20.0, max_batch=256, max_waiting=config.experience.max_waiting),
    )
    config.home.mkdir(parents=True, exist_ok=True)
    return Gateway(
        build_graph(config, registry, send_of),
        resources.vector_store(),
        Recording(recorder, config.experience.max_waiting),
        Digester.open(config.home / "salt"),
        Conversations.open(config.sessions),
        max_concurrent_requests=config.limits.max_concurrent_requests,
        store_query_text=config.experience.store_query_text,
        shadows=ShadowArms(config.policy.shadow_share, np.random.default_rng(config.seed)),
    )


def inline_sends(
    parts: Iterable[str], config: TacticianConfig, resources: Resources
) -> dict[str, "Send[Any, Any]"]:
    """Sends to parts that are built here."""

    def hosted(name: str) -> HostedPart:
        return HostedPart(name, lambda: build_part(name, config, resources))

    return {name: inline_send(name, hosted(name).run) for name in parts}


def local_gateway(config: TacticianConfig, registry: SkillRegistry | None = None) -> Gateway:
    """Everything in this process, without Ray: evaluation, tests, very small machines."""
    registry = registry or SkillRegistry.load(config.skill_dirs)
    resources = Resources(config.resources)
    sends = inline_sends(part_names(config, registry), config, resources)
    return build_gateway(config, registry, resources, sends.__getitem__)
