"""What is known of drift, as it is kept beside the policies: how far it was looked for, alarms, and
until when exploration is raised.
"""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from policies.errors import PolicyInvalid
from policies.registry.store import ObjectStore

KEY = "drift.json"
MAX_ALARMS = 50

Kind = Literal["queries", "rewards", "skills"]


class Alarm(BaseModel):
    """One change that was noticed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    at: datetime
    kind: Kind
    subject: str
    """A feature, a plan or a skill."""
    before: float
    now: float
    p_value: float
    detail: str
    """For a person."""


class Mark(BaseModel):
    """How far one kind of experience was looked at."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    since: datetime
    """Where the reference begins."""
    until: datetime
    """Where the next window begins, once the reference is full."""


class DriftState(BaseModel):
    """`drift.json`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    marks: dict[str, Mark] = Field(default_factory=dict)
    alarms: tuple[Alarm, ...] = ()
    """The last ones, oldest first."""
    num_alarms: int = 0
    """Ever."""
    raised_until: datetime | None = None

    def raised(self, now: datetime) -> bool:
        """Whether exploration is raised."""
        return self.raised_until is not None and now < self.raised_until

    def marked(self, track: str, mark: Mark) -> "DriftState":
        """With another mark."""
        return self.model_copy(update={"marks": {**self.marks, track: mark}})

    def alarmed(self, alarms: tuple[Alarm, ...], raised_until: datetime) -> "DriftState":
        """With further alarms."""
        return self.model_copy(
            update={
                "alarms": (*self.alarms, *alarms)[-MAX_ALARMS:],
                "num_alarms": self.num_alarms + len(alarms),
                "raised_until": raised_until,
            }
        )


class DriftBook:
    """Reads and writes the state; several readers, and writers that do not undo one another."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def read(self) -> DriftState:
        """The state now.

        Raises:
            StorageUnavailable: the store cannot be read.
            PolicyInvalid: it holds something else.
        """
        return self._read()[0]

    def replace(self, old: DriftState, new: DriftState) -> bool:
        """Write the new state, unless somebody has changed the old one. Raises like `read`."""
        state, tag = self._read()
        if state != old:
            return False
        return self._store.write(KEY, new.model_dump_json(indent=1).encode(), expected=tag)

    def _read(self) -> tuple[DriftState, str | None]:
        stored = self._store.read(KEY)
        if stored is None:
            return DriftState(), None
        try:
            return DriftState.model_validate_json(stored.data), stored.tag
        except ValidationError as error:
            raise PolicyInvalid(KEY, f"cannot be read by this release: {error}") from error
