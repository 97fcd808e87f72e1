import asyncio
import json
from dataclasses import replace

import httpx
import pytest

from policies.experience.store import ExperienceStore
from policies.plan import Plan
from serve_app.api.app import build_api
from serve_app.config import load_config
from serve_app.graph import local_gateway
from skills.resources import Resources
from skills.stores.store import IndexedPassage
from skills.types import Passage, PassageMetadata
from tests.unit.policies.experience.records import record

QUERY = {"query": "what does the thing cost", "collection": "stub"}


async def test_retrieve_answers_with_passages_and_how_they_were_found(http):
    answer = await http.post("/v1/retrieve", json=QUERY | {"top_k": 3})
    assert 200 == answer.status_code
    body = answer.json()
    assert 3 == len(body["passages"])
    first = body["passages"][0]
    assert {"id", "document_id", "text", "score", "metadata", "provenance", "title"} == set(first)
    assert {"left", "right", "fusion"} == {p["skill"] for p in first["provenance"]}
    assert "stub_hybrid" == body["decision"]["plan"]
    assert 1.0 == body["decision"]["propensity"]
    assert body["decision"]["reason"]
    assert [] == body["missing"]
    assert {"analyze", "decide", "execute", "total"} == set(body["timings_ms"])
    assert "below_top_k" in body["stages"][0]["dropped"]


async def test_answer_cites_the_passage_it_quotes(http):
    body = (await http.post("/v1/answer", json=QUERY)).json()
    sentence = body["answer"]["sentences"][0]
    citation = sentence["citations"][0]
    passage = next(p for p in body["passages"] if p["id"] == citation["passage_id"])
    assert sentence["text"] == passage["text"][citation["start"] : citation["end"]]
    assert "generate" in body["timings_ms"]


async def test_a_request_can_be_explained_right_after_it(http):
    sent = (await http.post("/v1/retrieve", json=QUERY | {"user_id": "u-4711"})).json()
    body = (await http.get(f"/v1/requests/{sent['request_id']}")).json()
    record = body["record"]
    assert "stub_hybrid" == record["decision"]["plan"]
    assert [p["id"] for p in sent["passages"]] == [p["id"] for p in record["passages"]]
    assert record["execution"]["stages"][0]["calls"]
    assert record["user_digest"]
    assert "u-4711" not in str(body)


async def test_a_record_that_another_gateway_hands_over_is_waited_for(http, config, monkeypatch):
    monkeypatch.setattr("serve_app.api.history.FIND_FOR_S", 5.0)
    asked = asyncio.create_task(http.get(f"/v1/requests/{'7' * 32}"))
    await asyncio.sleep(0.2)
    assert not asked.done()
    store = ExperienceStore(config.experience_url)
    store.write_batch([record("7" * 32)], [])
    store.close()
    answer = await asked
    assert (200, "7" * 32) == (answer.status_code, answer.json()["record"]["request_id"])


async def test_feedback_joins_its_request(http, gateway):
    sent = (await http.post("/v1/retrieve", json=QUERY)).json()
    signal = {"request_id": sent["request_id"], "kind": "thumb", "value": 1, "signal_id": "s1"}
    for _ in range(2):
        assert 201 == (await http.post("/v1/feedback", json=signal)).status_code
    await gateway.recording.drain(5)
    body = (await http.get(f"/v1/requests/{sent['request_id']}")).json()
    assert [("s1", "thumb", 1.0)] == [
        (s["signal_id"], s["kind"], s["value"]) for s in body["signals"]
    ]


async def test_feedback_is_on_passages_that_the_response_had(http):
    sent = (await http.post("/v1/retrieve", json=QUERY)).json()
    signal = {"request_id": sent["request_id"], "kind": "thumb", "value": 1}
    foreign = await http.post("/v1/feedback", json=signal | {"passage_id": "elsewhere-1"})
    assert (422, "passage_id") == (foreign.status_code, foreign.json()["errors"][0]["field"])
    shown = sent["passages"][0]["id"]
    own = await http.post("/v1/feedback", json=signal | {"passage_id": shown})
    assert 201 == own.status_code


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"query": ""}, "query"),
        ({"query": "  \n"}, "query"),
        ({"query": "a\x00b"}, "query"),
        ({"query": "\ud800"}, "query"),
        ({"query": 7}, "query"),
        ({"query": "x" * 1_000_000}, "query"),
        ({"query": None}, "query"),
        ({"collection": "No Such!"}, "collection"),
        ({"collection": "../../etc"}, "collection"),
        ({"top_k": 0}, "top_k"),
        ({"top_k": 10_000}, "top_k"),
        ({"top_k": "3"}, "top_k"),
        ({"top_k": 2.5}, "top_k"),
        ({"plan": "no_such_plan"}, "plan"),
        ({"budget_ms": -1}, "budget_ms"),
        ({"budget_ms": 1e12}, "budget_ms"),
        ({"filters": {"language": {"like": "z"}}}, "filters"),
        ({"filters": {"language": []}}, "filters"),
        ({"filters": [1]}, "filters"),
        ({"filters": {"language": "e\x00n"}}, "filters"),
        ({"filters": {"year": {"gte": float("inf")}}}, "filters"),
        ({"colour": "red"}, "colour"),
        ({"session_id": ""}, "session_id"),
    ],
)
async def test_bad_input_is_refused_with_the_name_of_the_field(http, change, field):
    content = json.dumps(QUERY | change)
    answer = await http.post("/v1/retrieve", content=content)
    body = answer.json()
    assert 422 == answer.status_code
    assert "application/problem+json" == answer.headers["content-type"]
    assert "invalid_request" == body["code"]
    assert field in {e["field"].split(".")[0] for e in body["errors"]}
    assert len(answer.content) < 4000


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b"[" * 100_000]
)
async def test_a_body_that_is_no_json_object_is_refused(http, content):
    headers = {"content-type": "application/json"}
    answer = await http.post("/v1/retrieve", content=content, headers=headers)
    assert answer.status_code in {400, 422}
    assert "invalid_request" == answer.json()["code"]
    assert ["body"] == [e["field"] for e in answer.json()["errors"]]


async def test_an_answer_names_some_of_very_many_wrong_fields(http):
    body = {"query": "x", "collection": "stub"} | {f"k{i}": 1 for i in range(5000)}
    answer = await http.post("/v1/retrieve", json=body)
    assert (422, 20) == (answer.status_code, len(answer.json()["errors"]))
    assert answer.json()["detail"].endswith("and 4980 more")


async def test_a_very_small_budget_is_answered_with_what_is_missing(http):
    body = {"query": "x", "collection": "stub", "budget_ms": 0.001}
    answer = await http.post("/v1/retrieve", json=body)
    assert 200 == answer.status_code
    assert [] == answer.json()["passages"]
    assert answer.json()["missing"]


async def test_a_body_above_the_limit_is_refused_before_it_is_read(http):
    answer = await http.post("/v1/retrieve", content=b"x" * 3_000_000)
    assert (413, "body") == (answer.status_code, answer.json()["errors"][0]["field"])


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1/retrieve", 405),
        ("GET", "/v1/requests/short", 422),
        ("GET", "/v1/requests/" + "0" * 32, 404),
        ("GET", "/v1/skills/none", 404),
    ],
)
async def test_every_error_is_a_problem_document(http, method, path, status):
    answer = await http.request(method, path)
    assert status == answer.status_code
    assert "application/problem+json" == answer.headers["content-type"]
    assert {"type", "title", "status", "detail", "code", "errors"} == set(answer.json())


@pytest.mark.parametrize(
    "change",
    [{"kind": "thumb", "value": 0.5}, {"kind": "rating", "value": 9}, {"kind": "wave", "value": 1}],
)
async def test_feedback_that_means_nothing_is_refused(http, change):
    sent = (await http.post("/v1/retrieve", json=QUERY)).json()
    body = {"request_id": sent["request_id"]} | change
    assert 422 == (await http.post("/v1/feedback", json=body)).status_code


async def test_the_catalogue_says_what_runs(http):
    skills = (await http.get("/v1/skills")).json()["skills"]
    assert {"left", "right", "fusion"} == {s["skill_id"] for s in skills if s["running"]}
    plans = (await http.get("/v1/plans")).json()["plans"]
    assert ["stub_hybrid"] == [p["name"] for p in plans if p["candidate"]]
    schema = (await http.get("/v1/skills/left")).json()["config_schema"]
    assert {"name", "mode_file"} == set(schema["properties"])
    assert ["stub"] == [
        c["name"] for c in (await http.get("/v1/collections")).json()["collections"]
    ]


async def test_health_and_readiness(http):
    assert 200 == (await http.get("/healthz")).status_code
    assert {
        "ready": True,
        "reasons": [],
        "plans": ["stub_hybrid"],
        "skills_away": [],
        "records": {"waiting": 0, "lost": 0},
        "drift": {"raised": False, "raised_until": None, "num_alarms": 0, "alarms": []},
    } == (await http.get("/readyz")).json()


async def test_records_that_were_given_up_show(http, gateway):
    gateway.recording._max_waiting = 0
    await http.post("/v1/retrieve", json=QUERY)
    assert {"waiting": 0, "lost": 1} == (await http.get("/readyz")).json()["records"]


async def test_a_part_that_cannot_be_built_costs_its_part_only(config):
    broken = {"class_path": "tests.no_such_generator"}
    config = config.model_validate(config.model_dump() | {"generator": broken})
    gateway = local_gateway(config)
    api = build_api(gateway, config)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(api), base_url="http://test"
    ) as client:
        body = (await client.post("/v1/answer", json=QUERY)).json()
    assert body["passages"]
    assert body["answer"] is None
    assert [("unavailable", "answer")] == [(m["reason"], m["subject"]) for m in body["missing"]]
    await gateway.recording.drain(5)


async def test_a_gateway_is_not_ready_before_it_is_warm(http, gateway):
    gateway.warm = False
    answer = await http.get("/readyz")
    assert (503, ["warming up"]) == (answer.status_code, answer.json()["reasons"])


async def test_query_text_can_be_kept_out_of_the_record(http, gateway):
    gateway._store_query_text = False
    secret = QUERY | {"query": "salary of Ada Lovelace"}
    sent = (await http.post("/v1/retrieve", json=secret)).json()
    await gateway.recording.drain(5)
    assert "Lovelace" not in (await http.get(f"/v1/requests/{sent['request_id']}")).text


@pytest.mark.parametrize("plan", ["hybrid_filtered", "compared"])
async def test_no_stage_keeps_words_of_the_query_out_of_which_it_made_filters_or_groups(
    tmp_path, plan
):
    config = on_passages(tmp_path, store_query_text=False)
    gateway = local_gateway(config)
    api = build_api(gateway, config)
    query = "compare the revenue of Lovelace and Babbage in Zurich"
    body = {"query": query, "collection": "c", "plan": plan, "budget_ms": 20_000}
    transport = httpx.ASGITransport(api)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        sent = (await client.post("/v1/retrieve", json=body)).raise_for_status().json()
        await gateway.recording.drain(5)
        signal = {"request_id": sent["request_id"], "kind": "copy", "value": 1, "detail": query}
        assert 201 == (await client.post("/v1/feedback", json=signal)).status_code
        record = (await client.get(f"/v1/requests/{sent['request_id']}")).json()
    told = json.dumps(sent["stages"]).casefold()
    assert ("lovelace" if plan == "compared" else "zurich") in told
    assert record["record"]["execution"]["stages"]
    kept = json.dumps(record).casefold()
    assert [] == [w for w in ("revenue", "lovelace", "babbage", "zurich") if w in kept]


def on_passages(home, **experience):
    """A configuration with every plan that runs without a model, on a few passages."""
    parts = ("gateway", "analyzer", "orchestrator", "generator", "recorder")
    config = load_config(
        environment={},
        home=home,
        cache=home,
        inline_skills=True,
        parts={part: {"placement": "inline"} for part in parts},
        skills=("keyword", "dense", "metadata_filter", "entity_pair", "fusion", "contextual"),
        encoders={"default": {"class_path": "skills.encoders.hashing.HashingEncoder"}},
        experience=experience,
    )
    resources = Resources(config.resources)
    encoder = resources.encoder()
    writer = resources.store().writer("c", {"dense": (encoder.id, encoder.dim)})
    for number, place in enumerate(("Zurich", "Osaka", "Lima", "Zurich")):
        name = ("Lovelace", "Babbage")[number % 2]
        text = f"The revenue of {name} rose."
        about = PassageMetadata(
            last_updated=f"202{number}-03-01T00:00:00+00:00", attributes={"place": place}
        )
        passage = Passage(f"p{number}", f"d{number}", text, name, about)
        vector = encoder.encode([text], "passage")[0]
        writer.upsert([IndexedPassage(passage, {"dense": vector}, "h")])
    writer.commit()
    return config


@pytest.mark.parametrize(("path", "holds"), [("/docs", "swagger-ui"), ("/console", "Tactician")])
async def test_pages_load_nothing_from_elsewhere(http, path, holds):
    page = (await http.get(path)).text
    assert holds in page
    assert "https://" not in page.replace("https://fastapi.tiangolo.com/img/favicon.png", "")


async def test_the_console_sends_the_key_that_was_typed_and_keeps_it_no_longer_than_the_tab(http):
    page = (await http.get("/console")).text
    assert 'sessionStorage.getItem("tactician.key")' in page
    assert "headers.authorization = `Bearer ${key}`" in page
    assert "localStorage" not in page


async def test_plans_that_need_a_failing_skill_are_no_candidates_while_others_work(gateway):
    graph = gateway.graph
    away = {"left"}
    one_armed = Plan(
        name="right_only",
        description="without left",
        stages=[{"call": [{"skill": "right"}]}],
        cost_hint_ms=1,
    )
    plans = {**graph.plans, "right_only": one_armed}
    catalogue = replace(graph.catalogue, plans=plans)
    graph = replace(graph, catalogue=catalogue, candidates=("stub_hybrid", "right_only"))
    graph.executor.wellness.away = lambda: frozenset(away)
    assert ("right_only",) == graph.working()
    away |= {"right"}
    assert ("stub_hybrid", "right_only") == graph.working()
