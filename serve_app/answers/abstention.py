"""What a reader says when it cannot answer, or not all of it: a reason and what a person can do."""

from collections.abc import Mapping, Sequence

from serve_app.answers.candidates import Candidate
from serve_app.answers.support import Anchor, QueryTerms
from skills.types import Missing, MissingReason


def unmentioned(borne_out: Mapping[Anchor, bool]) -> tuple[Missing, ...]:
    """Dates, codes and numbers of the query that no passage has."""
    return tuple(
        Missing(MissingReason.NO_EVIDENCE, anchor.text, f"no passage found mentions {anchor.text}")
        for anchor, found in borne_out.items()
        if not found
    )


def nothing_found(num_hits: int) -> Missing:
    """There is no text to read."""
    detail = f"the {num_hits} passages found hold no text" if num_hits else "no passage was found"
    advice = "; check the collection and its filters, or ingest a source about this"
    return Missing(MissingReason.NO_EVIDENCE, "answer", detail + advice)


def no_time(budget_ms: float) -> Missing:
    """The budget is spent."""
    detail = f"{max(budget_ms, 0):.0f} ms were left for reading the passages; raise budget_ms"
    return Missing(MissingReason.OVER_BUDGET, "answer", detail)


def not_answered(wanted: QueryTerms, found: Sequence[Candidate]) -> Missing:
    """The passages are about something else; names the query's words that none of them has."""
    said = frozenset(term for candidate in found for term in candidate.context_terms)
    unknown = [term for term in wanted.weights if term not in said]
    absent = f"; none of them mentions {', '.join(unknown[:5])}" if unknown else ""
    detail = (
        f"the passages found do not answer the query{absent}; "
        "rephrase it, lift filters, or ingest a source about this"
    )
    return Missing(MissingReason.NO_EVIDENCE, "answer", detail)


def side_not_found(side: str) -> Missing:
    """One side of a comparison has nothing."""
    detail = f"no sentence about {side} was found; ask about it alone or add a source"
    return Missing(MissingReason.NO_EVIDENCE, side, detail)
