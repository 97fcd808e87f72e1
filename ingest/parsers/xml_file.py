"""XML that is no page: the text of its elements, each after the name of the element."""

from collections.abc import Iterator

from lxml import etree

from ingest.errors import DocumentRefused, DocumentUnreadable
from ingest.parsers.parser import RawDocument
from ingest.types import Block, BlockKind, ParsedDocument


def parse_xml(raw: RawDocument) -> ParsedDocument:
    """Read elements in order.

    Raises:
        DocumentRefused: it declares entities, which may expand without bound or read other files.
        DocumentUnreadable: it is not well formed.
    """
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=False
    )
    try:
        root = etree.fromstring(raw.data, parser)
    except etree.XMLSyntaxError as error:
        if "depth" in str(error):
            raise DocumentRefused(raw.name, "has elements nested too deeply") from error
        raise DocumentUnreadable(raw.name, f"is no well-formed XML: {error}") from error
    dtd = root.getroottree().docinfo.internalDTD
    if dtd is not None and any(True for _ in dtd.iterentities()):
        raise DocumentRefused(raw.name, "declares XML entities, which are not expanded")
    return ParsedDocument(source_type="text", blocks=tuple(_blocks(root)))


def _blocks(root: etree._Element) -> Iterator[Block]:
    for element in root.iter(etree.Element):
        text = " ".join((element.text or "").split())
        if text:
            name = etree.QName(element).localname
            yield Block(BlockKind.PARAGRAPH, f"{name}: {text}")
        tail = " ".join((element.tail or "").split())
        if tail:
            yield Block(BlockKind.PARAGRAPH, tail)
