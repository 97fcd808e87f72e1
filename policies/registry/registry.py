"""The policy registry: which versions there are, which one serves, and how that came about."""

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, ValidationError

from policies.errors import PolicyInvalid, StorageUnavailable
from policies.learned.policy import LearnedPolicy
from policies.registry.artifact import dump_policy, load_policy
from policies.registry.card import PolicyCard
from policies.registry.store import ObjectStore

INDEX = "registry.json"
_ATTEMPTS = 50


class Action(StrEnum):
    """What was done to the registry."""

    PUBLISH = "publish"
    PROMOTE = "promote"
    ROLLBACK = "rollback"


class Event(BaseModel):
    """One line of the registry's history."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    at: datetime
    action: Action
    version: str | None
    """What serves afterwards (promote, rollback) or was added (publish); None is the rules."""
    previous: str | None = None
    """What served before."""
    reason: str = ""


class Entry(BaseModel):
    """One published version."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: str
    name: str
    sha256: str
    num_bytes: int
    card: PolicyCard

    @property
    def key(self) -> str:
        """Of the artifact in the store."""
        return f"artifacts/{self.version}-{self.sha256[:12]}.zip"


class Index(BaseModel):
    """`registry.json`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int = 1
    current: str | None = None
    """The version that serves; None: rules."""
    entries: tuple[Entry, ...] = ()
    events: tuple[Event, ...] = ()

    def entry(self, version: str) -> Entry:
        """The entry whose version is, or begins with, the given one.

        Raises:
            PolicyInvalid: there is none, or several.
        """
        found = [entry for entry in self.entries if entry.version.startswith(version)]
        if version and len(found) == 1:
            return found[0]
        known = ", ".join(entry.version for entry in self.entries) or "none"
        detail = "names several versions" if found else "is no published version"
        raise PolicyInvalid(version or "version", f"{detail}; there are: {known}")


class PolicyRegistry:
    """Published policies on an object store; safe with several writers and readers."""

    def __init__(
        self, store: ObjectStore, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._store = store
        self._now = now

    def index(self) -> Index:
        """What there is now."""
        return self._read()[0]

    def publish(self, policy: LearnedPolicy, card: PolicyCard) -> Entry:
        """Add a policy; it serves when it is promoted. Adding it again changes nothing."""
        return self.import_file(dump_policy(policy, card), reason=f"trained from {card.source}")

    def import_file(self, data: bytes, reason: str = "imported") -> Entry:
        """Add an artifact that another registry exported; one that is damaged here becomes whole.

        Raises:
            PolicyInvalid: it is damaged or of another release.
            StorageUnavailable: it cannot be written.
        """
        policy, card = load_policy(data)
        entry = Entry(
            version=policy.version,
            name=policy.name,
            sha256=hashlib.sha256(data).hexdigest(),
            num_bytes=len(data),
            card=card,
        )
        # The artifact first: an index never names what is not there.
        self._keep(entry.key, data)

        def add(index: Index) -> Index:
            if any(known.version == entry.version for known in index.entries):
                return index
            event = Event(
                at=self._now(), action=Action.PUBLISH, version=entry.version, reason=reason
            )
            return index.model_copy(
                update={
                    "entries": (*index.entries, entry),
                    "events": (*index.events, event),
                }
            )

        return self._change(add).entry(entry.version)

    def _keep(self, key: str, data: bytes) -> None:
        """Write an artifact, unless it is there and whole."""
        for _ in range(_ATTEMPTS):
            there = self._store.read(key)
            if there is not None and there.data == data:
                return
            if self._store.write(key, data, expected=there.tag if there else None):
                return
        raise StorageUnavailable(key, "is being written by others all the time")

    def export(self, version: str) -> bytes:
        """The artifact of a version, verified.

        Raises:
            PolicyInvalid: no such version, or its artifact is damaged.
        """
        return self._artifact(self.index().entry(version))

    def load(self, version: str) -> tuple[LearnedPolicy, Entry]:
        """The policy of a version.

        Raises:
            PolicyInvalid: no such version, or its artifact is damaged or of another release.
        """
        entry = self.index().entry(version)
        policy, _ = load_policy(self._artifact(entry), entry.key)
        return policy, entry

    def promote(
        self, version: str, reason: str = "", unless: Callable[[Index], bool] = lambda _: False
    ) -> Index:
        """Let a version serve; it is loaded first, so what cannot be read cannot be promoted.

        Nothing changes when it serves already: a caller may try again, and one rollback undoes it.

        Args:
            version: a published one, or how it begins.
            reason: kept with the event.
            unless: nothing changes when it is true of the index as it then is.

        Raises:
            PolicyInvalid: no such version, or it cannot be read.
        """
        _, entry = self.load(version)
        return self._serve(
            lambda index: index.current if unless(index) else entry.version, Action.PROMOTE, reason
        )

    def rollback(self, reason: str = "") -> Index:
        """Let that serve which served before the last promotion that still stands; None: rules.

        Rolling back twice goes back twice.

        Raises:
            PolicyInvalid: nothing was promoted.
        """
        return self._serve(_before, Action.ROLLBACK, reason)

    def _serve(self, choose: Callable[[Index], str | None], action: Action, reason: str) -> Index:
        def change(index: Index) -> Index:
            version = choose(index)
            if action is Action.PROMOTE and version == index.current:
                return index
            event = Event(
                at=self._now(),
                action=action,
                version=version,
                previous=index.current,
                reason=reason,
            )
            return index.model_copy(update={"current": version, "events": (*index.events, event)})

        return self._change(change)

    def _artifact(self, entry: Entry) -> bytes:
        stored = self._store.read(entry.key)
        if stored is None:
            raise PolicyInvalid(entry.key, "is missing from the store")
        if hashlib.sha256(stored.data).hexdigest() != entry.sha256:
            raise PolicyInvalid(entry.key, "is damaged: its checksum does not match the registry's")
        return stored.data

    def _read(self) -> tuple[Index, str | None]:
        stored = self._store.read(INDEX)
        if stored is None:
            return Index(), None
        try:
            return Index.model_validate_json(stored.data), stored.tag
        except ValidationError as error:
            raise PolicyInvalid(INDEX, f"cannot be read by this release: {error}") from error

    def _change(self, change: Callable[[Index], Index]) -> Index:
        """Read, change, write; again when another writer was faster."""
        for _ in range(_ATTEMPTS):
            index, tag = self._read()
            changed = change(index)
            data = changed.model_dump_json(indent=1).encode()
            if changed is index or self._store.write(INDEX, data, expected=tag):
                return changed
        raise StorageUnavailable(INDEX, f"changed {_ATTEMPTS} times while it was to be changed")


def _before(index: Index) -> str | None:
    """What served before the promotion that made the current version serve."""
    standing: list[Event] = []
    for event in index.events:
        if event.version == event.previous:  # earlier releases recorded these
            continue
        if event.action is Action.PROMOTE:
            standing.append(event)
        elif event.action is Action.ROLLBACK and standing:
            standing.pop()
    if not standing:
        raise PolicyInvalid("rollback", "no promotion to roll back: rules are serving")
    return standing[-1].previous
