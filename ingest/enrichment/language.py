"""The language of a document as an ISO 639-1 code."""

from skills.language.script import language_of

_SAMPLE_CHARS = 4000
_CODES = {"zh": "zh", "en": "en", "mixed": "zh"}
"""A mixed text is Chinese text with foreign names in it far more often than the reverse."""


def language_code(text: str) -> str:
    """The code, or an empty string when the script tells nothing."""
    return _CODES.get(language_of(text[:_SAMPLE_CHARS]), "")
