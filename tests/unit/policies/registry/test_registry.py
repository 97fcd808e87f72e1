import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import cache

import numpy as np
import pytest

from policies.errors import PolicyInvalid
from policies.learned.fit import Family, FitSettings, fit
from policies.registry.artifact import dump_policy, load_policy
from policies.registry.card import PolicyCard
from policies.registry.registry import INDEX, Action, PolicyRegistry
from policies.registry.store import DirectoryStore
from policies.registry.switch import PolicySwitch, Refreshed
from policies.rules import RulesPolicy, load_rules
from tests.unit.policies.learned.worlds import World

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@cache
def trained(family=Family.LINEAR, seed=1):
    fitted = fit(World(200, seed=seed).replay(), FitSettings(family=family))
    card = PolicyCard.of(
        fitted.report, source="replay", columns=fitted.policy.parts.vectoriser.columns
    )
    return fitted.policy, card.model_copy(update={"created_at": NOW})


def artifact(seed=1, family=Family.LINEAR):
    return dump_policy(*trained(family, seed))


@pytest.fixture
def registry(tmp_path):
    return PolicyRegistry(DirectoryStore(tmp_path), lambda: NOW)


@pytest.fixture
def published(registry):
    """A registry with two versions, and their names."""
    return registry, *(registry.publish(*trained(seed=seed)).version for seed in (1, 2))


@pytest.mark.parametrize("family", list(Family))
def test_a_policy_read_back_decides_alike(family):
    policy, card = trained(family)
    read, read_card = load_policy(dump_policy(policy, card))
    requests = list(World(50, seed=9).requests)
    decisions = [p.choose(requests, np.random.default_rng(5)) for p in (policy, read)]
    assert decisions[0] == decisions[1]
    assert (policy.version, card) == (read.version, read_card)


@pytest.mark.parametrize("family", list(Family))
def test_equal_policies_are_equal_files(family):
    assert artifact(family=family) == artifact(family=family)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: b"not a zip at all",
        lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
    ],
)
def test_a_damaged_file_is_refused(damage):
    with pytest.raises(PolicyInvalid, match="damaged"):
        load_policy(damage(artifact()))


def test_nothing_serves_before_it_is_promoted(published):
    registry, first, second = published
    index = registry.index()
    assert (None, [first, second]) == (index.current, [e.version for e in index.entries])


def test_publishing_again_changes_nothing(published):
    registry, first, _ = published
    before = registry.index()
    assert first == registry.publish(*trained(seed=1)).version
    assert before == registry.index()


def test_promotes_and_rolls_back_one_step_at_a_time(published):
    registry, first, second = published
    registry.promote(first)
    registry.promote(second, "better on Tuesday")
    assert first == registry.rollback("worse on Wednesday").current
    assert registry.rollback().current is None
    with pytest.raises(PolicyInvalid, match="no promotion"):
        registry.rollback()
    actions = [(e.action, e.version, e.previous) for e in registry.index().events[2:]]
    assert [
        (Action.PROMOTE, first, None),
        (Action.PROMOTE, second, first),
        (Action.ROLLBACK, first, second),
        (Action.ROLLBACK, None, first),
    ] == actions


def test_promoting_what_serves_already_changes_nothing(published):
    registry, first, _ = published
    before = registry.promote(first)
    assert before == registry.promote(first, "tried again") == registry.index()
    assert registry.rollback().current is None


def test_a_promotion_may_depend_on_what_serves_when_it_is_written(published):
    registry, first, second = published
    registry.promote(first)
    before = registry.index()
    assert before == registry.promote(second, unless=lambda index: index.current == first)
    assert second == registry.promote(second, unless=lambda index: index.current != first).current


def test_promotions_that_changed_nothing_in_an_older_history_are_not_rolled_back(
    published, tmp_path
):
    registry, first, _ = published
    index = registry.promote(first)
    twice = index.events[-1].model_copy(update={"previous": first})
    older = index.model_copy(update={"events": (*index.events, twice)})
    (tmp_path / INDEX).write_text(older.model_dump_json())
    assert registry.rollback().current is None


def test_the_beginning_of_a_version_is_enough_when_it_is_one_only(published):
    registry, first, _ = published
    assert first == registry.promote(first[:6]).current
    with pytest.raises(PolicyInvalid, match="no published version"):
        registry.promote("zzz")
    with pytest.raises(PolicyInvalid):
        registry.promote("")


def test_what_another_registry_exported_can_be_imported(published, tmp_path):
    registry, first, _ = published
    other = PolicyRegistry(DirectoryStore(tmp_path / "other"))
    assert first == other.import_file(registry.export(first)).version
    assert first == other.promote(first).current


def test_a_damaged_artifact_cannot_be_promoted(published, tmp_path):
    registry, first, second = published
    registry.promote(first)
    path = tmp_path / registry.index().entry(second).key
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(PolicyInvalid, match="damaged"):
        registry.promote(second)
    path.unlink()
    with pytest.raises(PolicyInvalid, match="missing"):
        registry.promote(second)
    assert first == registry.index().current


def test_an_index_of_another_release_is_refused(published, tmp_path):
    registry, *_ = published
    content = json.loads((tmp_path / INDEX).read_text())
    (tmp_path / INDEX).write_text(json.dumps(content | {"colour": "red"}))
    with pytest.raises(PolicyInvalid, match=INDEX):
        registry.index()


def test_writers_at_the_same_time_lose_nothing(published):
    registry, first, second = published
    for version in [first, second] * 8:
        registry.promote(version)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(registry.rollback, ["back"] * 16))
    events = registry.index().events[2:]
    assert 32 == len(events)
    # Each says what served before it: the chain has no gap.
    assert [None, *(e.version for e in events[:-1])] == [e.previous for e in events]
    assert registry.index().current is None


class TestSwitch:
    @pytest.fixture
    def switch(self, registry):
        return PolicySwitch(registry, RulesPolicy(load_rules()))

    def test_rules_decide_until_something_is_promoted(self, switch):
        assert Refreshed(None, changed=False) == switch.refresh()
        assert "rules" == switch.name

    def test_follows_promotion_and_rollback(self, switch, published):
        registry, first, second = published
        for version in (first, second):
            registry.promote(version)
            assert Refreshed(version, changed=True) == switch.refresh()
            assert version == switch.version
        registry.rollback()
        switch.refresh()
        assert first == switch.version
        registry.rollback()
        assert Refreshed(None, changed=True) == switch.refresh()
        assert "rules" == switch.name

    def test_keeps_the_old_policy_when_the_new_one_is_damaged(self, switch, published, tmp_path):
        registry, first, second = published
        registry.promote(first)
        switch.refresh()
        registry.promote(second)
        (tmp_path / registry.index().entry(second).key).write_bytes(b"rubbish")
        refreshed = switch.refresh()
        assert (first, False) == (refreshed.version, refreshed.changed)
        assert "damaged" in refreshed.error
        assert first == switch.version

    def test_keeps_the_old_policy_when_the_registry_is_away(self, switch, published, tmp_path):
        registry, first, _ = published
        registry.promote(first)
        switch.refresh()
        (tmp_path / INDEX).unlink()
        (tmp_path / INDEX).mkdir()
        refreshed = switch.refresh()
        assert first == refreshed.version
        assert "cannot be read" in refreshed.error


def test_importing_again_repairs_an_artifact_that_was_damaged(tmp_path):
    registry = PolicyRegistry(DirectoryStore(tmp_path), lambda: NOW)
    entry = registry.publish(*trained())
    good = registry.export(entry.version)
    (tmp_path / entry.key).write_bytes(b"damaged")
    with pytest.raises(PolicyInvalid, match="damaged"):
        registry.load(entry.version)
    registry.import_file(good)
    assert entry.version == registry.load(entry.version)[0].version


def test_importing_again_with_another_card_changes_nothing(tmp_path):
    registry = PolicyRegistry(DirectoryStore(tmp_path), lambda: NOW)
    policy, card = trained()
    entry = registry.publish(policy, card)
    other = card.model_copy(update={"notes": ("another",)})
    assert entry == registry.publish(policy, other)
    assert entry.version == registry.load(entry.version)[0].version
    assert 1 == len(registry.index().events)
