"""Value types that every part shares. Imports nothing local, holds no behaviour beyond its own
fields.

These travel between processes with every request, so they are slotted dataclasses and not pydantic
models: input is validated where it enters (HTTP, files, manifests), never again between our own
parts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from operator import attrgetter
from typing import Any

Scalar = str | int | float | bool


def pickle_by_fields(cls: type) -> None:
    """Give a slotted dataclass with at least two fields a faster way to be pickled.

    What dataclasses generate looks the fields up for every object: ten hits there and back took
    184 microseconds and take 76 (Python 3.11, 2026-11), and hits travel in every call.
    """
    values = attrgetter(*(f.name for f in fields(cls)))

    def reduce(self: object) -> tuple[type, tuple[Any, ...]]:
        return cls, values(self)

    cls.__reduce__ = reduce  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class FactAnchor:
    """One checkable statement found in a passage: an entity, what is said of it, and the value."""

    entity: str
    attribute: str = ""
    value: float | None = None
    unit: str = ""
    date: str = ""


@dataclass(frozen=True, slots=True)
class PassageMetadata:
    """What is known of a passage beside its text. Every field has a filterable name.

    `attributes` holds whatever the source itself says (company, fiscal_year, repo …); a filter
    names
    such a field as it is, see `Condition`.
    """

    source_type: str = ""
    """pdf, docx, pptx, html, markdown, text, code, table, json, web, mail, passages, rows"""
    source_url: str = ""
    db_table: str = ""
    last_updated: str = ""
    """ISO 8601 with offset, empty when unknown."""
    author: str = ""
    confidence_level: float = 1.0
    """How far the source is to be trusted, 0 to 1."""
    sensitive_flag: bool = False
    domain_tags: tuple[str, ...] = ()
    heading_path: tuple[str, ...] = ()
    language: str = ""
    """ISO 639-1: zh, en …; `code` for program text; empty when unknown."""
    allowed_roles: tuple[str, ...] = ()
    """Roles that may read the passage; empty means everyone of the tenant."""
    tenant: str = ""
    """Empty means every tenant."""
    page: int | None = None
    fact_anchors: tuple[FactAnchor, ...] = ()
    attributes: Mapping[str, Scalar | tuple[Scalar, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Passage:
    """The indexed unit."""

    id: str
    document_id: str
    text: str
    title: str = ""
    metadata: PassageMetadata = field(default_factory=PassageMetadata)


@dataclass(frozen=True, slots=True)
class Condition:
    """A statement about one metadata field; all the bounds that are given must hold.

    `field` is a `PassageMetadata` field or, failing that, the name of a source attribute. Of a
    field with
    several values one value is enough. `gte`, `gt`, `lte`, `lt` are numbers, or ISO 8601 strings
    for times.
    """

    field: str
    any_of: tuple[Scalar, ...] = ()
    none_of: tuple[Scalar, ...] = ()
    gte: float | str | None = None
    gt: float | str | None = None
    lte: float | str | None = None
    lt: float | str | None = None


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions that must all hold. Empty filters accept everything."""

    all_of: tuple[Condition, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.all_of)

    def also(self, other: "Filters") -> "Filters":
        """Both: what passes these filters and the other ones."""
        return Filters(self.all_of + tuple(c for c in other.all_of if c not in self.all_of))


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. Stores apply it to every search, skills never have to."""

    tenant: str = ""
    roles: tuple[str, ...] = ()
    clearance: bool = False
    """May read passages whose `sensitive_flag` is set. Keys without it never see them."""


OPERATOR = Caller(clearance=True)
"""The local command line and tests: no tenant, everything readable that no role guards."""


class MissingReason(StrEnum):
    """Why something could not be delivered. The closed set of DESIGN.md section 3."""

    NO_EVIDENCE = "no_evidence"
    TIMED_OUT = "timed_out"
    UNAVAILABLE = "unavailable"
    FORBIDDEN = "forbidden"
    STALE_ONLY = "stale_only"
    OVER_BUDGET = "over_budget"
    CONFLICTING = "conflicting"
    NOT_SUPPORTED = "not_supported"


@dataclass(frozen=True, slots=True)
class Missing:
    """What could not be delivered, why, and what a person can do about it."""

    reason: MissingReason
    subject: str
    """A skill, an entity of the query or a field of the answer."""
    detail: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """One appearance of a passage: in which stage, by which skill, at which rank (from 1), with
    which score.
    """

    stage: int
    skill: str
    rank: int
    score: float
    group: str = ""
    """Which side of a comparison, or which rewriting of the query, found it; empty for the query
    itself."""
    parts: tuple[tuple[str, float], ...] = ()
    """What the score is made of, by name, the largest first, from skills that can say it."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage in a ranking. The order of the ranking is the order of the tuple that holds it,
    best first.
    """

    passage: Passage
    score: float
    provenance: tuple[Provenance, ...] = ()


@dataclass(frozen=True, slots=True)
class Arm:
    """One ranking that goes into a fusion."""

    skill: str
    hits: tuple[Hit, ...]
    group: str = ""


@dataclass(frozen=True, slots=True)
class SubQuery:
    """A query that a skill made of the user's: one side of a comparison, or a rewriting.

    The next stage's calls run once for each sub-query instead of once for the query.
    """

    text: str
    group: str
    filters: Filters = field(default_factory=Filters)


@dataclass(frozen=True, slots=True)
class Dropped:
    """A passage that a stage had and did not pass on."""

    passage_id: str
    document_id: str
    reason: str
    """fused_out, reranked_down, filtered, duplicate, per_document_cap, below_top_k"""
    detail: str = ""


for _travels in (FactAnchor, PassageMetadata, Passage, Condition, Provenance, Hit, Arm, Dropped):
    pickle_by_fields(_travels)
