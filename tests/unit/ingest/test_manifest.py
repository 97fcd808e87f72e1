"""Every real document of the shared folder, through the whole pipeline and out again: its phrase is
retrieved, or its error is a dead letter that a person understands.
"""

import csv
import re
from pathlib import Path

import pytest

from ingest.dead_letters import read_dead_letters
from ingest.run import run
from serve_app.config import load_config
from serve_app.evaluate import patient_registry
from serve_app.graph import local_gateway
from serve_app.ingestion import ingest_request
from serve_app.requests import RetrieveRequest
from skills.types import OPERATOR

DOCUMENTS = (Path(__file__).parents[3].parent / "shared" / "documents").resolve()
TWINS = {"elements.json": "elements.ndjson"}
"""The same records in two files: of near-duplicates only one is shown."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DOCUMENTS.exists(), reason="../shared/documents is not here"),
]


def rows():
    if not DOCUMENTS.exists():
        return []
    with (DOCUMENTS / "manifest.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def is_error(row):
    return row["expect"].startswith(("error:", "no extractable text"))


def squeezed(text):
    return re.sub(r"\s+", "", text).lower()


def uri(name):
    return (DOCUMENTS / name).as_uri()


class Library:
    """The documents of the manifest, ingested once, and a gateway over them."""

    def __init__(self, home):
        light = {"class_path": "skills.encoders.hashing.HashingEncoder"}
        config = load_config(home=home, environment={}, encoders={"default": light})
        sources = [str(DOCUMENTS / row["file"]) for row in rows()]
        self.summary = run(ingest_request(config, sources, "library"))
        self.letters = {e.uri: e for e in read_dead_letters(self.summary.dead_letters)}
        self.gateway = local_gateway(config, patient_registry(config))

    async def passages(self, query):
        asked = RetrieveRequest("r", query, "library", 20, 60_000, plan="keyword", caller=OPERATOR)
        return [hit.passage for hit in (await self.gateway.retrieve(asked)).hits]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return Library(tmp_path_factory.mktemp("library"))


def test_every_document_is_indexed_or_reported(library):
    broken = sum(is_error(row) for row in rows())
    summary = library.summary
    assert (len(rows()) - broken, broken) == (summary.added, summary.failed)


@pytest.mark.parametrize(
    "row", [row for row in rows() if is_error(row)], ids=lambda row: row["file"]
)
def test_what_cannot_be_read_is_a_dead_letter_that_says_why(library, row):
    letter = library.letters[uri(row["file"])]
    assert row["expect"].removeprefix("error:").strip() in letter.reason


@pytest.mark.parametrize(
    "row", [row for row in rows() if not is_error(row)], ids=lambda row: row["file"]
)
async def test_the_phrase_of_a_document_is_retrieved_from_it(library, row):
    found = await library.passages(row["expect"])
    wanted = {f"file:{row['file']}", f"file:{TWINS.get(row['file'], row['file'])}"}
    assert any(
        p.metadata.source_url in wanted and squeezed(row["expect"]) in squeezed(p.text)
        for p in found
    )
