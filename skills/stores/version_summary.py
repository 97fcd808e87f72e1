"""What a version contains, gathered passage by passage, and what may be put into one."""

from collections.abc import Mapping

from skills.errors import RequestInvalid
from skills.stores.fields import FieldTally, field_values
from skills.stores.index_version import VectorSpace, VersionRecord, now
from skills.stores.passage_json import decode_passage
from skills.stores.passage_payload import READERS, SECRECY, TENANT
from skills.stores.store import CollectionInfo, FieldSummary, FloatArray, IndexedPassage


class VersionSummary:
    """Counts passages, documents, words, fields and guards."""

    def __init__(self) -> None:
        self.passages = 0
        self._documents: set[str] = set()
        self._words = 0
        self._tally = FieldTally()
        self._guards: set[str] = set()

    def add(self, encoded: str, num_words: int) -> None:
        """Count one passage, given as `encode_passage` wrote it."""
        passage = decode_passage(encoded)
        about = passage.metadata
        self.passages += 1
        self._documents.add(passage.document_id)
        self._words += num_words
        self._tally.add(field_values(passage))
        used = {TENANT: about.tenant, READERS: about.allowed_roles, SECRECY: about.sensitive_flag}
        self._guards.update(key for key, value in used.items() if value)

    def record(
        self,
        collection: str,
        version: str,
        spaces: Mapping[str, VectorSpace],
        base: VersionRecord | None,
        mean_length: float | None = None,
    ) -> VersionRecord:
        """The record of the version that contains all this.

        Args:
            collection: its collection.
            version: its name.
            spaces: its vectors.
            base: the version it replaces.
            mean_length: the one that weights were made with, when it is not this summary's.
        """
        info = CollectionInfo(
            name=collection,
            version=version,
            passages=self.passages,
            documents=self.documents,
            created_at=now(),
            vectors={name: space.encoder for name, space in spaces.items()},
            fields=self.fields,
        )
        return VersionRecord(
            info=info,
            vectors=dict(spaces),
            mean_length=self.mean_length if mean_length is None else mean_length,
            guards=self.guards,
            previous=base.info.version if base else "",
        )

    @property
    def documents(self) -> int:
        """How many documents the passages come from."""
        return len(self._documents)

    @property
    def mean_length(self) -> float:
        """Words of a passage, on average; 1 when there are none."""
        return max(1.0, self._words / self.passages) if self.passages else 1.0

    @property
    def guards(self) -> tuple[str, ...]:
        """Payload keys of the access rules that any passage uses."""
        return tuple(sorted(self._guards))

    @property
    def fields(self) -> tuple[FieldSummary, ...]:
        """The fields, by name."""
        return self._tally.summaries()


def checked_vectors(
    given: IndexedPassage, spaces: Mapping[str, VectorSpace]
) -> Mapping[str, FloatArray]:
    """The vectors of a passage, when they are those that the collection wants.

    Raises:
        RequestInvalid: one is missing or too many, has another shape, or holds no finite number.
    """
    name = given.passage.id
    if given.vectors.keys() != spaces.keys():
        raise RequestInvalid(
            "vectors", f"passage {name!r} has {sorted(given.vectors)}, not {sorted(spaces)}"
        )
    for vector_name, vector in given.vectors.items():
        space = spaces[vector_name]
        if not space.fits(vector):
            raise RequestInvalid(
                "vectors",
                f"{vector_name!r} of passage {name!r} is no {space.shape} array of finite numbers",
            )
    return given.vectors
