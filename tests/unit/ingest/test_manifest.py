"""Every real document of the shared folder: its phrase is found, or its error reported."""

import csv
import re
from pathlib import Path

import pytest

from ingest.documents import DocumentSettings, DocumentStage
from ingest.known import KnownDocuments
from ingest.sources.files import FileSource
from ingest.types import DocumentState

DOCUMENTS = Path(__file__).parents[3].parent / "shared" / "documents"


def rows():
    if not DOCUMENTS.exists():
        return []
    with (DOCUMENTS / "manifest.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def squeezed(text):
    return re.sub(r"\s+", "", text).lower()


@pytest.fixture(scope="module")
def stage():
    return DocumentStage(DocumentSettings(), KnownDocuments.of([]))


@pytest.mark.skipif(not rows(), reason="../shared/documents is not here")
@pytest.mark.parametrize("row", rows(), ids=lambda row: row["file"])
def test_document_is_read_as_the_manifest_expects(stage, row):
    [listed] = FileSource(DOCUMENTS / row["file"]).list()
    [outcome] = stage.process(listed.unit)
    expect = row["expect"]
    if expect.startswith(("error:", "no extractable text")):
        assert DocumentState.FAILED == outcome.state
        assert expect.removeprefix("error:").strip() in outcome.reason
        return
    assert DocumentState.PARSED == outcome.state, outcome.reason
    assert any(squeezed(expect) in squeezed(p.text) for p in outcome.passages)
