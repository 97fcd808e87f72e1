"""The OpenAI-compatible encoder against a real HTTP server on the loopback."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from skills.encoders.openai import OpenAiEncoder
from skills.errors import (
    SkillFailed,
    SkillMisconfigured,
    SkillRejected,
    SkillTimeout,
    SkillUnavailable,
)
from skills.resources import Resources, ResourceSettings


class Endpoint:
    """Answers each request with the next scripted answer, else with honest embeddings."""

    def __init__(self):
        self.scripted = []
        self.requests = []
        self.released = threading.Event()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                endpoint.requests.append((self.path, self.headers.get("authorization"), body))
                status, headers, answer = endpoint.answer(body)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def answer(self, body):
        scripted = self.scripted.pop(0) if self.scripted else 200
        if scripted == "hang":
            self.released.wait(10)
            scripted = 200
        if isinstance(scripted, bytes):
            return 200, {}, scripted
        if scripted != 200:
            return scripted, {"retry-after": "0"}, b'{"error": "scripted"}'
        rows = [
            {"index": i, "embedding": [len(text), 1.0, 0.0], "object": "embedding"}
            for i, text in enumerate(body["input"])
        ]
        return 200, {}, json.dumps({"data": rows[::-1], "model": body["model"]}).encode()

    def close(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def endpoint():
    endpoint = Endpoint()
    yield endpoint
    endpoint.close()


@pytest.fixture
def encoder(endpoint, tmp_path):
    def build(**config):
        given = {"base_url": endpoint.url, "model": "m", "dim": 3, **config}
        settings = ResourceSettings(home=tmp_path, cache=tmp_path)
        return OpenAiEncoder(OpenAiEncoder.Config(**given), Resources(settings))

    return build


def unit(rows):
    return np.array(rows, np.float32) / np.linalg.norm(rows, axis=1, keepdims=True)


def test_vectors_are_of_unit_length_in_the_order_of_the_texts(encoder):
    vectors = encoder(batch_size=2).encode(["a", "bb", "ccc"], "passage")
    assert np.allclose(unit([[1, 1, 0], [2, 1, 0], [3, 1, 0]]), vectors)
    assert vectors.dtype == np.float32


def test_requests_carry_key_model_and_prefixed_texts(endpoint, encoder):
    encoder(api_key="secret", query_prefix="q: ", ask_for_dim=True).encode(["a"], "query")
    body = {"model": "m", "input": ["q: a"], "dimensions": 3}
    assert [("/v1/embeddings", "Bearer secret", body)] == endpoint.requests


def test_no_texts_ask_nobody(endpoint, encoder):
    assert (0, 3) == encoder().encode([], "query").shape == encoder().encode([], "passage").shape
    assert endpoint.requests == []


def test_a_repeated_query_is_asked_for_once(endpoint, encoder):
    built = encoder()
    assert np.array_equal(built.encode(["a", "a"], "query"), built.encode(["a", "a"], "query"))
    assert len(endpoint.requests) == 1


def test_passages_wait_for_a_busy_endpoint(endpoint, encoder):
    endpoint.scripted = [429, 503]
    assert (1, 3) == encoder().encode(["a"], "passage").shape
    assert len(endpoint.requests) == 3


@pytest.mark.parametrize(
    ("scripted", "expected"),
    [
        (429, SkillRejected),
        (401, SkillMisconfigured),
        (404, SkillMisconfigured),
        (503, SkillUnavailable),
        (b"<html>", SkillFailed),
        (b'{"data": []}', SkillFailed),
        (b'{"data": [{"index": 0, "embedding": [1, 2]}]}', SkillFailed),
        (b'{"data": [{"index": 1, "embedding": [1, 2, 3]}]}', SkillFailed),
        (b'{"data": [{"index": 0, "embedding": [0, 0, 0]}]}', SkillFailed),
        (b'{"data": [{"index": 0, "embedding": [1e999, 0, 0]}]}', SkillFailed),
    ],
)
def test_a_query_fails_at_once_and_says_how(endpoint, encoder, scripted, expected):
    endpoint.scripted = [scripted]
    with pytest.raises(expected):
        encoder().encode(["a"], "query")
    assert len(endpoint.requests) == 1


def test_a_query_does_not_wait_beyond_its_timeout(endpoint, encoder):
    endpoint.scripted = ["hang"]
    with pytest.raises(SkillTimeout):
        encoder(query_timeout_s=0.1).encode(["a"], "query")


def test_an_endpoint_that_is_not_there_is_unavailable(endpoint, encoder):
    built = encoder(base_url="http://127.0.0.1:9/v1")
    with pytest.raises(SkillUnavailable, match="cannot be reached"):
        built.encode(["a"], "query")


def test_the_key_is_in_no_error_and_no_representation(endpoint, encoder):
    endpoint.scripted = [401]
    built = encoder(api_key="secret")
    with pytest.raises(SkillMisconfigured) as failure:
        built.encode(["a"], "query")
    assert "secret" not in str(failure.value) + repr(built._config)


def test_the_space_is_named_by_model_length_and_prefixes(encoder):
    ids = {encoder(**c).id for c in ({}, {"model": "n"}, {"dim": 4}, {"passage_prefix": "p: "})}
    assert len(ids) == 4
