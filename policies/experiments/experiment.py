"""Experiments as they are kept: which policy is tried, how far it has come, how it ended."""

from collections.abc import Callable
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from policies.errors import PolicyInvalid, StorageUnavailable
from policies.experiments.assignment import Split, Unit
from policies.experiments.rollout import RolloutSettings
from policies.registry.store import ObjectStore

KEY = "experiments.json"
_ATTEMPTS = 50


class Experiment(BaseModel):
    """One policy tried against what serves."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")
    treatment: str
    """Version of the policy that is tried."""
    control: str | None
    """Version that served when it began; None: the rules."""
    unit: Unit = "session"
    settings: RolloutSettings = RolloutSettings()
    stage_starts: tuple[datetime, ...] = Field(min_length=1)
    """When each stage so far began; aware."""
    status: Literal["running", "finished", "stopped"] = "running"
    ended_at: datetime | None = None
    reason: str = ""
    """Why it ended."""

    @property
    def stage(self) -> int:
        """Index into the stages of its settings."""
        return len(self.stage_starts) - 1

    @property
    def split(self) -> Split:
        """Who gets the treatment now."""
        share = self.settings.stages[self.stage]
        return Split(experiment=self.name, unit=self.unit, share=share)

    def advanced(self, at: datetime) -> "Experiment":
        """At its next stage."""
        return self.model_copy(update={"stage_starts": (*self.stage_starts, at)})

    def ended(
        self, status: Literal["finished", "stopped"], at: datetime, reason: str
    ) -> "Experiment":
        """Over."""
        return self.model_copy(update={"status": status, "ended_at": at, "reason": reason})


class _File(BaseModel):
    """`experiments.json`, oldest first."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    experiments: tuple[Experiment, ...] = ()


class Experiments:
    """All experiments of a registry; at most one runs. Safe with several writers and readers."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def all(self) -> tuple[Experiment, ...]:
        """Oldest first.

        Raises:
            StorageUnavailable: the store cannot be read.
            PolicyInvalid: it holds something else.
        """
        return self._read()[0].experiments

    def running(self) -> Experiment | None:
        """The one that runs, if any. Raises like `all`."""
        found = self.all()
        return found[-1] if found and found[-1].status == "running" else None

    def start(self, experiment: Experiment) -> None:
        """Begin one.

        Raises:
            PolicyInvalid: another one runs, or had this name: names decide who is treated.
        """

        def add(file: _File) -> _File:
            if file.experiments and file.experiments[-1].status == "running":
                detail = f"{file.experiments[-1].name} is running; stop it first"
                raise PolicyInvalid(experiment.name, detail)
            if any(known.name == experiment.name for known in file.experiments):
                raise PolicyInvalid(experiment.name, "there was an experiment of this name")
            return file.model_copy(update={"experiments": (*file.experiments, experiment)})

        self._change(add)

    def replace(self, old: Experiment, new: Experiment) -> bool:
        """Move the running experiment on, unless somebody else has done so already."""

        def change(file: _File) -> _File:
            if not file.experiments or file.experiments[-1] != old:
                return file
            return file.model_copy(update={"experiments": (*file.experiments[:-1], new)})

        return self._change(change).experiments[-1:] == (new,)

    def _read(self) -> tuple[_File, str | None]:
        stored = self._store.read(KEY)
        if stored is None:
            return _File(), None
        try:
            return _File.model_validate_json(stored.data), stored.tag
        except ValidationError as error:
            raise PolicyInvalid(KEY, f"cannot be read by this release: {error}") from error

    def _change(self, change: Callable[[_File], _File]) -> _File:
        for _ in range(_ATTEMPTS):
            file, tag = self._read()
            changed = change(file)
            data = changed.model_dump_json(indent=1).encode()
            if changed is file or self._store.write(KEY, data, expected=tag):
                return changed
        raise StorageUnavailable(KEY, f"changed {_ATTEMPTS} times while it was to be changed")
