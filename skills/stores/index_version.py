"""What is written down about one version of a collection beside its points."""

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict

from skills.errors import RequestInvalid, SkillUnavailable
from skills.stores.store import CollectionInfo

FORMAT = 1
"""Raised when the layout changes in a way that older readers would misread."""


class VectorSpace(BaseModel):
    """One named vector of a collection."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    encoder: str
    dim: int


class VersionRecord(BaseModel):
    """Everything that a reader must know before it opens a version."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int = FORMAT
    info: CollectionInfo
    vectors: dict[str, VectorSpace]
    mean_length: float
    """Words of a passage, on average: the one that the BM25 weights were made with."""
    guards: tuple[str, ...]
    """Payload keys of the access rules that any passage uses."""
    previous: str = ""
    """The version that this one replaced."""

    @classmethod
    def read(cls, text: str, source: str) -> "VersionRecord":
        """Parse what `write` wrote.

        Raises:
            SkillUnavailable: damaged, or written by a newer release.
        """
        try:
            record = cls.model_validate_json(text)
        except ValueError as error:
            raise SkillUnavailable(source, f"is damaged, ingest it again: {error}") from error
        if record.format > FORMAT:
            raise SkillUnavailable(
                source, f"has format {record.format}; this release reads up to {FORMAT}"
            )
        return record

    def write(self) -> str:
        """As JSON."""
        return self.model_dump_json()


def new_version(previous: str) -> str:
    """A name that sorts after the previous one and is never used twice, not even by a collection
    that was removed and made again.
    """
    number = int(previous[1:7]) + 1 if previous else 1
    return f"v{number:06d}-{uuid.uuid4().hex[:8]}"


def now() -> str:
    """The time of day as metadata has it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def check_vectors(
    collection: str, given: Mapping[str, tuple[str, int]], stored: Mapping[str, VectorSpace]
) -> None:
    """Compare the vectors that a writer brings with those of the collection.

    Raises:
        RequestInvalid: they differ; says how.
    """
    brought = {name: VectorSpace(encoder=e, dim=d) for name, (e, d) in given.items()}
    if brought != dict(stored):
        raise RequestInvalid(
            "vectors",
            f"collection {collection!r} was made with {_listed(stored)}, not with "
            f"{_listed(brought)}; use another collection name, or remove this one first",
        )


def _listed(vectors: Mapping[str, VectorSpace]) -> str:
    return ", ".join(f"{n}={v.encoder}/{v.dim}" for n, v in sorted(vectors.items())) or "no vectors"
