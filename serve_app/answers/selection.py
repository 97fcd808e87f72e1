"""Which scored candidates make up an answer, and in which order they are read."""

from collections.abc import Sequence

import numpy as np

from policies.types import Intent
from serve_app.answers.candidates import Candidate
from serve_app.answers.evidence import Scored

MOST_SENTENCES = {
    Intent.FACT: 2,
    Intent.DEFINITION: 2,
    Intent.SUMMARY: 6,
    Intent.HOW_TO: 6,
    Intent.OPEN_ENDED: 5,
    Intent.COMPARISON: 2,
}
"""Of a comparison: for each side."""
MOST_STEPS = 15
_MARGIN = 0.04
"""How far below the best score a further sentence may lie."""
_SAME_WORDS = 0.8
_SAME_MEANING = 0.985


def select(scored: Sequence[Scored], most: int) -> list[Scored]:
    """The best candidates, without those that repeat a better one.

    Args:
        scored: best first.
        most: at most so many.

    Returns:
        Best first.
    """
    chosen: list[Scored] = []
    for one in scored:
        if len(chosen) == most or one.score < scored[0].score - _MARGIN:
            break
        if not any(is_repetition(one, other) for other in chosen):
            chosen.append(one)
    return chosen


def is_repetition(one: Scored, other: Scored) -> bool:
    """Whether two candidates say the same: nearly the same words, or nearly the same embedding."""
    left, right = one.candidate.terms, other.candidate.terms
    if len(left & right) >= _SAME_WORDS * len(left | right):
        return True
    return float(np.dot(one.vector, other.vector)) >= _SAME_MEANING


def reading_order(chosen: Sequence[Scored]) -> list[Scored]:
    """Passage by passage, that of the best sentence first, each in the order of its text."""
    first: dict[str, int] = {}
    for place, one in enumerate(chosen):
        first.setdefault(one.candidate.passage.id, place)
    return sorted(chosen, key=lambda s: (first[s.candidate.passage.id], s.candidate.start))


def steps(best: Candidate, found: Sequence[Candidate]) -> list[Candidate]:
    """The list of steps that the best candidate belongs to or introduces, in order.

    Args:
        best: the candidate that answers the query best.
        found: all candidates, by hit and place.

    Returns:
        At least two steps of one list, or nothing.
    """
    runs: list[list[Candidate]] = [[]]
    for candidate in found:
        if candidate.passage.id != best.passage.id:
            continue
        if candidate.is_step:
            runs[-1].append(candidate)
        elif runs[-1]:
            runs.append([])
    near = [run for run in runs if len(run) > 1]
    around = next((run for run in near if run[0].start <= best.start <= run[-1].start), None)
    after = next((run for run in near if run[0].start > best.start), None)
    return (around or after or [])[:MOST_STEPS]
