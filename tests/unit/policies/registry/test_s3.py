"""The registry on a real S3-compatible server."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from pyarrow import fs

from policies.errors import PolicyInvalid, StorageUnavailable
from policies.experiments.experiment import Experiments
from policies.registry.registry import PolicyRegistry
from policies.registry.s3 import S3ObjectStore
from policies.registry.switch import PolicySwitch
from policies.rules import Rules, RulesPolicy
from serve_app.config import TacticianConfig
from serve_app.parts.orchestrator import experiments_of, policy_registry
from tests.unit.ingest.test_s3 import KEY, SECRET, endpoint  # noqa: F401  (a fixture)
from tests.unit.policies.registry.test_registry import NOW, trained

pytestmark = pytest.mark.slow


@pytest.fixture
def environment(endpoint):  # noqa: F811
    made = fs.S3FileSystem(
        endpoint_override=endpoint.removeprefix("http://"),
        scheme="http",
        access_key=KEY,
        secret_key=SECRET,
        allow_bucket_creation=True,
    )
    made.create_dir("policies")
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
    }


@pytest.fixture
def store(environment, request):
    return S3ObjectStore(f"s3://policies/{request.node.name}", environment)


def test_an_object_is_written_only_onto_what_was_read(store):
    assert store.read("a/b") is None
    assert store.write("a/b", b"one", expected=None)
    assert not store.write("a/b", b"two", expected=None)
    first = store.read("a/b")
    assert b"one" == first.data
    assert store.write("a/b", b"two", expected=first.tag)
    assert not store.write("a/b", b"three", expected=first.tag)
    assert not store.write("none", b"x", expected=first.tag)
    assert b"two" == store.read("a/b").data


def test_of_many_writers_each_adds_its_version(store):
    registry = PolicyRegistry(store, lambda: NOW)
    made = [trained(seed=seed) for seed in range(1, 5)]
    with ThreadPoolExecutor(4) as pool:
        versions = {entry.version for entry in pool.map(lambda m: registry.publish(*m), made)}
    assert versions == {entry.version for entry in registry.index().entries}


def test_a_service_follows_a_registry_in_s3(store):
    registry = PolicyRegistry(store, lambda: NOW)
    version = registry.publish(*trained()).version
    switch = PolicySwitch(registry, RulesPolicy(Rules(default="hybrid")))
    registry.promote(version)
    assert version == switch.refresh().version == switch.version
    registry.rollback()
    assert switch.refresh().version is None
    assert () == Experiments(store).all()


def test_the_configuration_names_it(environment, monkeypatch, tmp_path):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    policy = {"registry": "s3://policies/configured"}
    config = TacticianConfig(home=tmp_path, policy=policy)
    version = policy_registry(config).publish(*trained()).version
    assert version == policy_registry(config).index().entries[0].version
    assert experiments_of(config).running() is None
    assert not (tmp_path / "policies").exists()


def test_a_wrong_key_is_said(environment):
    wrong = S3ObjectStore("s3://policies/x", environment | {"AWS_SECRET_ACCESS_KEY": "wrong"})
    with pytest.raises(StorageUnavailable, match="s3://policies/x/a"):
        wrong.read("a")
    with pytest.raises(StorageUnavailable):
        wrong.write("a", b"x", expected=None)


@pytest.mark.parametrize("url", ["s3://", "https://bucket/x", "bucket"])
def test_another_url_is_refused(url):
    with pytest.raises(PolicyInvalid, match="expected s3"):
        S3ObjectStore(url)
