"""Which scored candidates make up an answer, and in which order they are read."""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from policies.types import Intent
from serve_app.answers.candidates import Candidate, terms
from serve_app.answers.evidence import Scored
from serve_app.answers.support import about

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
_NUMBERED = re.compile(r"\s*\(\d+\)$")
_SAME_MEANING = 0.985


def select(scored: Sequence[Scored], most: int, already: Sequence[Scored] = ()) -> list[Scored]:
    """The best candidates, without those that repeat a better one.

    Args:
        scored: best first.
        most: at most so many.
        already: what was said before and need not be repeated.

    Returns:
        Best first.
    """
    chosen: list[Scored] = []
    for one in scored:
        if len(chosen) == most or one.score < scored[0].score - _MARGIN:
            break
        if not any(is_repetition(one, other) for other in (*already, *chosen)):
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

    A step goes on to the end of its line: what follows its first sentence there belongs to it.

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
        elif runs[-1] and _on_one_line(runs[-1][-1], candidate):
            runs[-1][-1] = _joined(runs[-1][-1], candidate)
        elif runs[-1]:
            runs.append([])
    lists = [run for run in runs if len(run) > 1]
    around = next((run for run in lists if run[0].start <= best.start < run[-1].end), None)
    after = next((run for run in lists if run[0].start > best.start), None)
    return (around or after or [])[:MOST_STEPS]


def _on_one_line(step: Candidate, following: Candidate) -> bool:
    return "\n" not in step.passage.text[step.end : following.start]


def _joined(step: Candidate, following: Candidate) -> Candidate:
    text = step.passage.text[step.start : following.end]
    return replace(step, text=text, end=following.end, terms=step.terms | following.terms)


def of_side(scored: Sequence[Scored], side: str, others: Sequence[str]) -> list[Scored]:
    """The candidates that speak about one side of a comparison, best first.

    A candidate does when it, its heading, or what its passage is about names what sets the side
    apart from the others; those that name it themselves come first. When none does, all count: the
    search that the side had of its own is then the only tie.

    Args:
        scored: candidates of the side's own passages, best first.
        side: the side's name.
        others: the names of the other sides.
    """
    own = terms(_NUMBERED.sub("", side))
    apart = own - frozenset().union(*(terms(other) for other in others)) or own
    topics = about({one.candidate.passage.id: one.candidate.passage for one in scored}.values())
    named = [one for one in scored if apart <= one.candidate.context_terms]
    implied = [
        one
        for one in scored
        if one not in named
        and apart <= one.candidate.context_terms | topics[one.candidate.passage.id]
    ]
    return [*named, *implied] or list(scored)
