"""The graph on Ray Serve: HAProxy in front, every part a deployment of its own."""

import os
import signal
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import psutil
import pytest

pytestmark = [pytest.mark.serve, pytest.mark.slow]

QUERY = {"query": "what does the thing cost", "collection": "stub", "top_k": 5}
BUDGET_MS = 1000.0
TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def pid_of(part):
    """The process of a part's replica."""
    title = f"ray::ServeReplica:tactician:{part}"
    found = [
        p.pid for p in psutil.process_iter(["cmdline"]) if title in (p.info["cmdline"] or [""])[0]
    ]
    assert found, f"no replica of {part}"
    return found[0]


def under_load(http, seconds, clients=4):
    """Answers and their times of a few clients that ask without a pause."""
    until = time.monotonic() + seconds
    answers = []

    def client():
        with httpx.Client(base_url=http.base_url, timeout=30) as own:
            while time.monotonic() < until:
                started = time.monotonic()
                answer = own.post("/v1/retrieve", json=QUERY | {"budget_ms": BUDGET_MS})
                answers.append((answer, (time.monotonic() - started) * 1000))

    with ThreadPoolExecutor(clients) as pool:
        for done in [pool.submit(client) for _ in range(clients)]:
            done.result()
    return answers


def test_a_query_goes_through_every_part(http):
    body = http.post("/v1/answer", json=QUERY).raise_for_status().json()
    assert 5 == len(body["passages"])
    assert body["answer"]["sentences"]
    assert [] == body["missing"]
    skills = {call["skill"] for stage in body["stages"] for call in stage["calls"]}
    assert {"left", "right", "fusion"} == skills


def test_a_request_is_recorded_and_takes_feedback(http):
    sent = http.post("/v1/retrieve", json=QUERY).json()
    signal_body = {"request_id": sent["request_id"], "kind": "thumb", "value": 1}
    assert 201 == http.post("/v1/feedback", json=signal_body).status_code
    body = http.get(f"/v1/requests/{sent['request_id']}").json()
    assert [1.0] == [s["value"] for s in body["signals"]]
    assert sent["decision"]["plan"] == body["record"]["decision"]["plan"]


def test_problems_come_through_the_proxy_as_they_are(http):
    answer = http.post("/v1/retrieve", json=QUERY | {"top_k": 10_000})
    assert (422, "top_k") == (answer.status_code, answer.json()["errors"][0]["field"])
    assert 422 == http.post("/v1/retrieve", json=QUERY | {"query": "x" * 1_000_000}).status_code


def is_whole(body):
    """Whether a response is that of the plan with both stub skills, with nothing missing."""
    return "stub_hybrid" == body["decision"]["plan"] and not body["missing"]


@pytest.mark.parametrize("mode", ["hang", "raise", "garbage", "slow"])
def test_every_request_is_answered_while_one_skill_misbehaves(http, modes, mode):
    modes("left", mode)
    time.sleep(0.2)
    answers = under_load(http, 4)
    assert {200} == {answer.status_code for answer, _ in answers}
    times = sorted(ms for _, ms in answers)
    assert times[int(0.99 * len(times))] <= 1.1 * BUDGET_MS
    bodies = [answer.json() for answer, _ in answers[len(answers) // 2 :]]
    assert all(body["passages"] for body in bodies)
    if mode != "slow":  # 200 ms is within the skill's timeout
        assert not any(is_whole(body) for body in bodies)
    modes("left", "")
    until = time.monotonic() + 15
    while not is_whole(http.post("/v1/retrieve", json=QUERY).json()):
        assert time.monotonic() < until, "did not recover"
        time.sleep(0.2)


@pytest.mark.parametrize("part", ["skill.left", "analyzer", "orchestrator", "recorder"])
def test_every_request_is_answered_while_a_replica_is_killed(http, part):
    victim = pid_of(part)
    killer = threading.Timer(1.0, os.kill, (victim, signal.SIGKILL))
    killer.start()
    answers = under_load(http, 5)
    killer.join()
    assert {200} == {answer.status_code for answer, _ in answers}
    assert all(answer.json()["passages"] for answer, _ in answers)
    times = sorted(ms for _, ms in answers)
    assert times[int(0.99 * len(times))] <= 1.1 * BUDGET_MS
    until = time.monotonic() + 30
    while http.post("/v1/retrieve", json=QUERY).json()["missing"]:
        assert time.monotonic() < until, "did not recover"
        time.sleep(0.2)


def test_feedback_that_was_acknowledged_survives_the_death_of_the_recorder(http):
    sent = http.post("/v1/retrieve", json=QUERY).json()
    ids = [f"signal-{i}" for i in range(20)]
    for signal_id in ids:
        body = {
            "request_id": sent["request_id"],
            "kind": "copy",
            "value": 1,
            "signal_id": signal_id,
        }
        until = time.monotonic() + 30  # an earlier test may just have killed the recorder
        while http.post("/v1/feedback", json=body).status_code != 201:
            assert time.monotonic() < until
            time.sleep(0.3)
    os.kill(pid_of("recorder"), signal.SIGKILL)
    until = time.monotonic() + 30
    while (found := http.get(f"/v1/requests/{sent['request_id']}")).status_code != 200:
        assert time.monotonic() < until
        time.sleep(0.3)
    assert ids == sorted(
        (s["signal_id"] for s in found.json()["signals"]), key=lambda s: int(s[7:])
    )


def orphans(spans):
    """Names of spans whose parent is neither another span of the trace nor the caller."""
    known = {span.span_id for span in spans} | {bytes.fromhex(CALLER)}
    return [span.name for span in spans if span.parent_span_id not in known]


def test_one_trace_reaches_from_the_caller_to_every_skill(http, otlp):
    headers = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
    calls = [(QUERY, headers), *[(QUERY, None)] * 7]
    with ThreadPoolExecutor(8) as pool:  # so that calls of several requests travel together
        list(pool.map(lambda c: http.post("/v1/answer", json=c[0], headers=c[1]), calls))
    wanted = {
        f"tactician.call {p}" for p in ("analyzer", "orchestrator", "skill.left", "skill.right")
    }
    until = time.monotonic() + 15
    while not wanted <= {span.name for span in otlp.traces[TRACE]} or orphans(otlp.traces[TRACE]):
        seen = sorted(span.name for span in otlp.traces[TRACE])
        assert time.monotonic() < until, (seen, orphans(otlp.traces[TRACE]))
        time.sleep(0.2)
    spans = otlp.traces[TRACE]
    assert 1 == sum(span.name == "tactician.answer" for span in spans)
    text = str(spans)
    assert QUERY["query"] not in text
    assert "a passage about the thing" not in text


def test_latency_of_the_graph_is_said_in_parts(http):
    bodies = [http.post("/v1/retrieve", json=QUERY).json() for _ in range(20)]
    for body in bodies:
        parts = sum(ms for name, ms in body["timings_ms"].items() if name != "total")
        assert parts == pytest.approx(body["timings_ms"]["total"], abs=1.0)
    assert statistics.median(body["timings_ms"]["total"] for body in bodies) > 0
