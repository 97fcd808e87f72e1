import pytest

from policies.analysis import Analyzer
from serve_app.errors import ServiceUnavailable
from serve_app.execution.types import CallStatus, CallTrace, Execution, StageTrace
from serve_app.requests import Retrieved, RetrieveRequest
from serve_app.sessions.conversations import Conversations
from serve_app.sessions.follow_up import follow_up, merged, subjects_of
from serve_app.sessions.memory import InProcessSessions
from serve_app.sessions.types import FollowUp, SessionSettings, Turn
from skills.types import Caller, Hit, Missing, MissingReason, Passage, Provenance

ANALYZER = Analyzer()
ACME = Caller("acme")


def features(query):
    return ANALYZER.analyze([query])[0]


def turn(*documents, subjects=("Halden H5",), follows=False, collection="c"):
    return Turn(collection=collection, subjects=subjects, documents=documents, follows=follows)


def resolved(query, *turns):
    return follow_up(query, features(query), "c", turns)


@pytest.mark.parametrize(
    ("query", "subject"),
    [
        ("澜星储能H5电池的容量是多少", "澜星储能H5电池"),
        ("What is the capacity of the Halden H5 battery?", "halden h5 battery"),
        ("how do I reset my password", "reset"),
    ],
)
def test_a_query_is_about_its_names_with_the_phrase_around_them(query, subject):
    assert subject in subjects_of(features(query))


@pytest.mark.parametrize("query", ["它的价格是多少", "and its price?", "What about the warranty?"])
def test_a_follow_up_is_searched_with_what_it_refers_to(query):
    found = resolved(query, turn("d1"))
    assert FollowUp(f"Halden H5 {query}", ("Halden H5",), ("d1",)) == found


def test_a_query_that_stands_for_itself_is_left_alone():
    assert resolved("how do I reset my password", turn("d1")) is None
    assert resolved("and its price?") is None


def test_what_the_query_names_itself_is_not_said_twice():
    assert "and its price, Halden H5?" == resolved("and its price, Halden H5?", turn("d1")).query


def test_documents_are_those_since_the_last_turn_that_stood_for_itself():
    turns = (turn("old"), turn("a", "b"), turn("c", "a", follows=True))
    assert ("c", "a", "b") == resolved("and its price?", *turns).documents


def test_documents_of_another_collection_are_not_looked_into():
    assert () == resolved("and its price?", turn("x", collection="other")).documents


def test_a_query_that_names_something_else_looks_everywhere():
    found = resolved("And what about Microsoft?", turn("d1"))
    assert () == found.documents


def hit(number, stage=1):
    passage = Passage(f"p{number}", f"d{number}", f"text {number}")
    return Hit(passage, 1 / number, (Provenance(stage, "keyword", number, 1 / number),))


def execution(*numbers, missing=()):
    call = CallTrace(1, "keyword", CallStatus.OK, 1.0)
    stages = (StageTrace(1, 1.0, (call,), len(numbers)),)
    return Execution(tuple(hit(n) for n in numbers), missing, stages)


def test_earlier_documents_come_first_in_at_most_half_of_the_places():
    both = merged(execution(7, 8, 9), execution(1, 2, 8, 3, 4), 4)
    assert ["p7", "p8", "p1", "p2"] == [h.passage.id for h in both.hits]
    assert [1, 2] == [stage.stage for stage in both.stages]
    assert [2, 2, 1, 1] == [h.provenance[0].stage for h in both.hits]
    assert 2 == both.stages[1].calls[0].stage


def test_finding_nothing_in_one_place_is_not_missing():
    none = (Missing(MissingReason.NO_EVIDENCE, "query", "x"),)
    late = (Missing(MissingReason.TIMED_OUT, "dense", "x"),)
    assert late == merged(execution(missing=none), execution(1, missing=late), 4).missing
    assert none == merged(execution(missing=none), execution(missing=none), 4).missing


def request(query, session="s", caller=ACME):
    return RetrieveRequest("r", query, "c", 10, 1000.0, session_id=session, caller=caller)


async def told(conversations, query, caller=ACME, session="s"):
    """One turn: what it was taken as; it finds the document of its number."""
    asked, seen = request(query, session, caller), features(query)
    follows = await conversations.follow_up(asked, seen, [])
    retrieved = Retrieved("r", (hit(len(query)),), None, seen, "v", (), (), {}, session=follows)
    conversations.remember(asked, retrieved)
    for task in list(conversations._adding):
        await task
    return follows


@pytest.fixture
def conversations():
    return Conversations(InProcessSessions(SessionSettings()))


async def test_a_chain_of_follow_ups_keeps_its_subject(conversations):
    await told(conversations, "What is the capacity of the Halden H5 battery?")
    first = await told(conversations, "and its price?")
    second = await told(conversations, "How long is its warranty?")
    assert first.subjects == second.subjects == ("halden h5 battery",)
    assert {"d46", "d14"} == set(second.documents)


async def test_nobody_else_s_session_is_seen(conversations):
    await told(conversations, "What is the capacity of the Halden H5 battery?")
    for stranger in (Caller("other"), Caller("acme", ("board",)), Caller("acme", (), True)):
        assert await told(conversations, "and its price?", stranger) is None
    assert await told(conversations, "and its price?", session="t") is None


class Away:
    async def turns(self, key):
        raise ServiceUnavailable("sessions", "is away")

    async def add(self, key, turn):
        raise ServiceUnavailable("sessions", "is away")


async def test_a_store_that_is_away_costs_follow_ups_only(http, gateway):
    gateway.conversations = Conversations(Away())
    query = {"query": "what does the thing cost", "collection": "stub", "session_id": "s"}
    assert [] == (await http.post("/v1/retrieve", json=query)).json()["missing"]
    body = (await http.post("/v1/retrieve", json=query | {"query": "and its price?"})).json()
    assert [("unavailable", "session")] == [(m["reason"], m["subject"]) for m in body["missing"]]
    assert body["passages"]


async def test_a_follow_up_says_how_it_was_searched(http, gateway):
    first = {"query": "What is the capacity of the Halden H5 battery?", "collection": "stub"}
    await http.post("/v1/retrieve", json=first | {"session_id": "s"})
    follow = {"query": "and its price?", "collection": "stub", "session_id": "s"}
    sent = (await http.post("/v1/retrieve", json=follow)).json()
    assert "halden h5 battery and its price?" == sent["session"]["query"]
    assert sent["session"]["documents"]
    record = (await http.get(f"/v1/requests/{sent['request_id']}")).json()["record"]
    assert "and its price?" == record["query"]
    assert sent["session"] == record["execution"]["session"]
    gateway._store_query_text = False
    sent = (await http.post("/v1/retrieve", json=follow)).json()
    assert "halden" not in (await http.get(f"/v1/requests/{sent['request_id']}")).text
