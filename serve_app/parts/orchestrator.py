"""The policy as a part."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from policies.errors import PolicyError
from policies.plan import PLANS, load_plans
from policies.policy import Policy
from policies.rules import RULES, RulesPolicy, load_rules
from policies.types import Decision, DecisionRequest
from serve_app.config import TacticianConfig
from skills.errors import SkillError, SkillFailed


class OrchestratorPart:
    """Features to a decision."""

    def __init__(self, policy: Policy, rng: np.random.Generator) -> None:
        self._policy = policy
        self._rng = rng

    @classmethod
    def build(cls, config: TacticianConfig) -> Self:
        """The policy that the configuration names."""
        plans = load_plans((PLANS, *config.plan_dirs))
        rules = load_rules(config.rules_file or RULES, plans)
        return cls(RulesPolicy(rules), np.random.default_rng(config.seed))

    async def run(self, requests: Sequence[DecisionRequest]) -> list[Decision | SkillError]:
        """Choose plans."""
        try:
            return list(self._policy.choose(requests, self._rng))
        except PolicyError:
            return [self._one(request) for request in requests]

    def _one(self, request: DecisionRequest) -> Decision | SkillError:
        try:
            return self._policy.choose([request], self._rng)[0]
        except PolicyError as error:
            return SkillFailed("orchestrator", str(error))

    async def check_health(self) -> None:
        """Nothing it depends on can be away."""
