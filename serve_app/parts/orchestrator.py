"""The policy as a part: rules, and the registry's learned policy when there is one."""

import asyncio
import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np

from policies.errors import PolicyError
from policies.experiments.experiment import Experiments
from policies.experiments.serving import ExperimentSwitch
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


class OrchestratorPart:
    """Features to a decision.

    Looks at the registry now and then, in a thread: a promoted policy takes over without a
    restart, and one that
    cannot be read changes nothing.
    """

    def __init__(
        self,
        rules: Policy,
        learned: PolicySwitch,
        experiments: ExperimentSwitch,
        mode: Mode,
        rng: np.random.Generator,
    ) -> None:
        self._rules = rules
        self._learned = learned
        self._experiments = experiments
        self._mode = mode
        self._rng = rng
        self._refreshing: asyncio.Task[None] | None = None
        self._refreshed_at_s = 0.0

    @classmethod
    def build(cls, config: TacticianConfig) -> Self:
        """The policies that the configuration names."""
        chosen = load_rules(config.rules_file or RULES, current(config).plans)
        rules = RulesPolicy(chosen, config.policy.exploration)
        registry = policy_registry(config)
        learned = PolicySwitch(registry, rules)
        switch = ExperimentSwitch(learned, registry, experiments_of(config))
        _refresh(learned, switch)
        rng = np.random.default_rng(config.seed)
        return cls(rules, learned, switch, config.policy.mode, rng)

    async def run(self, requests: Sequence[DecisionRequest]) -> list[Decision | SkillError]:
        """Choose plans."""
        self._refresh_sometimes()
        try:
            return list(self._choose(requests))
        except PolicyError:
            return [self._one(request) for request in requests]

    async def check_health(self) -> None:
        """Rules need nothing that can be away."""

    def _choose(self, requests: Sequence[DecisionRequest]) -> list[Decision]:
        return choose_in_mode(self._mode, self._rules, self._experiments, requests, self._rng)

    def _one(self, request: DecisionRequest) -> Decision | SkillError:
        try:
            return self._choose([request])[0]
        except PolicyError as error:
            return SkillFailed("orchestrator", str(error))

    def _refresh_sometimes(self) -> None:
        now = time.monotonic()
        idle = self._refreshing is None or self._refreshing.done()
        if idle and now - self._refreshed_at_s >= REFRESH_EVERY_S:
            self._refreshed_at_s = now
            looking = asyncio.to_thread(_refresh, self._learned, self._experiments)
            self._refreshing = asyncio.create_task(looking)


def policy_registry(config: TacticianConfig) -> PolicyRegistry:
    """The registry of this home."""
    return PolicyRegistry(_policy_store(config))


def experiments_of(config: TacticianConfig) -> Experiments:
    """The experiments of this home."""
    return Experiments(_policy_store(config))


def _policy_store(config: TacticianConfig) -> ObjectStore:
    where = config.policy.registry
    if where.startswith(f"{SCHEME}://"):
        return S3ObjectStore(where)
    return DirectoryStore(Path(where) if where else config.home / "policies")


def _refresh(learned: PolicySwitch, experiments: ExperimentSwitch) -> None:
    seen = learned.refresh()
    if seen.error:
        log.warning("policy not taken over", extra={"why": seen.error, "serving": seen.version})
    elif seen.changed:
        log.info("policy taken over", extra={"serving": seen.version})
    if error := experiments.refresh():
        log.warning("experiment not served", extra={"why": error})
