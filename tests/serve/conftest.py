"""One service on one Ray cluster for all tests here: stub skills whose behaviour a test can change
while it runs."""

import gzip
import json
import os
import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ingest.request import IngestRequest
from ingest.run import run as run_ingest
from serve_app.config import load_config
from serve_app.service import Service, free_port

STUBS = Path(__file__).parents[1] / "load" / "stubs"


class OtlpReceiver:
    """Takes OTLP over HTTP and keeps the spans by trace id (hex)."""

    def __init__(self):
        self.traces = defaultdict(list)
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                received = ExportTraceServiceRequest.FromString(body)
                for resource in received.resource_spans:
                    for scope in resource.scope_spans:
                        for span in scope.spans:
                            receiver.traces[span.trace_id.hex()].append(span)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *args):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="session")
def otlp():
    receiver = OtlpReceiver()
    yield receiver
    receiver.close()


@pytest.fixture(scope="session")
def modes(tmp_path_factory):
    """Sets how the stub skills behave: `modes("left", "hang")`."""
    folder = tmp_path_factory.mktemp("modes")

    def set_mode(skill, mode):
        (folder / skill).write_text(mode, encoding="utf-8")

    for skill in ("left", "right"):
        os.environ[f"STUB_MODE_FILE_{skill}"] = str(folder / skill)
        set_mode(skill, "")
    yield set_mode
    for skill in ("left", "right"):
        del os.environ[f"STUB_MODE_FILE_{skill}"]


def write_corpus(path, texts):
    lines = [{"_id": f"d{i}", "title": "", "text": text} for i, text in enumerate(texts)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


@pytest.fixture(scope="session")
def service(tmp_path_factory, otlp, modes):
    root = Path(__file__).parents[2]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(root))
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", otlp.url)
        patch.setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
        home = tmp_path_factory.mktemp("home")
        config = load_config(
            environment={},
            home=home,
            cache=home,
            http={"port": free_port()},
            skill_dirs=(STUBS / "skills",),
            plan_dirs=(STUBS / "plans",),
            rules_file=STUBS / "rules.yaml",
            skills=("left", "right", "fusion", "keyword", "dense"),
            encoders={"default": {"class_path": "skills.encoders.hashing.HashingEncoder"}},
            generator={"class_path": "tests.load.stubs.generator.StubGenerator"},
        )
        write_corpus(home / "stub.jsonl", ["the thing costs seven"])
        run_ingest(IngestRequest((str(home / "stub.jsonl"),), "stub", config.resources))
        started = Service(config)
        try:
            started.start()
            yield started
        finally:
            started.stop()


@pytest.fixture
def http(service, modes):
    with httpx.Client(base_url=service.url, timeout=30) as client:
        yield client
    modes("left", "")
    modes("right", "")
