"""A gateway on stub skills, all in this process."""

from pathlib import Path

import httpx
import pytest

from serve_app.api.app import build_api
from serve_app.config import load_config
from serve_app.graph import local_gateway

STUBS = Path(__file__).parents[2] / "load" / "stubs"


@pytest.fixture(autouse=True)
def _unknown_requests_are_known_at_once(monkeypatch):
    """No other gateway has their records."""
    monkeypatch.setattr("serve_app.api.history.FIND_FOR_S", 0.0)


@pytest.fixture
def config(tmp_path):
    parts = ("gateway", "analyzer", "orchestrator", "generator", "recorder")
    return load_config(
        environment={},
        home=tmp_path,
        cache=tmp_path,
        skill_dirs=(STUBS / "skills",),
        plan_dirs=(STUBS / "plans",),
        rules_file=STUBS / "rules.yaml",
        skills=("left", "right", "fusion"),
        inline_skills=True,
        parts={part: {"placement": "inline"} for part in parts},
        stores={"default": {"class_path": "tests.load.stubs.skill.StubStore"}},
        generator={"class_path": "tests.load.stubs.generator.StubGenerator"},
    )


@pytest.fixture
def gateway(config):
    return local_gateway(config)


@pytest.fixture
async def http(gateway, config):
    api = build_api(gateway, config)
    transport = httpx.ASGITransport(api, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        await gateway.warm_up()
        yield client
    await gateway.recording.drain(5)
