import tempfile
from pathlib import Path

import pytest

from skills.errors import SkillMisconfigured, SkillUnavailable
from skills.registry import SkillRegistry
from skills.resources import Component, Resources, ResourceSettings
from skills.skill import SkillRequest
from skills.types import Caller, Condition, Filters
from tests.contract.skill_contract import RetrievingSkillContract
from tests.contract.store_contract import LIBRARY
from tests.contract.store_passages import FAST_DISK, passage, write


def settings(home, dim):
    encoder = Component(
        class_path="skills.encoders.hashing.HashingEncoder", init_params={"dim": dim}
    )
    return ResourceSettings(home=home, cache=home / "cache", encoders={"default": encoder})


@pytest.fixture(scope="module")
def home():
    with tempfile.TemporaryDirectory(dir=FAST_DISK) as folder:
        store = Resources(settings(Path(folder), 64)).store()
        hidden = passage("hidden", "myocardial infarction, for doctors", allowed_roles=("doctor",))
        write(store, [*LIBRARY, hidden])
        yield Path(folder)


class _Retrieving(RetrievingSkillContract):
    skill_id = ""

    @pytest.fixture
    def skill(self, home):
        return SkillRegistry.load().build(self.skill_id, Resources(settings(home, 64)))

    def good_request(self, **changed):
        plain = {"query": "心肌梗死 myocardial", "collection": "c", "top_k": 10, "budget_ms": 1000}
        return SkillRequest(**(plain | changed))

    async def test_filters_and_caller_reach_the_store(self, skill):
        mine = Filters((Condition("language", any_of=("en",)),))
        doctor = Caller(roles=("doctor",))
        filtered, everything, more = await skill.run(
            [
                self.good_request(filters=mine),
                self.good_request(),
                self.good_request(caller=doctor),
            ]
        )
        assert {"en"} == {h.passage.metadata.language for h in filtered.hits}
        assert "hidden" not in {h.passage.id for h in everything.hits}
        assert {"hidden"} == {h.passage.id for h in more.hits} - {
            h.passage.id for h in everything.hits
        }

    async def test_a_missing_home_is_unhealthy(self, tmp_path):
        skill = SkillRegistry.load().build(self.skill_id, Resources(settings(tmp_path / "no", 64)))
        with pytest.raises(SkillUnavailable, match="no"):
            await skill.check_health()


class TestKeywordSkill(_Retrieving):
    skill_id = "keyword"


class TestDenseSkill(_Retrieving):
    skill_id = "dense"

    async def test_a_collection_of_another_encoder_is_refused(self, home):
        skill = SkillRegistry.load().build("dense", Resources(settings(home, 128)))
        (result,) = await skill.run([self.good_request()])
        assert isinstance(result.error, SkillMisconfigured)
        assert "hashed-ngrams@64" in result.error.detail

    async def test_each_distinct_query_is_encoded_once(self, home):
        resources = Resources(settings(home, 64))
        skill = SkillRegistry.load().build("dense", resources)
        seen = []
        encoder = resources.encoder()
        encode = type(encoder).encode

        class Watched(type(encoder)):
            def encode(self, texts, role):
                seen.extend(texts)
                return encode(self, texts, role)

        encoder.__class__ = Watched
        requests = [self.good_request(query=q) for q in ("a", "b", "a", "心", "b")]
        results = await skill.run(requests)
        assert ["a", "b", "心"] == seen
        assert results[0].hits == results[2].hits
        assert results[0].hits != results[1].hits
