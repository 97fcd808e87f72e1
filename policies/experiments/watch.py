"""Looks at a running experiment, and moves it on: to the next stage, to its end, or back."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

from policies.experience.record import Experience, ExperienceRecord
from policies.experiments.assignment import CONTROL, TREATMENT, unit_of
from policies.experiments.experiment import Experiment, Experiments
from policies.experiments.observation import ArmView, Observation, views
from policies.experiments.rollout import RolloutReport, Verdict, look
from policies.experiments.serving import ARM, EXPERIMENT, STAGE
from policies.registry.registry import Action, Index, PolicyRegistry
from policies.rewards.reward import earned
from policies.rewards.settings import RewardSettings


class ExperienceReader(Protocol):
    """What the watch needs of a store."""

    def iterate(self, since: datetime, until: datetime) -> Iterator[Experience]:
        """See `ExperienceStore.iterate`."""
        ...


@dataclass(frozen=True, slots=True)
class Looked:
    """An experiment with what its arms look like now."""

    experiment: Experiment
    control: ArmView
    treatment: ArmView
    report: RolloutReport


class ExperimentWatch:
    """Synchronous; call `step` from a thread now and then."""

    def __init__(
        self,
        registry: PolicyRegistry,
        experiments: Experiments,
        experience: ExperienceReader,
        settings: RewardSettings | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._registry, self._experiments, self._experience = registry, experiments, experience
        self._settings = settings or RewardSettings()
        self._now = now

    def look(self) -> Looked | None:
        """How the running experiment stands; changes nothing. None: none runs.

        At the last stage, where nobody is left untreated, control is that of the stage before.

        Raises:
            StorageUnavailable: experience or registry cannot be read.
        """
        experiment = self._experiments.running()
        return None if experiment is None else self.look_at(experiment)

    def look_at(self, experiment: Experiment) -> Looked:
        """How an experiment stands, or stood at its last stage when it is over; feedback that has
        come since then counts. Raises like `look`.
        """
        now = experiment.ended_at or self._now()
        begin = experiment.stage_starts[-1]
        arms = views(self._observed(experiment, experiment.stage, begin, now))
        control = arms[CONTROL]
        if experiment.settings.stages[experiment.stage] == 1 and experiment.stage:
            earlier = experiment.stage - 1
            before = self._observed(experiment, earlier, experiment.stage_starts[-2], begin)
            control = views(before)[CONTROL]
        report = look(control, arms[TREATMENT], experiment.stage, experiment.settings)
        return Looked(experiment, control, arms[TREATMENT], report)

    def step(self) -> Looked | None:
        """Look, and do what the verdict says. Several may step at once: one of them acts.

        A promotion that failed, or that nobody lived to do, is tried again at each step.
        """
        looked = self.look()
        if looked is not None:
            self._act(looked)
        else:
            for last in self._experiments.all()[-1:]:
                self._promote(last)
        return looked

    def _act(self, looked: Looked) -> None:
        experiment, report, at = looked.experiment, looked.report, self._now()
        if self._registry.index().current != experiment.control:
            reason = "another policy was promoted: control is no longer what it was"
            self._experiments.replace(experiment, experiment.ended("stopped", at, reason))
            return
        match report.verdict:
            case Verdict.WAIT:
                pass
            case Verdict.ADVANCE:
                self._experiments.replace(experiment, experiment.advanced(at))
            case Verdict.STOP:
                ended = experiment.ended("stopped", at, report.reason)
                self._experiments.replace(experiment, ended)
            case Verdict.FINISH:
                # Ended first: who loses the race must not promote. Control serves in between.
                ended = experiment.ended("finished", at, report.reason)
                if self._experiments.replace(experiment, ended):
                    self._promote(ended)

    def _promote(self, experiment: Experiment) -> None:
        """Let the treatment of a finished experiment serve, unless it did or others decided."""
        ended_at = experiment.ended_at
        if experiment.status != "finished" or ended_at is None:
            return

        def is_settled(index: Index) -> bool:
            since = [event.action for event in index.events if event.at >= ended_at]
            return index.current != experiment.control or any(a != Action.PUBLISH for a in since)

        if not is_settled(self._registry.index()):
            reason = f"experiment {experiment.name}: {experiment.reason}"
            self._registry.promote(experiment.treatment, reason, unless=is_settled)

    def _observed(
        self, experiment: Experiment, stage: int, since: datetime, until: datetime
    ) -> Iterator[Observation]:
        # By the stage that a request was decided in, as orchestrators follow some seconds later.
        marks = {EXPERIMENT: experiment.name, STAGE: stage}
        inside = (
            experience
            for experience in self._experience.iterate(since, until)
            if marks.items() <= experience.record.decision.details.items()
        )
        return observations(inside, experiment, self._now(), self._settings)


def observations(
    experiences: Iterable[Experience],
    experiment: Experiment,
    now: datetime,
    settings: RewardSettings,
) -> Iterator[Observation]:
    """Requests of an experiment as it counts them.

    A record of a request is some hundred times as large as what an experiment needs of it, so
    records are let go as they come.

    Args:
        experiences: requests that were decided in it.
        experiment: says what a unit is.
        now: younger requests than the settings want have no reward yet.
        settings: of the reward model.
    """
    seen: dict[str, Observation] = {}

    def noted() -> Iterator[Experience]:
        for experience in experiences:
            seen[experience.record.request_id] = _observation(experience.record, experiment)
            yield experience

    rewards = earned(noted(), now, settings)
    for request_id, observation in seen.items():
        reward = rewards.get(request_id)
        yield replace(observation, reward=reward.reward) if reward else observation


def _observation(record: ExperienceRecord, experiment: Experiment) -> Observation:
    unit = unit_of(experiment.unit, record.user_digest, record.session_digest, record.request_id)
    return Observation(
        unit=unit,
        arm="treatment" if record.decision.details.get(ARM) == TREATMENT else "control",
        intent=record.features.intent,
        total_ms=record.total_ms,
        failed=record.status != "ok",
        missing=bool(record.missing),
    )
