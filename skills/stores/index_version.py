"""What is written down about one version of a collection beside its points."""

import re
import uuid
from collections.abc import Collection, Mapping
from datetime import UTC, datetime

import numpy as np
from pydantic import BaseModel, ConfigDict

from skills.errors import RequestInvalid, SkillUnavailable
from skills.stores.store import CollectionInfo, FloatArray

FORMAT = 1
"""Raised when the layout changes in a way that older readers would misread."""


COLLECTION_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
VERSION_NAME = re.compile(r"v\d{6}-[0-9a-f]{8}")


def check_name(collection: str) -> None:
    """Refuse what cannot be the name of a collection.

    Raises:
        RequestInvalid: says what a name is.
    """
    if not COLLECTION_NAME.fullmatch(collection):
        raise RequestInvalid(
            "collection",
            f"{collection!r} is no name: lower-case letters, digits, `-` and `_`, at most 64, "
            "beginning with a letter or digit",
        )


def unknown_collection(collection: str) -> RequestInvalid:
    """The error for a collection that is not there. It names no other: they may be of tenants
    that the caller must not know of.
    """
    return RequestInvalid("collection", f"there is no collection {collection!r}")


def unknown_version(collection: str, version: str) -> RequestInvalid:
    """The error for a version that is not there."""
    return RequestInvalid("collection", f"{collection!r} has no version {version!r} any more")


class VectorSpace(BaseModel):
    """One named vector of a collection."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    encoder: str
    dim: int
    multi: bool = False
    """One row a token instead of one vector a passage; compared by MaxSim."""

    @property
    def shape(self) -> str:
        """For messages."""
        return f"(tokens, {self.dim})" if self.multi else f"({self.dim},)"

    def fits(self, vector: FloatArray) -> bool:
        """Whether an array is one of these vectors, all numbers finite."""
        ends = vector.ndim == 1 + self.multi and vector.shape[-1] == self.dim
        return ends and vector.size > 0 and bool(np.isfinite(vector).all())


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
    concepts: frozenset[str] = frozenset()
    """Ids of the concepts that its texts were searched for."""
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


def vector_spaces(
    vectors: Mapping[str, tuple[str, int]], multi: Collection[str]
) -> dict[str, VectorSpace]:
    """The vectors of a collection, from how `WritableStore.writer` is told of them."""
    return {
        name: VectorSpace(encoder=encoder, dim=dim, multi=name in multi)
        for name, (encoder, dim) in vectors.items()
    }


def check_vectors(
    collection: str, given: Mapping[str, VectorSpace], stored: Mapping[str, VectorSpace]
) -> None:
    """Compare the vectors that a writer brings with those of the collection.

    Raises:
        RequestInvalid: they differ; says how.
    """
    if dict(given) != dict(stored):
        raise RequestInvalid(
            "vectors",
            f"collection {collection!r} was made with {_listed(stored)}, not with "
            f"{_listed(given)}; use another collection name, or remove this one first",
        )


def _listed(vectors: Mapping[str, VectorSpace]) -> str:
    return (
        ", ".join(
            f"{n}={v.encoder}/{v.dim}{' a token' if v.multi else ''}"
            for n, v in sorted(vectors.items())
        )
        or "no vectors"
    )
