"""A folder to evaluate on: `corpus.jsonl`, `queries.jsonl`, `qrels.tsv` (the BEIR layout)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from policies.errors import DatasetInvalid


@dataclass(frozen=True, slots=True)
class EvaluationQuery:
    """A query as a system under test may see it: no answers, no types."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Dataset:
    """Judged queries, in the order of their file."""

    name: str
    queries: tuple[EvaluationQuery, ...]
    qrels: Mapping[str, Mapping[str, int]]
    """Query id to document id to grade (0 is not relevant)."""
    num_documents: int
    num_unjudged: int = 0
    """Queries of the file that no relevant document is known for; they are left out."""

    def sample(self, num_queries: int, seed: int) -> "Dataset":
        """That many of its queries (all, when there are fewer), drawn without replacement, order
        kept.
        """
        if num_queries >= len(self.queries):
            return self
        drawn = np.random.default_rng(seed).choice(len(self.queries), num_queries, replace=False)
        return self.only(self.queries[i].id for i in np.sort(drawn))

    def only(self, query_ids: Iterator[str] | list[str]) -> "Dataset":
        """The queries with these ids, order of the file kept."""
        wanted = set(query_ids)
        queries = tuple(q for q in self.queries if q.id in wanted)
        return replace(self, queries=queries, qrels={q.id: self.qrels[q.id] for q in queries})


def load_dataset(folder: Path) -> Dataset:
    """Read a folder.

    Raises:
        DatasetInvalid: names the file, and the line where there is one: a missing file, a line
            that is no JSON object with `_id` (and `text`), an id that comes twice, a judgment that
            is no integer or names a query or document that does not exist, no judged query at all.
    """
    documents = _ids(folder / "corpus.jsonl")
    texts = {line["_id"]: line for _, line in _lines(folder / "queries.jsonl", ("_id", "text"))}
    qrels = _judgments(folder / "qrels.tsv", set(texts), documents)
    judged = {q: grades for q, grades in qrels.items() if any(g > 0 for g in grades.values())}
    if not judged:
        raise DatasetInvalid(str(folder / "qrels.tsv"), "judges no document relevant to any query")
    queries = tuple(EvaluationQuery(q, line["text"]) for q, line in texts.items() if q in judged)
    return Dataset(folder.name, queries, judged, len(documents), len(texts) - len(queries))


def _ids(path: Path) -> set[str]:
    return {line["_id"] for _, line in _lines(path, ("_id",))}


def _lines(path: Path, required: tuple[str, ...]) -> Iterator[tuple[int, dict[str, Any]]]:
    seen: set[str] = set()
    for number, raw in enumerate(_read(path).split(b"\n"), 1):
        if not raw.strip():
            continue
        where = f"{path}, line {number}"
        try:
            line = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise DatasetInvalid(where, f"is no JSON: {error}") from error
        if not isinstance(line, dict):
            raise DatasetInvalid(where, "is no JSON object")
        for key in required:
            if not isinstance(line.get(key), str) or not line[key].strip():
                raise DatasetInvalid(where, f"{key} must be a string that is not empty")
        if line["_id"] in seen:
            raise DatasetInvalid(where, f"_id {line['_id']!r} comes twice")
        seen.add(line["_id"])
        yield number, line


def _judgments(path: Path, queries: set[str], documents: set[str]) -> dict[str, dict[str, int]]:
    qrels: dict[str, dict[str, int]] = {}
    for number, raw in enumerate(_read(path).splitlines(), 1):
        where = f"{path}, line {number}"
        parts = raw.decode("utf-8", "replace").split("\t")
        if not raw.strip() or (number == 1 and parts[-1].strip() == "score"):
            continue
        if len(parts) != 3 or not parts[2].strip().lstrip("-").isdigit():
            raise DatasetInvalid(where, "expected query-id, corpus-id and an integer between tabs")
        query, document, grade = parts[0], parts[1], int(parts[2])
        if query not in queries:
            raise DatasetInvalid(where, f"no query {query!r}")
        if document not in documents:
            raise DatasetInvalid(where, f"no document {document!r}")
        qrels.setdefault(query, {})[document] = grade
    return qrels


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DatasetInvalid(str(path), f"cannot be read: {error}") from error
