"""E-mail messages: the text once, whichever alternative has it, and readable attachments."""

import email
import email.policy
import email.utils
from collections.abc import Iterator
from email.message import EmailMessage

from ingest.errors import DocumentUnreadable
from ingest.parsers.html import blocks_of_html
from ingest.parsers.parser import RawDocument, parser_of
from ingest.parsers.text import paragraphs
from ingest.types import Block, BlockKind, ParsedDocument

_MAX_ATTACHMENTS = 50


def parse_mail(raw: RawDocument) -> ParsedDocument:
    """Read subject, sender, date, text and attachments."""
    message = email.message_from_bytes(raw.data, policy=email.policy.default)
    blocks = list(_body(message))
    names: list[str] = []
    for part in list(message.iter_attachments())[:_MAX_ATTACHMENTS]:
        names.append(part.get_filename() or "attachment")
        blocks.extend(_attachment(part, names[-1]))
    return ParsedDocument(
        source_type="mail",
        blocks=tuple(blocks),
        title=str(message.get("Subject", "")).strip(),
        author=str(message.get("From", "")).strip(),
        last_updated=_date(str(message.get("Date", ""))),
        attributes={
            name: value
            for name, value in (
                ("to", str(message.get("To", "")).strip()),
                ("message_id", str(message.get("Message-ID", "")).strip()),
                ("attachments", tuple(names)),
            )
            if value
        },
    )


def _body(message: EmailMessage) -> Iterator[Block]:
    part = message.get_body(("plain", "html"))
    if part is None:
        return
    content = str(part.get_content())
    if part.get_content_subtype() == "html":
        yield from blocks_of_html(content)
    else:
        yield from paragraphs(content.replace("\r\n", "\n"))


def _attachment(part: EmailMessage, name: str) -> list[Block]:
    """The blocks of an attachment below its name; none when it cannot be read."""
    from ingest.formats import Format, sniff

    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return []
    try:
        found = sniff(data, name)
        if found in (Format.MAIL, Format.PASSAGES):
            return []
        blocks = parser_of(found)(RawDocument(name, name, data)).blocks
    except DocumentUnreadable:
        return []
    return [Block(BlockKind.HEADING, name, 1), *blocks] if blocks else []


def _date(value: str) -> str:
    try:
        return email.utils.parsedate_to_datetime(value).isoformat()
    except (TypeError, ValueError):
        return ""
