"""Every way to lose a passage, on the embedded store."""

from dataclasses import replace

import httpx
import pytest

from policies.plan import Deduplicate, Plan
from serve_app.api.app import build_api
from serve_app.config import load_config
from serve_app.graph import local_gateway
from skills.errors import SkillUnavailable
from skills.resources import Resources
from skills.skill import SkillResult
from skills.stores.store import IndexedPassage
from skills.types import Passage, PassageMetadata

pytestmark = pytest.mark.slow

BOILER = "the boiler of hall {} was inspected for leaks"


def made():
    boilers = [
        Passage(f"b{i}", f"doc{i}", BOILER.format(f"{i} " * 3) + f" number{i}") for i in range(8)
    ]
    return [
        *boilers,
        Passage("twin", "doc-twin", boilers[0].text),
        Passage("late", "doc-late", "nothing alike: quarterly sales of batteries"),
        Passage("german", "doc-german", BOILER.format("x"), "", PassageMetadata(language="de")),
        Passage("secret", "s", BOILER.format("z"), "", PassageMetadata(allowed_roles=("board",))),
    ]


def plan(name, *stages, **more):
    return Plan(name=name, description="d", cost_hint_ms=1, stages=stages, **more)


KEYWORD = {"call": [{"skill": "keyword", "top_k": 9}]}
PLANS = [
    plan("wide", {"call": [{"skill": "keyword", "top_k": 50}]}),
    plan("narrow", {"call": [{"skill": "keyword", "top_k": 2}]}),
    plan("capped", KEYWORD, deduplicate=Deduplicate(per_document=1)),
    plan("fused", {"call": KEYWORD["call"] + [{"skill": "dense"}], "fuse": {"top_k": 2}}),
    plan("reranked", KEYWORD, {"call": [{"skill": "contextual", "top_k": 9}]}),
]


@pytest.fixture
async def asking(tmp_path):
    parts = ("gateway", "analyzer", "orchestrator", "generator", "recorder")
    config = load_config(
        environment={},
        home=tmp_path,
        cache=tmp_path,
        inline_skills=True,
        parts={part: {"placement": "inline"} for part in parts},
        skills=("keyword", "dense", "fusion", "contextual"),
        encoders={"default": {"class_path": "skills.encoders.hashing.HashingEncoder"}},
        results={"enabled": False},
    )
    resources = Resources(config.resources)
    encoder = resources.encoder()
    writer = resources.store().writer("c", {"dense": (encoder.id, encoder.dim)})
    vectors = encoder.encode([p.text for p in made()], "passage")
    writer.upsert(
        [IndexedPassage(p, {"dense": v}, "h") for p, v in zip(made(), vectors, strict=True)]
    )
    writer.commit()
    gateway = local_gateway(config)
    plans = {p.name: p for p in PLANS}
    catalogue = replace(gateway.graph.catalogue, plans=plans)
    gateway.apply(replace(gateway.graph, catalogue=catalogue, candidates=tuple(plans)))
    api = build_api(gateway, config)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(api), base_url="http://test"
    ) as client:

        async def ask(wanted, plan, query="was the boiler inspected for leaks", **body):
            body = {"query": query, "collection": "c", "plan": plan, "budget_ms": 20_000} | body
            sent = (await client.post("/v1/retrieve", json=body)).raise_for_status().json()
            question = {"request_id": sent["request_id"], "id": wanted}
            answer = await client.post("/v1/why_not", json=question)
            return answer.json()

        ask.gateway, ask.client = gateway, client
        yield ask
        await gateway.recording.drain(5)


async def test_every_way_to_lose_a_passage_is_told(asking):
    first = {"top_k": 1}
    for wanted, told, plan_name, body in [
        ("b3", "returned", "wide", {}),
        ("nowhere", "not_indexed", "wide", {}),
        ("secret", "forbidden", "wide", {}),
        ("german", "filtered", "wide", {"filters": {"language": ["en", "zh"]}}),
        ("late", "not_in_top_k", "wide", {}),
        ("b7", "not_in_top_k", "narrow", {}),
        ("twin", "duplicate", "wide", {"query": "boiler hall 0 number0"}),
        ("b7", "below_top_k", "wide", first),
        ("b7", "fused_out", "fused", {}),
        ("doc7", "below_top_k", "wide", first),
    ]:
        answer = await asking(wanted, plan_name, **body)
        assert (wanted, told) == (wanted, answer["outcome"]), answer
        assert answer["detail"]


async def test_the_true_rank_in_an_arm_is_told(asking):
    answer = await asking("b7", "narrow")
    (step,) = answer["steps"]
    assert ("keyword", 2) == (step["skill"], step["top_k"])
    assert step["rank"] > 2
    assert str(step["rank"]) in answer["detail"]


async def test_the_condition_that_kept_it_out_is_named(asking):
    answer = await asking("german", "wide", filters={"language": "en"})
    assert "language" in answer["detail"]
    assert "'en'" in answer["detail"]


async def test_what_it_is_a_duplicate_of_is_named(asking):
    answer = await asking("twin", "wide", query="boiler hall 0 number0")
    assert "same text as b0" == answer["detail"]


async def test_a_document_is_found_by_its_id(asking):
    answer = await asking("doc-late", "wide")
    assert (["late"], "not_in_top_k") == (answer["passage_ids"], answer["outcome"])


def behave(gateway, skill, does):
    """Let a skill do something else, and back again."""
    target = gateway.graph.executor._targets[skill]
    before, target._target = target._target, does
    return lambda: setattr(target, "_target", before)


class Does:
    def __init__(self, does):
        self._does = does

    async def call(self, request, deadline):
        answer = self._does(request)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_an_arm_that_was_away_is_told_with_the_rank_it_would_have_had(asking):
    restore = behave(asking.gateway, "keyword", Does(lambda r: SkillUnavailable("keyword", "down")))
    body = {"query": "was the boiler inspected", "collection": "c", "plan": "wide"}
    sent = (await asking.client.post("/v1/retrieve", json=body)).json()
    restore()
    question = {"request_id": sent["request_id"], "id": "b3"}
    answer = (await asking.client.post("/v1/why_not", json=question)).json()
    assert "unavailable" == answer["outcome"]
    assert "would have found it at rank" in answer["detail"]
    assert "down" in answer["detail"]


async def test_a_reranker_that_moved_it_down_is_named(asking):
    turned = Does(lambda r: SkillResult(hits=tuple(reversed(r.hits))))
    behave(asking.gateway, "contextual", turned)
    body = {"query": "boiler hall 3 number3", "collection": "c", "plan": "reranked", "top_k": 2}
    sent = (await asking.client.post("/v1/retrieve", json=body)).json()
    question = {"request_id": sent["request_id"], "id": "b3"}
    answer = (await asking.client.post("/v1/why_not", json=question)).json()
    assert "reranked_down" == answer["outcome"], answer
    assert "contextual moved it" in answer["detail"]


async def test_a_query_that_was_not_kept_cannot_be_asked_again(asking):
    asking.gateway._store_query_text = False
    answer = await asking("late", "wide")
    assert (422, "request_id") == (answer["status"], answer["errors"][0]["field"])
