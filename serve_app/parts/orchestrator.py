"""The policy as a part: rules, and the registry's learned policy when there is one."""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import numpy as np

from policies.drift.book import DriftBook, DriftState
from policies.drift.exploration import raise_exploration
from policies.drift.settings import DriftSettings
from policies.errors import PolicyError
from policies.experiments.experiment import Experiments
from policies.experiments.serving import ExperimentSwitch
from policies.learning.online import OnlineBook, OnlineSwitch
from policies.modes import Mode, choose_in_mode
from policies.policy import Policy
from policies.registry.registry import PolicyRegistry
from policies.registry.s3 import SCHEME, S3ObjectStore
from policies.registry.store import DirectoryStore, ObjectStore
from policies.registry.switch import PolicySwitch
from policies.rules import RULES, RulesPolicy, load_rules
from policies.types import Decision, DecisionRequest
from serve_app.catalogue import current
from serve_app.config import TacticianConfig
from skills.errors import SkillError, SkillFailed

log = logging.getLogger(__name__)

REFRESH_EVERY_S = 2.0
IDLE_AFTER_S, WAIT_FOR_REFRESH_S = 10.0, 0.1
"""Who was not asked for so long may have missed a promotion: the next request waits a little."""


@dataclass(slots=True)
class Followed:
    """What decides beside the rules, as it was when it was looked at last."""

    learned: PolicySwitch
    online: OnlineSwitch
    experiments: ExperimentSwitch
    book: DriftBook
    drift: DriftState = field(default_factory=DriftState)

    def refresh(self) -> None:
        """Look at the registry, the experiments and drift; what cannot be read changes nothing."""
        seen = self.learned.refresh()
        if seen.error:
            log.warning("policy not taken over", extra={"why": seen.error, "serving": seen.version})
        elif seen.changed:
            log.info("policy taken over", extra={"serving": seen.version})
        if why := self.online.refresh():
            log.warning("what was learnt online not taken over", extra={"why": why})
        if why := self.experiments.refresh():
            log.warning("experiment not served", extra={"why": why})
        try:
            self.drift = self.book.read()
        except PolicyError as error:
            log.warning("drift not followed", extra={"why": str(error)})


class OrchestratorPart:
    """Features to a decision.

    Looks at the registry now and then, in a thread: a promoted policy takes over without a
    restart, and one that
    cannot be read changes nothing.
    """

    def __init__(
        self,
        rules: Policy,
        followed: Followed,
        mode: Mode,
        drift: DriftSettings,
        rng: np.random.Generator,
    ) -> None:
        self._rules = rules
        self._followed = followed
        self._mode = mode
        self._drift = drift
        self._rng = rng
        self._refreshing: asyncio.Task[None] | None = None
        self._refreshed_at_s = time.monotonic()

    @classmethod
    def build(cls, config: TacticianConfig) -> Self:
        """The policies that the configuration names."""
        chosen = load_rules(config.rules_file or RULES, current(config).plans)
        rules = RulesPolicy(chosen, config.policy.exploration)
        registry = policy_registry(config)
        learned = PolicySwitch(registry, rules)
        online = OnlineSwitch(learned, online_book(config), config.policy.online)
        switch = ExperimentSwitch(online, registry, experiments_of(config))
        followed = Followed(learned, online, switch, drift_book(config))
        followed.refresh()
        rng = np.random.default_rng(config.seed)
        return cls(rules, followed, config.policy.mode, config.policy.drift, rng)

    async def run(self, requests: Sequence[DecisionRequest]) -> list[Decision | SkillError]:
        """Choose plans."""
        await self._refresh_sometimes()
        try:
            return list(self._choose(requests))
        except PolicyError:
            return [self._one(request) for request in requests]

    async def check_health(self) -> None:
        """Rules need nothing that can be away."""

    def _choose(self, requests: Sequence[DecisionRequest]) -> list[Decision]:
        learned = self._followed.experiments
        decided = choose_in_mode(self._mode, self._rules, learned, requests, self._rng)
        if not self._drift.enabled or not self._followed.drift.raised(datetime.now(UTC)):
            return decided
        return raise_exploration(decided, self._drift, self._rng)

    def _one(self, request: DecisionRequest) -> Decision | SkillError:
        try:
            return self._choose([request])[0]
        except PolicyError as error:
            return SkillFailed("orchestrator", str(error))

    async def _refresh_sometimes(self) -> None:
        old_s = time.monotonic() - self._refreshed_at_s
        idle = self._refreshing is None or self._refreshing.done()
        if idle and old_s >= REFRESH_EVERY_S:
            self._refreshed_at_s = time.monotonic()
            looking = asyncio.to_thread(self._followed.refresh)
            self._refreshing = asyncio.create_task(looking)
            if old_s >= IDLE_AFTER_S:
                await asyncio.wait([self._refreshing], timeout=WAIT_FOR_REFRESH_S)


def policy_registry(config: TacticianConfig) -> PolicyRegistry:
    """The registry of this home."""
    return PolicyRegistry(_policy_store(config))


def experiments_of(config: TacticianConfig) -> Experiments:
    """The experiments of this home."""
    return Experiments(_policy_store(config))


def drift_book(config: TacticianConfig) -> DriftBook:
    """What is known of drift in this home."""
    return DriftBook(_policy_store(config))


def online_book(config: TacticianConfig) -> OnlineBook:
    """What this home has learnt online."""
    return OnlineBook(_policy_store(config))


def _policy_store(config: TacticianConfig) -> ObjectStore:
    where = config.policy.registry
    if where.startswith(f"{SCHEME}://"):
        return S3ObjectStore(where)
    return DirectoryStore(Path(where) if where else config.home / "policies")
