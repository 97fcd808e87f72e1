from policies.experience.record import Experience, RankedPassage, SignalKind
from policies.rewards.grades import graded_queries, passage_grades
from tests.unit.policies.experience.records import record, thumb

SHOWN = tuple(RankedPassage(name, name, 1.0) for name in "abcd")


def said(kind, value, passage_id, signal_id="s"):
    return thumb(signal_id, kind=kind, value=value, passage_id=passage_id)


def experience(*signals, **changed):
    return Experience(record(passages=SHOWN, **changed), signals)


def test_what_was_shown_above_a_used_passage_was_passed_over():
    assert {"a": 1, "b": 1, "c": 4} == passage_grades(experience(said(SignalKind.COPY, 1, "c")))


def test_stars_are_grades_and_win_over_what_was_done():
    signals = said(SignalKind.COPY, 1, "a"), said(SignalKind.RATING, 2, "a", "s2")
    assert {"a": 2} == passage_grades(experience(*signals))


def test_thumbs_and_verdicts_are_grades():
    signals = (
        said(SignalKind.THUMB, 0, "a"),
        said(SignalKind.THUMB, 1, "b", "s2"),
        said(SignalKind.VERDICT, 0.5, "c", "s3"),
    )
    assert {"a": 1, "b": 4, "c": 3} == passage_grades(experience(*signals))


def test_a_signal_on_the_whole_response_says_nothing_about_a_passage():
    assert {} == passage_grades(experience(said(SignalKind.RATING, 5, "")))


def test_the_later_of_two_equal_queries_is_right():
    first = experience(said(SignalKind.RATING, 5, "a"), said(SignalKind.RATING, 3, "b", "s2"))
    later = experience(said(SignalKind.RATING, 1, "a"))
    silent = experience(query=None)
    query = first.record.query
    assert {query: {"a": 1, "b": 3}} == graded_queries([first, later, silent])
