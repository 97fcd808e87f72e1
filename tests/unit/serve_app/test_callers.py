import hashlib

import httpx
import pytest
import yaml
from typer.testing import CliRunner

from serve_app.api.app import build_api
from serve_app.callers import ApiKey, KeyRing, new_key
from serve_app.cli.main import app
from serve_app.cli.service import is_open_to_others
from serve_app.config import TacticianConfig, load_config
from serve_app.graph import local_gateway
from skills.errors import SkillMisconfigured, SkillUnavailable
from skills.stores.store import CollectionInfo, FieldSummary
from skills.types import Caller
from tests.load.stubs.skill import StubStore

QUERY = {"query": "what does the thing cost", "collection": "stub"}
KEYS = {name: f"tac_{name}" for name in ("ann", "bob", "root")}


def entry(name, **what):
    return {"name": name, "sha256": hashlib.sha256(KEYS[name].encode()).hexdigest()} | what


@pytest.fixture
def guarding(config, monkeypatch, tmp_path):
    """A gateway with three callers, on a skill `left` that fails when `mode` says `raise`."""
    monkeypatch.setenv("STUB_MODE_FILE_left", str(tmp_path / "mode"))
    keys = [
        entry("ann", tenant="acme", roles=["finance", "board"]),
        entry("bob", tenant="acme"),
        entry("root", admin=True),
    ]
    config = TacticianConfig.model_validate(config.model_dump() | {"callers": {"keys": keys}})
    return config, local_gateway(config)


@pytest.fixture
async def guarded(guarding):
    config, gateway = guarding
    api = build_api(gateway, config)
    transport = httpx.ASGITransport(api, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        yield client
    await gateway.recording.drain(5)


def as_(name):
    return {"Authorization": f"Bearer {KEYS[name]}"}


async def test_without_a_known_key_nothing_is_answered(guarded):
    shown = ("Bearer tac_wrong", "Bearer ", f"Basic {KEYS['ann']}", KEYS["ann"], b"Bearer \xff\xfe")
    for headers in ({}, *({"Authorization": value} for value in shown)):
        for path in ("/v1/retrieve", "/v1/nothing", "/v1/skills", "/", "/readyz/../v1/skills"):
            answer = await guarded.post(path, json=QUERY, headers=headers)
            assert (401, "unauthorized") == (answer.status_code, answer.json()["code"])
            assert "Bearer" == answer.headers["WWW-Authenticate"]


async def test_health_and_documentation_need_no_key(guarded):
    for path in ("/healthz", "/readyz", "/docs", "/openapi.json", "/console"):
        assert 401 != (await guarded.get(path)).status_code


async def test_the_description_of_the_api_says_that_a_key_is_needed(guarded):
    schema = (await guarded.get("/openapi.json")).json()
    assert {"type": "http", "scheme": "bearer"} == schema["components"]["securitySchemes"]["key"]
    assert [{"key": []}] == schema["security"]


async def test_a_request_is_recorded_with_the_scope_of_its_key(guarded):
    sent = (await guarded.post("/v1/retrieve", json=QUERY, headers=as_("ann"))).json()
    seen = await guarded.get(f"/v1/requests/{sent['request_id']}", headers=as_("ann"))
    record = seen.json()["record"]
    assert "acme" == record["tenant"]
    assert {"roles": ["board", "finance"], "clearance": False} == record["execution"]["caller"]


async def test_requests_of_another_scope_are_not_found_but_by_admins(guarded):
    sent = (await guarded.post("/v1/retrieve", json=QUERY, headers=as_("ann"))).json()
    path = f"/v1/requests/{sent['request_id']}"
    assert 404 == (await guarded.get(path, headers=as_("bob"))).status_code
    assert 200 == (await guarded.get(path, headers=as_("root"))).status_code
    thumb = {"request_id": sent["request_id"], "kind": "thumb", "value": 1}
    assert 404 == (await guarded.post("/v1/feedback", json=thumb, headers=as_("bob"))).status_code
    assert 201 == (await guarded.post("/v1/feedback", json=thumb, headers=as_("ann"))).status_code


async def test_only_admins_speak_for_the_judge(guarded):
    sent = (await guarded.post("/v1/retrieve", json=QUERY, headers=as_("ann"))).json()
    verdict = {"request_id": sent["request_id"], "kind": "verdict", "value": 1.0}
    refused = await guarded.post("/v1/feedback", json=verdict, headers=as_("ann"))
    assert (403, "forbidden") == (refused.status_code, refused.json()["code"])
    assert ["kind"] == [error["field"] for error in refused.json()["errors"]]
    assert (
        201 == (await guarded.post("/v1/feedback", json=verdict, headers=as_("root"))).status_code
    )


async def test_only_admins_see_addresses_and_values(guarded):
    for name, seen in (("bob", False), ("root", True)):
        skills = (await guarded.get("/v1/skills", headers=as_(name))).json()["skills"]
        assert {seen} == {"init_params" in skill for skill in skills}
        one = (await guarded.get("/v1/skills/left", headers=as_(name))).json()
        assert seen == ("init_params" in one)


async def test_only_admins_hear_what_a_back_end_said(guarded, tmp_path):
    (tmp_path / "mode").write_text("raise")
    for name, hears in (("ann", False), ("root", True)):
        for _ in range(6):  # the first ones fail, the later ones find it left alone
            answer = await guarded.post("/v1/retrieve", json=QUERY, headers=as_(name))
            assert ["left"] == [missing["subject"] for missing in answer.json()["missing"]]
            assert hears == ("raised RuntimeError" in answer.text)
        path = f"/v1/requests/{answer.json()['request_id']}"
        record = await guarded.get(path, headers=as_(name))
        skills = await guarded.get("/v1/skills", headers=as_(name))
        assert [hears] * 2 == ["raised RuntimeError" in told.text for told in (record, skills)]
    assert "unavailable" == answer.json()["missing"][0]["reason"]


class LostStore(StubStore):
    async def info(self, collection, version=""):
        raise SkillUnavailable("store", "http://10.0.0.7:6333 refused /var/data")

    async def check_health(self):
        raise SkillUnavailable("store", "http://10.0.0.7:6333 refused /var/data")


async def test_only_admins_hear_what_the_store_said(guarded, guarding):
    guarding[1].collections = LostStore(StubStore.Config(), None)
    for name, hears in (("ann", False), ("root", True), (None, False)):
        headers = as_(name) if name else {}
        ready = await guarded.get("/readyz", headers=headers)
        assert 503 == ready.status_code
        assert ready.json()["reasons"]
        assert [hears] * 2 == ["10.0.0.7" in ready.text, "stub_hybrid" in ready.text]
        if name:
            asked = await guarded.post("/v1/retrieve", json=QUERY, headers=headers)
            assert (503, hears) == (asked.status_code, "10.0.0.7" in asked.text)


class SharedStore(StubStore):
    async def collections(self):
        def info(name, *tenants):
            field = FieldSummary("tenant", "keyword", 10, tenants)
            return CollectionInfo(name, "v1", 10, 4, "2026-01-01", {}, (field,) if tenants else ())

        return [info("for_all"), info("ours", "acme"), info("theirs", "umbrella")]


async def test_callers_see_only_collections_that_may_hold_something_for_them(guarded, guarding):
    guarding[1].collections = SharedStore(StubStore.Config(), None)
    (mine, all_) = [
        (await guarded.get("/v1/collections", headers=as_(name))).json()["collections"]
        for name in ("ann", "root")
    ]
    assert ["for_all", "ours"] == [info["name"] for info in mine]
    assert {None} == {info[count] for info in mine for count in ("passages", "documents")}
    assert [[], [{"name": "tenant", "kind": "keyword"}]] == [info["fields"] for info in mine]
    assert [10] * 3 == [info["passages"] for info in all_]


async def test_without_keys_the_caller_is_the_operator(http):
    sent = (await http.post("/v1/retrieve", json=QUERY)).json()
    record = (await http.get(f"/v1/requests/{sent['request_id']}")).json()["record"]
    assert {"roles": [], "clearance": True} == record["execution"]["caller"]


def test_a_key_is_found_among_many_by_its_digest_only():
    made = [new_key() for _ in range(20)]
    keys = [
        ApiKey(name=f"k{i}", sha256=digest, tenant=str(i)) for i, (_, digest) in enumerate(made)
    ]
    ring = KeyRing(keys)
    assert [Caller(str(i)) for i in range(20)] == [ring.principal(key).caller for key, _ in made]
    assert ring.principal(made[0][1]) is None
    assert ring.principal("") is None


@pytest.mark.parametrize("field", ["name", "sha256"])
def test_two_keys_alike_are_refused(field):
    one, other = ({"name": n, "sha256": n * 64} for n in "ab")
    other[field] = one[field]
    with pytest.raises(SkillMisconfigured, match=f"{field} must be unique"):
        load_config(environment={}, callers={"keys": [one, other]})


def test_a_new_key_comes_with_what_the_configuration_needs():
    arguments = ["keys", "new", "ann", "--tenant", "acme", "--role", "finance", "--clearance"]
    result = CliRunner().invoke(app, arguments)
    key = result.stderr.removeprefix("key: ").strip()
    config = load_config(environment={}, **yaml.safe_load(result.stdout))
    assert key not in result.stdout
    found = KeyRing(config.callers.keys).principal(key)
    assert Caller("acme", ("finance",), True) == found.caller
    assert not found.admin


@pytest.mark.parametrize(
    ("host", "keys", "is_open"),
    [("127.0.0.1", [], False), ("0.0.0.0", [], True), ("0.0.0.0", [entry("ann")], False)],
)
def test_listening_beyond_this_machine_without_keys_is_noticed(host, keys, is_open):
    config = load_config(environment={}, http={"host": host}, callers={"keys": keys})
    assert is_open == is_open_to_others(config)
