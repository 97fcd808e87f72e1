"""Nobody gets to see a passage that they may not read, whatever they ask, however it is searched.

`TACTICIAN_ACCESS_PAIRS` sets how many (query, caller) pairs are tried, and
`TACTICIAN_ACCESS_SEED` which ones; the default keeps the test short.
"""

import hashlib
import os
import random
import re

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from serve_app.api.app import build_api
from serve_app.config import load_config
from serve_app.graph import local_gateway
from skills.resources import Resources
from skills.stores.conditions import Access
from skills.stores.store import IndexedPassage
from skills.types import Caller, Passage, PassageMetadata

pytestmark = pytest.mark.slow

PAIRS = int(os.environ.get("TACTICIAN_ACCESS_PAIRS", "120"))
SEED = int(os.environ.get("TACTICIAN_ACCESS_SEED", "9"))
OF_A_PASSAGE = re.compile(r"\bp\d{4}\b|\bd\d{3}\b|secret\d{4}x")
TENANTS, ROLES = ("", "acme", "umbrella"), ("finance", "legal", "board")
SUBJECTS = ("net sales", "boiler pressure", "delivery dates", "净销售额", "锅炉压力", "warranty")
PLACES = ("Zurich", "Osaka", "Lima", "上海")


def passages(rng):
    """Passages that differ in who may read them; each has a word that no other has."""
    made = []
    for i in range(240):
        subject, place = rng.choice(SUBJECTS), rng.choice(PLACES)
        text = (
            f"The {subject} of {place} in {rng.randint(2019, 2025)} were {i} units. secret{i:04d}x"
        )
        about = PassageMetadata(
            tenant=rng.choice(TENANTS),
            allowed_roles=tuple(rng.sample(ROLES, rng.choice((0, 0, 1, 2)))),
            sensitive_flag=rng.random() < 0.3,
            last_updated=f"20{rng.randint(19, 25)}-03-01T00:00:00+00:00",
            attributes={"place": place},
        )
        made.append(Passage(f"p{i:04d}", f"d{i // 3:03d}", text, f"{subject} {place}", about))
    return made


def callers():
    roles = [(), *((role,) for role in ROLES), ("finance", "board")]
    return [Caller(t, r, c) for t in TENANTS for r in roles for c in (False, True)]


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """An API on the embedded store, with every plan that runs without a model, and its passages."""
    home = tmp_path_factory.mktemp("access")
    parts = ("gateway", "analyzer", "orchestrator", "generator", "recorder")
    config = load_config(
        environment={},
        home=home,
        cache=home,
        inline_skills=True,
        parts={part: {"placement": "inline"} for part in parts},
        skills=(
            "keyword",
            "dense",
            "metadata_filter",
            "entity_pair",
            "fusion",
            "contextual",
            "siblings",
        ),
        encoders={"default": {"class_path": "skills.encoders.hashing.HashingEncoder"}},
        callers={
            "keys": [
                {
                    "name": f"k{number}",
                    "sha256": hashlib.sha256(f"k{number}".encode()).hexdigest(),
                    "tenant": caller.tenant,
                    "roles": caller.roles,
                    "clearance": caller.clearance,
                }
                for number, caller in enumerate(callers())
            ]
        },
    )
    made = passages(random.Random(4))
    resources = Resources(config.resources)
    encoder = resources.encoder()
    vectors = encoder.encode([passage.text for passage in made], "passage")
    writer = resources.store().writer("c", {"dense": (encoder.id, encoder.dim)})
    writer.upsert(
        [IndexedPassage(p, {"dense": v}, "h") for p, v in zip(made, vectors, strict=True)]
    )
    writer.commit()
    gateway = local_gateway(config)
    return build_api(gateway, config), gateway, made


@pytest.fixture
def spans(monkeypatch):
    """What is exported of every request."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)  # may be set but once otherwise
    return exporter


def a_question(rng, made):
    """A question about something, or for a very passage."""
    if rng.random() < 0.3:
        return rng.choice(made).text
    subject, place, other = rng.choice(SUBJECTS), rng.choice(PLACES), rng.choice(PLACES)
    forms = ("{} in {}", "compare {} of {} and {}", "{} of {} 2022", "{}和{}的区别", "and its {}?")
    return rng.choice(forms).format(subject, place, other)


async def test_no_response_holds_a_passage_that_its_caller_may_not_read(everything, spans):
    api, gateway, made = everything
    rng, found, body = random.Random(SEED), 0, {}
    plans = gateway.candidates()
    assert {"keyword", "dense", "hybrid_rrf", "hybrid_filtered", "compared"} <= set(plans)
    transport = httpx.ASGITransport(api)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        for _ in range(PAIRS):
            number = rng.randrange(len(callers()))
            access = Access.of(callers()[number])
            headers = {"Authorization": f"Bearer k{number}"}
            if (
                not body or rng.random() < 0.7
            ):  # else another caller asks the same: not from a cache
                body = {"query": a_question(rng, made), "collection": "c"}
                body |= {"plan": rng.choice(plans), "top_k": rng.choice((1, 10, 100))}
                body |= {"budget_ms": 20_000}
                if rng.random() < 0.3:  # one name, but every scope has its own session
                    body |= {"session_id": "shared"}
            path = rng.choice(("/v1/retrieve", "/v1/retrieve", "/v1/answer"))
            answer = (await client.post(path, json=body, headers=headers)).raise_for_status()
            record = await client.get(
                f"/v1/requests/{answer.json()['request_id']}", headers=headers
            )
            found += len(answer.json()["passages"])
            asked = rng.choice(made)
            question = {"request_id": answer.json()["request_id"], "id": asked.id}
            told = await client.post("/v1/why_not", json=question, headers=headers)
            if not access.allows(asked):
                assert "not_indexed" == told.json()["outcome"]
            said = answer.text + record.text + told.text
            for passage in made:
                if not access.allows(passage) and passage is not asked:
                    word = passage.text[-11:]
                    assert f'"{passage.id}"' not in said
                    assert word not in said or word in body["query"]
            told_of = "".join(span.to_json() for span in spans.get_finished_spans())
            assert answer.json()["request_id"] in told_of
            assert not OF_A_PASSAGE.search(told_of)
            spans.clear()
    assert found > PAIRS
    assert gateway.graph.results.counts.misses
    await gateway.recording.drain(10)
