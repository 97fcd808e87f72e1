"""Labelled queries, and which of them the classifier may learn from."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from policies.errors import DatasetInvalid
from policies.types import Intent

QUERIES = Path(__file__).parent / "queries.tsv"
"""Written for this project: what people of support desks, finance, medicine, law and software
type, in English and Chinese. The classifier is trained on one half, and nothing on the other."""


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """A query with the kind of answer that it wants."""

    text: str
    language: str
    intent: Intent

    @property
    def is_test(self) -> bool:
        """Whether it is in the test half; its text decides."""
        return bool(hashlib.sha256(self.text.encode()).digest()[0] % 2)


def load_queries(path: Path = QUERIES) -> list[LabelledQuery]:
    """Read a file with the columns intent, language, query, separated by tabs, headed by a line
    that says so.

    Raises:
        DatasetInvalid: names the file and the line.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetInvalid(str(path), f"cannot be read: {error}") from error
    queries = []
    for number, line in enumerate(lines[1:], start=2):
        fields = line.split("\t")
        if len(fields) != 3 or fields[0] not in set(Intent) or not fields[2].strip():
            known = ", ".join(Intent)
            raise DatasetInvalid(
                f"{path}:{number}", f"is not intent, language, query; intents are: {known}"
            )
        queries.append(LabelledQuery(fields[2], fields[1], Intent(fields[0])))
    return queries


def halves(queries: Sequence[LabelledQuery]) -> tuple[list[LabelledQuery], list[LabelledQuery]]:
    """Those to train on, and those to test on."""
    return [q for q in queries if not q.is_test], [q for q in queries if q.is_test]
