"""Experiments as an operator works with them, from the command line and over HTTP alike.

Synchronous: a look reads every request of the experiment's stage.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import ValidationError

from policies.errors import PolicyInvalid
from policies.experience.store import ExperienceStore
from policies.experiments.assignment import Unit
from policies.experiments.experiment import Experiment
from policies.experiments.rollout import RolloutSettings
from policies.experiments.watch import ExperimentWatch, Looked
from policies.modes import Mode
from serve_app.config import TacticianConfig
from serve_app.errors import Conflict, NotFound, RequestRejected
from serve_app.parts.orchestrator import experiments_of, policy_registry


@dataclass(frozen=True, slots=True)
class Trial:
    """What is to be tried."""

    version: str
    """A published version, or how it begins."""
    name: str = ""
    """Another name is another split of the callers; empty makes one."""
    unit: Unit = "session"
    stages: tuple[float, ...] = (0.1, 0.5, 1.0)
    min_units: int = 200


class ExperimentDesk:
    """The experiments of a home."""

    def __init__(
        self, config: TacticianConfig, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._config, self._now = config, now

    def all(self) -> tuple[Experiment, ...]:
        """Oldest first. Raises `PolicyError` when the store cannot be read, as all others do."""
        return experiments_of(self._config).all()

    def named(self, name: str) -> Experiment:
        """One of them.

        Raises:
            NotFound: there is none of that name.
        """
        found = self.all()
        for experiment in found:
            if experiment.name == name:
                return experiment
        known = ", ".join(experiment.name for experiment in found) or "none"
        raise NotFound("name", f"no experiment {name!r}; there are: {known}")

    def running(self) -> Experiment:
        """The one that runs.

        Raises:
            Conflict: none does.
        """
        running = experiments_of(self._config).running()
        if running is None:
            raise Conflict("experiment", "none is running")
        return running

    def look(self, name: str) -> Looked:
        """How an experiment stands. Raises like `named`."""
        return self.look_at(self.named(name))

    def look_at(self, experiment: Experiment) -> Looked:
        """How it stands, or stood at its end."""
        store = ExperienceStore(self._config.experience_url)
        try:
            registry, experiments = policy_registry(self._config), experiments_of(self._config)
            return ExperimentWatch(registry, experiments, store, now=self._now).look_at(experiment)
        finally:
            store.close()

    def start(self, trial: Trial) -> Experiment:
        """Give a version to the first stage's share; running services follow within seconds.

        Raises:
            RequestRejected: a field of the trial is wrong.
            Conflict: the version serves already, another experiment runs, or one had this name, or
                learned policies do not act here.
        """
        mode = self._config.policy.mode
        if mode is not Mode.APPLY:
            detail = f"the rules act under policy.mode {mode}; an experiment needs {Mode.APPLY}"
            raise Conflict("mode", detail)
        registry, experiments = policy_registry(self._config), experiments_of(self._config)
        index = registry.index()
        try:
            entry = index.entry(trial.version)
        except PolicyInvalid as error:
            raise RequestRejected("version", str(error)) from error
        if entry.version == index.current:
            raise Conflict("version", f"{entry.version} serves already")
        registry.load(entry.version)  # what cannot be read cannot be tried
        experiment = _experiment(trial, entry.version, index.current, self._now())
        for known in experiments.all():
            if known.name == experiment.name:
                raise Conflict("name", f"there was an experiment {known.name!r}")
            if known.status == "running":
                raise Conflict("experiment", f"{known.name} is running; stop it first")
        try:
            experiments.start(experiment)
        except PolicyInvalid as error:  # somebody else was faster
            raise Conflict("experiment", str(error)) from error
        return experiment

    def stop(self, name: str, reason: str) -> Experiment:
        """End a running experiment: everybody gets control again within seconds.

        Raises:
            NotFound: there is none of that name.
            Conflict: it does not run any more.
        """
        experiments = experiments_of(self._config)
        while (experiment := self.named(name)).status == "running":
            ended = experiment.ended("stopped", self._now(), reason)
            if experiments.replace(experiment, ended):
                return ended
        raise Conflict("name", f"{name} is {experiment.status} already")

    def rollback(self, name: str, reason: str) -> Experiment:
        """Undo an experiment: stop it, or take back the promotion that it ended with.

        Raises:
            NotFound: there is none of that name.
            Conflict: what it tried does not serve, or still does since another promotion came in
                between and was taken back in its place.
        """
        experiment = self.named(name)
        if experiment.status == "running":
            return self.stop(name, reason)
        registry = policy_registry(self._config)
        if experiment.status != "finished" or registry.index().current != experiment.treatment:
            raise Conflict("name", f"{experiment.treatment} of {name} does not serve")
        if registry.rollback(f"experiment {name}: {reason}").current == experiment.treatment:
            raise Conflict("name", f"{experiment.treatment} of {name} still serves; try again")
        return experiment


def _experiment(trial: Trial, version: str, current: str | None, at: datetime) -> Experiment:
    try:
        return Experiment(
            name=trial.name or f"{version}-{at:%Y%m%d%H%M%S}",
            treatment=version,
            control=current,
            unit=trial.unit,
            settings=RolloutSettings(stages=trial.stages, min_units=trial.min_units),
            stage_starts=(at,),
        )
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0]) if first["loc"] else "experiment"
        raise RequestRejected(field, first["msg"].removeprefix("Value error, ")) from error
