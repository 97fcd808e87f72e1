"""A passage as one string of JSON, and back."""

import math

import orjson

from skills.errors import RequestInvalid
from skills.types import FactAnchor, Passage, PassageMetadata

_TUPLES = ("domain_tags", "heading_path", "allowed_roles")


def encode_passage(passage: Passage) -> str:
    """The passage as one string.

    Raises:
        RequestInvalid: text that is no Unicode, or a number that JSON cannot hold.
    """
    about = passage.metadata
    known = {
        name: value
        for name in PassageMetadata.__dataclass_fields__
        if (value := getattr(about, name)) not in ("", (), None)
    }
    anchors = [(a.entity, a.attribute, a.value, a.unit, a.date) for a in about.fact_anchors]
    row = (passage.id, passage.document_id, passage.text, passage.title, known, anchors)
    known.pop("fact_anchors", None)
    known["attributes"] = {
        name: value
        for name, value in about.attributes.items()
        if not (isinstance(value, float) and not math.isfinite(value))
    }
    try:
        return orjson.dumps(row).decode()
    except TypeError as error:
        raise RequestInvalid("passage", f"{passage.id!r} cannot be stored: {error}") from error


def decode_passage(encoded: str) -> Passage:
    """The passage that `encode_passage` wrote."""
    passage_id, document_id, text, title, known, anchors = orjson.loads(encoded)
    for name in _TUPLES:
        if name in known:
            known[name] = tuple(known[name])
    known["attributes"] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in known["attributes"].items()
    }
    facts = tuple(FactAnchor(*anchor) for anchor in anchors)
    metadata = PassageMetadata(**known, fact_anchors=facts)
    return Passage(passage_id, document_id, text, title, metadata)
