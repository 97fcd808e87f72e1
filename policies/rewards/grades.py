"""Grades of passages from what users said of them: what a ranker can learn from experience."""

from collections.abc import Iterable

from policies.experience.record import Experience, Signal, SignalKind

IRRELEVANT, RELEVANT, BEST = 1, 4, 5


def passage_grades(experience: Experience) -> dict[str, int]:
    """Grades 1 to 5 by passage id, of the passages that feedback says something about.

    Signals on the whole response say nothing about one passage. A passage that was shown above one
    that was used, and was not used itself, was seen and passed over: it is irrelevant. Those below
    may never have been looked at.

    Source: Joachims, Optimizing Search Engines using Clickthrough Data, 2002 (skip above).
    """
    grades: dict[str, int] = {}
    for signal in experience.signals:
        grade = _grade(signal)
        if signal.passage_id and grade is not None:
            before = grades.get(signal.passage_id, 0)
            explicit = signal.kind in (SignalKind.THUMB, SignalKind.RATING)
            grades[signal.passage_id] = grade if explicit else max(grade, before)
    shown = [passage.id for passage in experience.record.passages]
    used = [rank for rank, name in enumerate(shown) if grades.get(name, 0) >= RELEVANT]
    for name in shown[: max(used, default=0)]:
        grades.setdefault(name, IRRELEVANT)
    return grades


def graded_queries(experiences: Iterable[Experience]) -> dict[str, dict[str, int]]:
    """Query text to grades by passage id; of two requests with one text, the later one is right.

    Args:
        experiences: oldest first. Those whose query was not kept are left out.
    """
    found: dict[str, dict[str, int]] = {}
    for experience in experiences:
        query = experience.record.query
        if query and (grades := passage_grades(experience)):
            found.setdefault(query, {}).update(grades)
    return found


def _grade(signal: Signal) -> int | None:
    match signal.kind:
        case SignalKind.RATING:
            return round(signal.value)
        case SignalKind.THUMB:
            return RELEVANT if signal.value else IRRELEVANT
        case SignalKind.COPY:
            return RELEVANT if signal.value else None
        case SignalKind.VERDICT:
            return IRRELEVANT + round((BEST - IRRELEVANT) * signal.value)
        case _:
            return None
