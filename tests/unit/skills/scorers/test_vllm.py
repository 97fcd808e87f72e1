"""The vLLM scorer against a real HTTP server on the loopback."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from skills.errors import SkillFailed, SkillMisconfigured, SkillTimeout, SkillUnavailable
from skills.resources import Resources, ResourceSettings
from skills.scorers.scorer import PairScorer
from skills.scorers.vllm import VllmScorer


@pytest.fixture
def endpoint():
    seen, scripted, release = [], [], threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            seen.append((self.path, self.headers.get("authorization"), body))
            status, answer = scripted.pop(0) if scripted else (200, None)
            if answer == "hang":
                release.wait(10)
            if answer is None:
                rows = [{"index": i, "score": len(t) / 10} for i, t in enumerate(body["text_2"])]
                answer = {"data": rows[::-1], "object": "list"}
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    server.seen, server.scripted = seen, scripted
    server.url = f"http://127.0.0.1:{server.server_port}/v1/"
    yield server
    release.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def scorer(endpoint, tmp_path):
    config = VllmScorer.Config(base_url=endpoint.url, model="m", api_key="secret", max_tokens=256)
    return VllmScorer(config, Resources(ResourceSettings(home=tmp_path, cache=tmp_path)))


def score(scorer, timeout_ms=2000):
    return asyncio.run(scorer.score("q", ["a", "bbb"], timeout_ms)).tolist()


def test_scores_are_in_the_order_of_the_passages(endpoint, scorer):
    assert isinstance(scorer, PairScorer)
    assert [pytest.approx(0.1), pytest.approx(0.3)] == score(scorer)
    body = {"model": "m", "text_1": "q", "text_2": ["a", "bbb"], "truncate_prompt_tokens": 256}
    assert [("/v1/score", "Bearer secret", body)] == endpoint.seen


@pytest.mark.parametrize(
    ("status", "answer", "expected"),
    [
        (200, {"data": []}, SkillFailed),
        (200, {"data": [{"index": 0, "score": "high"}]}, SkillFailed),
        (200, {"data": [{"index": 1, "score": 1}, {"index": 1, "score": 2}]}, SkillFailed),
        (404, {"error": "no model m"}, SkillMisconfigured),
        (503, {}, SkillUnavailable),
    ],
)
def test_an_answer_that_is_no_score_a_passage_is_an_error(
    endpoint, scorer, status, answer, expected
):
    endpoint.scripted.append((status, answer))
    with pytest.raises(expected):
        score(scorer)


def test_it_waits_no_longer_than_it_may(endpoint, scorer):
    endpoint.scripted.append((200, "hang"))
    with pytest.raises(SkillTimeout):
        score(scorer, timeout_ms=100)
