"""Takes up, while requests are served, what was applied to the home: new, changed and removed
skills and plans.

The new graph is made ready beside the one that serves: new skills are built and asked for their
health, plans that call them run once. Then the gateway gets it in one step; requests under way end
on the graph that they began on. A skill that cannot be built changes nothing and is reported.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from policies.errors import PolicyError
from serve_app.applied import fingerprint
from serve_app.calls import Send, inline_send
from serve_app.catalogue import Catalogue, current
from serve_app.config import TacticianConfig
from serve_app.execution.stage import SkillTarget
from serve_app.gateway import Gateway
from serve_app.gateway_graph import Graph, TakenUp
from serve_app.graph import changed_graph, skill_target
from serve_app.parts import SKILL
from serve_app.parts.hosted import HostedPart
from skills.errors import SkillError
from skills.manifest import SkillManifest
from skills.registry import build_skill
from skills.resources import Resources

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
RETRY_EVERY_S = 10.0
"""After a change that could not be taken up whole: its database may be back."""
WARM_UP_S = 3.0
"""Of new plans, at most; what is not warm by then warms up under its first requests."""
RETIRE_AFTER_S = 30.0
"""How long a skill that no new request reaches is kept for those under way, and for other
gateways."""

_Running = tuple[SkillManifest, SkillTarget]


class Hosting(Protocol):
    """Where skills live that a running service takes up."""

    async def host(self, manifest: SkillManifest) -> "Send[Any, Any]":
        """Build a skill, and return how it is reached once it can serve.

        Raises:
            SkillError: it cannot be built, or is not well.
        """
        ...

    async def retire(self, manifest: SkillManifest) -> None:
        """Give up what `host` has made. A manifest that was never hosted is ignored."""
        ...


class InlineHosting:
    """Builds skills in this process."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    async def host(self, manifest: SkillManifest) -> "Send[Any, Any]":
        """Build it in a thread and ask for its health."""
        name = SKILL + manifest.skill_id
        build = partial(build_skill, manifest, self._resources)
        part = await asyncio.to_thread(HostedPart, name, build)
        await part.check_health()
        return inline_send(name, part.run)

    async def retire(self, manifest: SkillManifest) -> None:
        """Nothing is left to do: the object goes with its last request."""


class LiveCatalogue:
    """Keeps a gateway on what is applied to its home."""

    def __init__(self, config: TacticianConfig, gateway: Gateway, hosting: Hosting) -> None:
        graph = gateway.graph
        self._config = config
        self._gateway = gateway
        self._hosting = hosting
        self._started = self._running_in(graph, graph.catalogue.runs)
        """Skills that the graph was started with: never retired, and used again when an applied
        change of them is removed."""
        self._running = self._started
        self._looked_at_s = 0.0
        self._retiring: set[asyncio.Task[None]] = set()

    async def watch(self) -> None:
        """Look every `LOOK_EVERY_S` seconds, for ever."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await self.look()
            except Exception:  # the service goes on with what it has
                log.exception("applied changes could not be looked at")

    async def look(self) -> None:
        """Take up what has changed since the last look, if anything."""
        seen = await asyncio.to_thread(fingerprint, self._config)
        done = self._gateway.graph.taken_up
        due = bool(done.problems) and time.monotonic() - self._looked_at_s >= RETRY_EVERY_S
        if seen == done.fingerprint and not due:
            return
        self._looked_at_s = time.monotonic()
        try:
            catalogue = await asyncio.to_thread(current, self._config)
        except (SkillError, PolicyError) as error:
            self._report(TakenUp(seen, ((error.subject, error.detail),)))
            return
        await self._take_up(catalogue, seen)

    async def _take_up(self, catalogue: Catalogue, seen: str) -> None:
        outcomes = await asyncio.gather(
            *(self._hosted(catalogue.registry[name]) for name in catalogue.runs)
        )
        running: dict[str, _Running] = {}
        problems: list[tuple[str, str]] = []
        for name, outcome in zip(catalogue.runs, outcomes, strict=True):
            if not isinstance(outcome, SkillError):
                running[name] = outcome
                continue
            problems.append((name, str(outcome)))
            if name in self._running:
                running[name] = self._running[name]
        serving = catalogue.serving({name: manifest for name, (manifest, _) in running.items()})
        targets = {name: target for name, (_, target) in running.items()}
        graph = changed_graph(self._gateway.graph, self._config, serving, targets)
        new = {n for n in running if self._running.get(n) is not running[n]}
        await self._warm(graph, new)
        left = [old[0] for n, old in self._running.items() if running.get(n) is not old]
        self._running = self._running_in(graph, running)
        self._gateway.apply(graph)
        self._report(TakenUp(seen, tuple(problems)))
        for manifest in left:
            self._retire(manifest)

    async def _hosted(self, manifest: SkillManifest) -> _Running | SkillError:
        """A skill that runs already as its manifest says, or a new one, or why there is none."""
        for known in (self._running, self._started):
            running = known.get(manifest.skill_id)
            if running is not None and running[0] == manifest:
                return running
        try:
            send = await self._hosting.host(manifest)
        except SkillError as error:
            return error
        is_inline = self._config.inline_skills or manifest.placement == "inline"
        return manifest, skill_target(manifest, send, is_inline=is_inline)

    async def _warm(self, graph: Graph, new: Collection[str]) -> None:
        plans = [name for name in graph.candidates if graph.plans[name].skills & set(new)]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WARM_UP_S):
                await self._gateway.warm_plans(graph, plans)

    def _report(self, taken_up: TakenUp) -> None:
        self._gateway.apply(replace(self._gateway.graph, taken_up=taken_up))
        for subject, why in taken_up.problems:
            log.warning("applied change not taken up", extra={"subject": subject, "why": why})
        if not taken_up.problems:
            log.info("applied changes taken up", extra={"fingerprint": taken_up.fingerprint[:12]})

    def _retire(self, manifest: SkillManifest) -> None:
        started = self._started.get(manifest.skill_id)
        if started is not None and started[0] == manifest:
            return

        async def later() -> None:
            await asyncio.sleep(RETIRE_AFTER_S)
            running = self._running.get(manifest.skill_id)
            if running is None or running[0] != manifest:  # it may have come back
                await self._hosting.retire(manifest)

        task = asyncio.create_task(later())
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)

    @staticmethod
    def _running_in(graph: Graph, names: Collection[str]) -> Mapping[str, _Running]:
        registry, targets = graph.catalogue.registry, graph.executor.targets
        return {name: (registry[name], targets[name]) for name in names}
