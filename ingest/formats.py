"""What a file is, found from its bytes first and its name second."""

import io
import re
import zipfile
from enum import StrEnum
from pathlib import PurePosixPath

import orjson

from ingest.errors import DocumentRefused, DocumentUnreadable
from ingest.languages import LANGUAGES
from ingest.parsers.encoding import wide_encoding

_MAX_ARCHIVE_ENTRIES = 10_000
_MAX_UNPACKED_BYTES = 512 * 1024 * 1024
_MAX_RATIO = 200
"""Unpacked to packed size; office files stay under 30, bombs reach thousands."""
_RATIO_MATTERS_ABOVE_BYTES = 4 * 1024 * 1024
_HTML = re.compile(
    rb"^\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)

_MAIL = re.compile(
    rb"^(?:(?:From|To|Subject|Date|Received|Return-Path|Message-ID|MIME-Version|Delivered-To|"
    rb"Content-Type|X-[\w-]+):[^\n]*\n(?:[ \t][^\n]*\n)*){3,}",
    re.IGNORECASE,
)
_MAX_JSON_BYTES = 1_000_000
"""Larger JSON must be called so."""


class Format(StrEnum):
    """A format that has a parser."""

    PDF = "pdf"
    DOCX = "docx"
    HTML = "html"
    MARKDOWN = "markdown"
    TEXT = "text"
    PPTX = "pptx"
    XLSX = "xlsx"
    DELIMITED = "delimited"
    MAIL = "mail"
    JSON = "json"
    XML = "xml"
    CODE = "code"
    WEB = "web"
    """An HTML page that was fetched from the web: its main text counts, not its frame."""
    PASSAGES = "passages"


_BY_SUFFIX = {
    ".md": Format.MARKDOWN,
    ".markdown": Format.MARKDOWN,
    ".htm": Format.HTML,
    ".html": Format.HTML,
    ".xhtml": Format.HTML,
    ".csv": Format.DELIMITED,
    ".tsv": Format.DELIMITED,
    ".eml": Format.MAIL,
    ".json": Format.JSON,
    ".ndjson": Format.JSON,
    ".jsonl": Format.JSON,
    **dict.fromkeys(LANGUAGES, Format.CODE),
}
_PARTS = {
    "word/document.xml": Format.DOCX,
    "ppt/presentation.xml": Format.PPTX,
    "xl/workbook.xml": Format.XLSX,
}
_SIGNATURES = (
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "is an old binary Office file: save it as docx, xlsx or pptx",
    ),
    (b"\x89PNG", "is an image"),
    (b"\xff\xd8\xff", "is an image"),
    (b"GIF8", "is an image"),
    (b"\x1f\x8b", "is a gzip archive: unpack it first"),
    (b"7z\xbc\xaf", "is a 7-Zip archive: unpack it first"),
    (b"Rar!", "is a RAR archive: unpack it first"),
    (b"\x7fELF", "is a program"),
    (b"MZ", "is a program"),
    (b"SQLite format 3\x00", "is a database file: ingest it by its URL, sqlite:///…"),
)


def sniff(data: bytes, name: str) -> Format:
    """Tell the format of a document.

    Raises:
        DocumentUnreadable: it is empty, or of a kind that has no text to read.
        DocumentRefused: it is an archive that unpacks to an absurd size.
    """
    if not data.strip():
        raise DocumentUnreadable(name, "no extractable text: the file is empty")
    if b"%PDF-" in data[:1024]:
        return Format.PDF
    if data.startswith(b"PK\x03\x04"):
        return _archive(data, name)
    for signature, reason in _SIGNATURES:
        if data.startswith(signature):
            raise DocumentUnreadable(name, reason)
    if _is_binary(data):
        raise DocumentUnreadable(name, "is binary and of no known format")
    return _text(data, name)


def is_passages(head: bytes) -> bool:
    """Whether these first bytes of a file are JSONL passages (`_id` and `text` on a line)."""
    line = head.lstrip(b"\xef\xbb\xbf\r\n\t ").split(b"\n", 1)[0]
    return line.startswith(b"{") and b'"_id"' in line and b'"text"' in line


def _text(data: bytes, name: str) -> Format:
    if is_passages(data[:65536]):
        return Format.PASSAGES
    if PurePosixPath(name).suffix.lower() in {".jsonl", ".ndjson"}:
        _refuse_almost_passages(data[:65536], name)
    if _HTML.match(data[:4096]):
        return Format.HTML
    named = _BY_SUFFIX.get(PurePosixPath(name).suffix.lower())
    if named is not None and named is not Format.HTML:
        return named
    if data.lstrip()[:5] == b"<?xml":
        return Format.XML
    if _MAIL.match(data[:4096]):
        return Format.MAIL
    if _is_json(data):
        return Format.JSON
    return named or Format.TEXT


def _refuse_almost_passages(head: bytes, name: str) -> None:
    """Read as records, such lines would lose who may read them.

    Raises:
        DocumentUnreadable: the lines say who may read them, as passages do, and have no `_id`.
    """
    line = head.lstrip(b"\xef\xbb\xbf\r\n\t ").split(b"\n", 1)[0]
    guards = (b'"tenant"', b'"allowed_roles"', b'"sensitive_flag"')
    if b'"text"' in line and b'"metadata"' in line and any(guard in line for guard in guards):
        shape = '{"_id": …, "title": …, "text": …, "metadata": {…}}'
        raise DocumentUnreadable(name, f"has passages without `_id`; a line is {shape}")


def _is_json(data: bytes) -> bool:
    """Whether text without a telling name is a JSON object or list."""
    start = data.lstrip(b"\xef\xbb\xbf\r\n\t ")[:1]
    end = data.rstrip()[-1:]
    if (start, end) not in ((b"{", b"}"), (b"[", b"]")) or len(data) > _MAX_JSON_BYTES:
        return False
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    return True


def _archive(data: bytes, name: str) -> Format:
    try:
        entries = zipfile.ZipFile(io.BytesIO(data)).infolist()
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        raise DocumentUnreadable(name, f"is a damaged archive: {error}") from error
    unpacked = sum(entry.file_size for entry in entries)
    packed = sum(entry.compress_size for entry in entries) or 1
    if len(entries) > _MAX_ARCHIVE_ENTRIES or unpacked > _MAX_UNPACKED_BYTES:
        raise DocumentRefused(name, f"unpacks to {unpacked} bytes in {len(entries)} entries")
    if unpacked > _RATIO_MATTERS_ABOVE_BYTES and unpacked / packed > _MAX_RATIO:
        raise DocumentRefused(name, f"unpacks to {unpacked // packed} times its size")
    names = {entry.filename for entry in entries}
    for part, found in _PARTS.items():
        if part in names:
            return found
    raise DocumentUnreadable(name, "is an archive of no known document format: unpack it first")


def _is_binary(data: bytes) -> bool:
    return b"\x00" in data[:8192] and wide_encoding(data) is None
