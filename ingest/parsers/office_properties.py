"""Title, author and date that Office Open XML files carry in `docProps/core.xml`.

The libraries that read such files invent these when they are missing, with the present as the date.
"""

import io
import zipfile
from dataclasses import dataclass

from lxml import etree

_PART = "docProps/core.xml"
_MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class OfficeProperties:
    """What the file says of itself; empty where it says nothing."""

    title: str = ""
    author: str = ""
    last_updated: str = ""
    language: str = ""


def office_properties(data: bytes) -> OfficeProperties:
    """Read the properties of a docx, pptx or xlsx file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if _PART not in archive.namelist():
            return OfficeProperties()
        with archive.open(_PART) as part:
            content = part.read(_MAX_BYTES)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        root = etree.fromstring(content, parser)
    except etree.XMLSyntaxError:
        return OfficeProperties()
    found = {etree.QName(child).localname: (child.text or "").strip() for child in root}
    return OfficeProperties(
        title=found.get("title", ""),
        author=found.get("lastModifiedBy") or found.get("creator", ""),
        last_updated=(found.get("modified") or found.get("created", "")).replace("Z", "+00:00"),
        language=found.get("language", "")[:2],
    )
