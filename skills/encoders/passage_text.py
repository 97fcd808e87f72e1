"""Which text of a passage an encoder sees. The same when it is indexed and when it is compared."""

from skills.types import Passage


def embedded_text(passage: Passage) -> str:
    """Title and headings above the text, each once."""
    above: list[str] = []
    for line in (passage.title, *passage.metadata.heading_path):
        if line and line not in above and not passage.text.startswith(line):
            above.append(line)
    return "\n".join((*above, passage.text))
