"""Text of scanned pages, by the `tesseract` program where it is installed.

The program is run for one page after the other, with the picture on its standard input; it belongs
to the process group of the parser and ends with it.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from ingest.errors import DocumentUnreadable
from ingest.parsers.text import join_lines
from ingest.types import Block, BlockKind

_DPI = 300
"""What Tesseract's models are made for."""
_MAX_PIXELS = 40_000_000
_MAX_LANGUAGES = 4
_FIRST = ("eng", "chi_sim", "chi_tra", "jpn")
"""Of the languages that are installed these are asked for first: each one costs time."""


def is_scanned(page: pdfium.PdfPage) -> bool:
    """Whether a page shows a picture; asked of pages without text."""
    return any(True for _ in page.get_objects(filter=[pdfium_c.FPDF_PAGEOBJ_IMAGE]))


def tesseract() -> str | None:
    """Where the program is."""
    return shutil.which("tesseract")


def blocks_of_scan(page: pdfium.PdfPage, number: int, program: str, name: str) -> Iterator[Block]:
    """Paragraphs of a scanned page.

    Args:
        page: of a PDF file.
        number: of the page, from 1.
        program: from `tesseract`.
        name: of the document, for messages.

    Raises:
        DocumentUnreadable: the program fails.
    """
    command = [program, "stdin", "stdout", "-l", _languages(program), "--psm", "3"]
    done = subprocess.run(  # noqa: S603
        command, input=_picture(page), capture_output=True, env=_environment(), check=False
    )
    if done.returncode:
        reason = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise DocumentUnreadable(
            name, f"page {number} is scanned and tesseract failed: {(reason or ['no reason'])[-1]}"
        )
    for paragraph in re.split(r"\n\s*\n", done.stdout.decode("utf-8", "replace").strip("\f\n ")):
        text = ""
        for line in filter(None, map(str.strip, paragraph.splitlines())):
            text = join_lines(text, line) if text else line
        if text:
            yield Block(BlockKind.PARAGRAPH, text, page=number)


def _picture(page: pdfium.PdfPage) -> bytes:
    """The page in grey, as a portable grey map."""
    scale = _DPI / 72
    width, height = page.get_size()
    scale *= min(1.0, (_MAX_PIXELS / max(width * height * scale**2, 1.0)) ** 0.5)
    bitmap = page.render(scale=scale, grayscale=True)
    pixels = bitmap.to_numpy()
    head = b"P5 %d %d 255\n" % (bitmap.width, bitmap.height)
    return head + bytes(pixels.tobytes())


@cache
def _languages(program: str) -> str:
    listed = subprocess.run(  # noqa: S603
        [program, "--list-langs"], capture_output=True, text=True, env=_environment(), check=False
    )
    there = [x for x in listed.stdout.splitlines()[1:] if x.strip() and x != "osd"]
    ordered = sorted(there, key=lambda x: (_FIRST.index(x) if x in _FIRST else len(_FIRST), x))
    return "+".join(ordered[:_MAX_LANGUAGES]) or "eng"


def _environment() -> dict[str, str]:
    """One thread: the other cores embed."""
    return {**os.environ, "OMP_THREAD_LIMIT": "1"}
