"""Requests made from the API's own description: whatever they hold, the service must not break."""

import tempfile
from collections import defaultdict
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.python import asgi

from serve_app.api.app import build_api
from serve_app.config import load_config
from serve_app.graph import local_gateway
from serve_app.parts.orchestrator import policy_registry
from skills.resources import Resources
from tests.contract.store_contract import LIBRARY
from tests.contract.store_passages import FAST_DISK, write
from tests.unit.policies.registry.test_registry import trained

EXAMPLES = 40
OPERATING = 12
WITHOUT_INPUT = (
    "GET /v1/skills",
    "GET /v1/plans",
    "GET /v1/collections",
    "GET /v1/policies",
    "GET /v1/experiments",
    "GET /healthz",
    "GET /readyz",
)
PARTS = ("gateway", "analyzer", "orchestrator", "generator", "recorder")


@pytest.fixture(scope="module")
def api():
    with tempfile.TemporaryDirectory(dir=FAST_DISK) as home:
        config = load_config(
            environment={},
            home=Path(home),
            cache=Path(home),
            inline_skills=True,
            parts={part: {"placement": "inline"} for part in PARTS},
            skills=("keyword", "dense", "fusion", "metadata_filter", "entity_pair", "contextual"),
            encoders={
                "default": {
                    "class_path": "skills.encoders.hashing.HashingEncoder",
                    "init_params": {"dim": 64},
                }
            },
        )
        write(Resources(config.resources).store(), LIBRARY)
        policy_registry(config).publish(*trained())
        yield build_api(local_gateway(config), config)


@pytest.fixture(scope="module")
def described(api):
    yield schemathesis.openapi.from_asgi("/openapi.json", api)
    asgi.shutdown_lifespans()  # the gateway must not outlive its home


# A made-up collection, plan, field or request ends a request early: half of them are made real.
FIELDS = st.sampled_from(("language", "year", "issued", "approved", "last_updated", "数量 (kg)"))
PLANS = st.sampled_from((None, "keyword", "hybrid_filtered", "compared", "dense", "hybrid_late"))


def examples(label):
    if label in WITHOUT_INPUT:
        return 2
    return OPERATING if "/experiments" in label or "/policies" in label else EXAMPLES


class Known:
    """What answers so far have made known."""

    def __init__(self):
        self.request_ids, self.experiments = [], []

    def learn(self, answer):
        body = answer.json() if answer.status_code in {200, 201} else {}
        if answer.status_code == 200 and "request_id" in body:
            self.request_ids.append(body["request_id"])
        if answer.status_code == 201 and "treatment" in body:
            self.experiments.append(body["name"])

    def put_into(self, case, plan, field):
        """Real names for made-up ones."""
        if isinstance(case.body, dict):
            case.body = self._body(case.body, plan, field)
        parameters = case.path_parameters or {}
        for name, known in (("request_id", self.request_ids), ("name", self.experiments)):
            if name in parameters and known:
                parameters[name] = known[-1]

    def _body(self, body, plan, field):
        if "query" in body:
            body = body | {"collection": "c", "plan": plan}
            if body.get("filters"):
                body["filters"] = {field: next(iter(body["filters"].values()))}
        if "request_id" in body and self.request_ids:
            body = body | {"request_id": self.request_ids[-1]}
        if "version" in body:
            body = body | {"version": trained()[0].version}
        return body


@pytest.mark.slow
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_request_breaks_the_service(described, mode):
    statuses, known = defaultdict(set), Known()
    for found in described.get_all_operations():
        operation = found.ok()
        if mode is GenerationMode.NEGATIVE and operation.method != "post":
            continue

        @settings(
            max_examples=examples(operation.label),
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(operation.as_strategy(generation_mode=mode), st.booleans(), PLANS, FIELDS)
        def ask(case, real, plan, field):
            if real:
                known.put_into(case, plan, field)
            answer = case.call()
            statuses[case.operation.label].add(answer.status_code)
            case.validate_response(answer, checks=(not_a_server_error,))
            known.learn(answer)

        ask()
    if mode is GenerationMode.POSITIVE:
        assert {200, 422} <= statuses["POST /v1/retrieve"] & statuses["POST /v1/answer"]
        thumb = {"request_id": known.request_ids[-1], "kind": "thumb", "value": 1}
        assert 201 == described["/v1/feedback"]["POST"].Case(body=thumb).call().status_code
        assert 200 in statuses["GET /v1/requests/{request_id}"]
        assert 201 in statuses["POST /v1/experiments"]
        assert 200 in statuses["GET /v1/experiments/{name}"]
        assert 200 in statuses["POST /v1/experiments/{name}/stop"]
    else:
        assert 422 in statuses["POST /v1/retrieve"] & statuses["POST /v1/feedback"]
