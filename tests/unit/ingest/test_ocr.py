"""Scanned pages: read where the program is installed, told apart from blank ones where not."""

import io
import os
import shutil
from pathlib import Path

import pypdfium2 as pdfium
import pytest

from ingest.documents import DocumentSettings, DocumentStage
from ingest.known import KnownDocuments
from ingest.sources.files import FileSource

SCAN = Path(__file__).parents[3].parent / "shared" / "documents" / "scanned-image-only.pdf"
PROGRAM = """#!/bin/sh
if [ "$1" = --list-langs ]; then printf 'List of languages (3):\\nchi_sim\\neng\\nosd\\n'; exit; fi
head -c 2
printf ' is the picture\\nof %s\\n\\nSecond para-\\ngraph.\\n' "$4"
"""


def pdf_of(*, pictures):
    """A PDF file with one page for each of them, which shows a picture or is blank."""
    pdf = pdfium.PdfDocument.new()
    for has_picture in pictures:
        page = pdf.new_page(200, 100)
        if has_picture:
            bitmap = pdfium.PdfBitmap.new_native(20, 10, 4)
            image = pdfium.PdfImage.new(pdf)
            image.set_bitmap(bitmap)
            image.set_matrix(pdfium.PdfMatrix().scale(200, 100))
            page.insert_obj(image)
            page.gen_content()
    data = io.BytesIO()
    pdf.save(data)
    return data.getvalue()


def read(path):
    [listed] = FileSource(path).list()
    stage = DocumentStage(DocumentSettings(), KnownDocuments.of([]))
    [outcome] = stage.process(listed.unit)
    return outcome


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A program of that name which says what it was asked."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "tesseract").write_text(PROGRAM)
    (folder / "tesseract").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder / "tesseract"


def test_without_the_program_scans_are_told_from_blank_pages(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    scan, blank = tmp_path / "scan.pdf", tmp_path / "blank.pdf"
    scan.write_bytes(pdf_of(pictures=[True, False]))
    blank.write_bytes(pdf_of(pictures=[False]))
    assert "no extractable text: 1 scanned page(s); install tesseract" in read(scan).reason
    assert "no extractable text: 1 blank page(s)" == read(blank).reason


def test_with_the_program_a_scanned_page_is_text(tmp_path, program):
    scan = tmp_path / "scan.pdf"
    scan.write_bytes(pdf_of(pictures=[False, True]))
    [passage] = read(scan).passages
    assert "P5 is the picture of eng+chi_sim\n\nSecond paragraph." == passage.text
    assert 2 == passage.metadata.page
    assert passage.metadata.attributes["ocr"] is True


def test_a_program_that_fails_is_a_reason(tmp_path, program):
    program.write_text("#!/bin/sh\necho 'no such language' >&2\nexit 1\n")
    scan = tmp_path / "scan.pdf"
    scan.write_bytes(pdf_of(pictures=[True]))
    assert "page 1 is scanned and tesseract failed: no such language" in read(scan).reason


@pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed here")
@pytest.mark.skipif(not SCAN.exists(), reason="../shared/documents is not here")
def test_a_real_scan_is_read_by_the_real_program():
    [passage] = read(SCAN).passages
    assert "PDF document conversion to JSON and Markdown" in passage.text
