"""Judgments that a ranker can be trained on: a judged folder, a file of grades, experience."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from policies.errors import DatasetInvalid
from policies.evaluation.dataset import load_dataset
from policies.experience.store import ExperienceStore
from policies.rewards.grades import IRRELEVANT, graded_queries


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    """A query and what of its results are worth."""

    id: str
    text: str
    grades: Mapping[str, int]
    """0 is irrelevant."""
    by: Literal["document", "passage"]
    """What the grades name."""
    is_complete: bool = False
    """What is not named is irrelevant; otherwise nothing is known of it."""


class _GradedLine(BaseModel):
    """One line of a file of grades."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    query: str = Field(min_length=1)
    passage: str = Field(min_length=1)
    grade: int = Field(ge=1, le=5)


def judged_folder(folder: Path) -> list[JudgedQuery]:
    """The queries of a folder with `corpus.jsonl`, `queries.jsonl` and `qrels.tsv`.

    Raises:
        DatasetInvalid: names file and line.
    """
    dataset = load_dataset(folder)
    return [
        JudgedQuery(
            query.id,
            query.text,
            {d: max(0, grade) for d, grade in dataset.qrels[query.id].items()},
            "document",
            is_complete=True,
        )
        for query in dataset.queries
    ]


def judged_file(path: Path) -> list[JudgedQuery]:
    """The queries of a JSONL file: `{"query": …, "passage": ID, "grade": 1}`, grades 1 to 5, where
    1 is irrelevant.

    Raises:
        DatasetInvalid: names file and line.
    """
    found: dict[str, dict[str, int]] = {}
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise DatasetInvalid(str(path), f"cannot be read: {error}") from error
    for number, raw in enumerate(lines, start=1):
        if not raw.strip():
            continue
        try:
            line = _GradedLine.model_validate(orjson.loads(raw))
        except orjson.JSONDecodeError as error:
            raise DatasetInvalid(f"{path}, line {number}", f"is no JSON: {error}") from error
        except ValidationError as error:
            first = error.errors()[0]
            detail = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
            raise DatasetInvalid(f"{path}, line {number}", detail) from error
        found.setdefault(line.query, {})[line.passage] = line.grade
    return list(_graded(found))


def judged_experience(
    url: str, since: datetime, until: datetime, collection: str
) -> list[JudgedQuery]:
    """The queries of a window whose users said something about single passages.

    Raises:
        StorageUnavailable: the experience cannot be read.
    """
    store = ExperienceStore(url)
    try:
        return list(_graded(graded_queries(store.iterate(since, until, collection=collection))))
    finally:
        store.close()


def _graded(found: Mapping[str, Mapping[str, int]]) -> Iterable[JudgedQuery]:
    for query, grades in found.items():
        name = hashlib.sha256(query.encode("utf-8", "replace")).hexdigest()[:16]
        yield JudgedQuery(
            name, query, {p: grade - IRRELEVANT for p, grade in grades.items()}, "passage"
        )
