"""Bytes of unknown encoding to text."""

import codecs

from ingest.errors import DocumentUnreadable

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE_BYTES = 200_000


def decode(data: bytes, name: str) -> str:
    """Decode text by its byte order mark, as UTF-8, or by the statistics of its bytes.

    Raises:
        DocumentUnreadable: the bytes are no text in any encoding.
    """
    wide = wide_encoding(data)
    if wide is not None:
        return _clean(data.decode(wide, errors="replace"))
    try:
        return _clean(data.decode("utf-8"))
    except UnicodeDecodeError:
        from charset_normalizer import from_bytes  # slow to import, rarely needed

        guess = from_bytes(data[:_SAMPLE_BYTES]).best()
    if guess is None:
        raise DocumentUnreadable(name, "is not text in any known encoding")
    return _clean(data.decode(guess.encoding, errors="replace"))


def wide_encoding(data: bytes) -> str | None:
    """The encoding that a byte order mark names, or UTF-16 when text without a mark shows it by
    its zeros; None for everything else.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    head = data[:8192]
    for encoding, zeros in (("utf-16-le", head[1::2]), ("utf-16-be", head[::2])):
        if len(zeros) > 1 and zeros.count(0) > 0.3 * len(zeros):
            sample = head[: len(head) // 2 * 2].decode(encoding, errors="replace")
            if (
                sum((c.isprintable() and c < "\x7f") or c in "\n\r\t" for c in sample)
                > len(sample) / 2
            ):
                return encoding
    return None


def _clean(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")
