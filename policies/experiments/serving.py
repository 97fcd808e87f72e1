"""The policy that serves while an experiment runs: control or treatment, by the caller's unit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from policies.errors import PolicyError
from policies.experiments.assignment import TREATMENT, Arm, unit_of
from policies.experiments.experiment import Experiment, Experiments
from policies.policy import Outcome, Policy
from policies.registry.registry import PolicyRegistry
from policies.types import Decision, DecisionRequest
from skills.types import Scalar

EXPERIMENT, ARM, STAGE = "experiment.name", "experiment.arm", "experiment.stage"
"""Names in the details of a decision that was made in an experiment."""


@dataclass(frozen=True, slots=True)
class _Trial:
    experiment: Experiment
    treatment: Policy


class ExperimentSwitch:
    """Decides as control does, and as the treatment for the units that an experiment gives it.

    `refresh` reads and builds: call it from a thread. The swap is one assignment.
    """

    def __init__(self, control: Policy, registry: PolicyRegistry, experiments: Experiments) -> None:
        self._control, self._registry, self._experiments = control, registry, experiments
        self._trial: _Trial | None = None

    @property
    def name(self) -> str:
        """Family of control."""
        return self._control.name

    @property
    def version(self) -> str:
        """Version of control."""
        return self._control.version

    @property
    def experiment(self) -> Experiment | None:
        """The one that is served."""
        return self._trial.experiment if self._trial else None

    def refresh(self) -> str:
        """Look for an experiment and follow it; a treatment that cannot be read is not served.

        Returns:
            What went wrong; empty when nothing did.
        """
        trial = self._trial
        try:
            running = self._experiments.running()
            if running is None:
                self._trial = None
            elif trial is None or trial.experiment.treatment != running.treatment:
                self._trial = _Trial(running, self._registry.load(running.treatment)[0])
            elif trial.experiment != running:
                self._trial = replace(trial, experiment=running)
        except PolicyError as error:
            return str(error)
        return ""

    def choose(
        self, requests: Sequence[DecisionRequest], rng: np.random.Generator
    ) -> list[Decision]:
        """See `Policy.choose`; decisions of an experiment say which, which arm and which stage."""
        trial = self._trial
        if trial is None:
            return self._control.choose(requests, rng)
        split = trial.experiment.split
        arms: list[Arm] = [
            split.arm(unit_of(split.unit, r.user, r.session, r.request_id)) for r in requests
        ]
        decided: dict[int, Decision] = {}
        for arm, policy in (("control", self._control), (TREATMENT, trial.treatment)):
            rows = [i for i, given in enumerate(arms) if given == arm]
            if rows:
                made = policy.choose([requests[i] for i in rows], rng)
                decided |= {
                    i: _marked(d, trial.experiment, arm) for i, d in zip(rows, made, strict=True)
                }
        return [decided[i] for i in range(len(requests))]

    def update(self, outcomes: Sequence[Outcome]) -> None:
        """Control learns; the treatment is tried as it is."""
        self._control.update(outcomes)


def _marked(decision: Decision, experiment: Experiment, arm: str) -> Decision:
    marks: dict[str, Scalar] = {EXPERIMENT: experiment.name, ARM: arm, STAGE: experiment.stage}
    return replace(decision, details={**decision.details, **marks})
