"""Dates of documents in one form."""

import email.utils
from datetime import UTC, datetime


def iso_time(value: str) -> str:
    """ISO 8601 with offset; UTC where the value names none; empty when it is no date."""
    text = value.strip()
    if not text:
        return ""
    try:
        found = datetime.fromisoformat(text.replace("/", "-"))
    except ValueError:
        try:
            found = email.utils.parsedate_to_datetime(text)
        except (TypeError, ValueError):
            return ""
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).isoformat()
