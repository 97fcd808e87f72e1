"""Writes the Word and PDF file of the sample corpus from their text in `sources`.

Run as `python -m serve_app.samples.binaries` after changing a source. Both files come out the same
byte for byte on every run.
"""

import datetime
import io
import zipfile
from pathlib import Path

import docx

from serve_app.samples import DOCUMENTS

SOURCES = Path(__file__).parent / "sources"
WARRANTY = DOCUMENTS / "policies" / "warranty.pdf"
EXPENSES = DOCUMENTS / "policies" / "expense-policy.docx"

_LINES_PER_PAGE = 46
_ZIP_TIME = (2024, 4, 1, 0, 0, 0)


def pdf(text: str, title: str, author: str, created: str) -> bytes:
    """A plain PDF in Helvetica, one line of text a line.

    Args:
        text: ASCII; longer lines than about 95 characters run over the margin.
        title: of the document information.
        author: of the document information.
        created: `YYYYMMDD`.
    """
    lines = text.splitlines()
    pages = [lines[i : i + _LINES_PER_PAGE] for i in range(0, len(lines), _LINES_PER_PAGE)]
    first = 5
    kids = " ".join(f"{first + 2 * i} 0 R" for i in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        f"<< /Title ({title}) /Author ({author}) /CreationDate (D:{created}000000Z) >>",
    ]
    for number, page in enumerate(pages):
        content = _page_content(page)
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842]"
            f" /Resources << /Font << /F1 3 0 R >> >> /Contents {first + 2 * number + 1} 0 R >>"
        )
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    return _assembled(objects)


def _page_content(lines: list[str]) -> str:
    shown = ["BT", "/F1 11 Tf", "56 780 Td", "15 TL"]
    for line in lines:
        escaped = line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
        shown.append(f"({escaped}) Tj T*")
    return "\n".join([*shown, "ET"])


def _assembled(objects: list[str]) -> bytes:
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, io.SEEK_END)
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(out.tell())
        out.write(f"{number} 0 obj\n{body}\nendobj\n".encode("ascii"))
    start = out.tell()
    out.write(f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode("ascii"))
    for offset in offsets:
        out.write(f"{offset:010} 00000 n \n".encode("ascii"))
    trailer = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R /Info 4 0 R >>\n"
    out.write(f"{trailer}startxref\n{start}\n%%EOF\n".encode("ascii"))
    return out.getvalue()


def word(markdown: str, author: str, created: datetime.datetime) -> bytes:
    """A Word file of headings (`#`, `##`) and paragraphs."""
    document = docx.Document()
    for block in markdown.split("\n\n"):
        lines = block.splitlines()
        while lines and lines[0].startswith("#"):
            marks, _, heading = lines.pop(0).partition(" ")
            document.add_heading(heading, len(marks))
        if lines:
            document.add_paragraph("".join(lines))
    properties = document.core_properties
    properties.title = markdown.splitlines()[0].removeprefix("# ")
    properties.author = author
    properties.created = properties.modified = created
    raw = io.BytesIO()
    document.save(raw)
    return _with_fixed_times(raw.getvalue())


def _with_fixed_times(archive: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(out, "w") as new:
        for entry in old.infolist():
            copy = zipfile.ZipInfo(entry.filename, _ZIP_TIME)
            copy.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(copy, old.read(entry))
    return out.getvalue()


def build() -> dict[Path, bytes]:
    """The files and their contents."""
    warranty = (SOURCES / "warranty.txt").read_text(encoding="ascii")
    expenses = (SOURCES / "expense-policy.md").read_text(encoding="utf-8")
    created = datetime.datetime(2024, 4, 1, tzinfo=datetime.UTC)
    return {
        WARRANTY: pdf(warranty, "Halden limited warranty", "Maren Eide", "20240101"),
        EXPENSES: word(expenses, "澜星储能人力资源部", created),
    }


if __name__ == "__main__":
    for path, content in build().items():
        path.write_bytes(content)
