"""The policy that serves, following the registry without a restart."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policies.errors import PolicyError
from policies.policy import Outcome, Policy
from policies.registry.registry import PolicyRegistry
from policies.types import Decision, DecisionRequest


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a look at the registry led to."""

    version: str | None
    """What serves now; None: the fallback."""
    changed: bool
    error: str = ""
    """Why the registry's current version does not serve; what served before still does."""


class PolicySwitch:
    """Decides with the registry's current policy, or with the fallback when it has none.

    `refresh` reads and builds, which takes a while: call it from a thread. The swap itself is one
    assignment, so a decision uses the old policy or the new one, never a mixture.
    """

    def __init__(self, registry: PolicyRegistry, fallback: Policy) -> None:
        self._registry, self._fallback = registry, fallback
        self._active: Policy = fallback
        self._serving: str | None = None

    @property
    def name(self) -> str:
        """Family of what serves."""
        return self._active.name

    @property
    def version(self) -> str:
        """Version of what serves."""
        return self._active.version

    def refresh(self) -> Refreshed:
        """Look at the registry and follow it. What cannot be read changes nothing."""
        try:
            wanted = self._registry.index().current
            if wanted == self._serving:
                return Refreshed(self._serving, changed=False)
            policy = self._registry.load(wanted)[0] if wanted else self._fallback
        except PolicyError as error:
            return Refreshed(self._serving, changed=False, error=str(error))
        self._active, self._serving = policy, wanted
        return Refreshed(wanted, changed=True)

    def choose(
        self, requests: Sequence[DecisionRequest], rng: np.random.Generator
    ) -> list[Decision]:
        """See `Policy.choose`."""
        return self._active.choose(requests, rng)

    def update(self, outcomes: Sequence[Outcome]) -> None:
        """Passed on to what serves."""
        self._active.update(outcomes)
