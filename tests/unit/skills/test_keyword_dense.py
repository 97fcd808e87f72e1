import tempfile
from pathlib import Path

import pytest

from skills.dense import DenseSkill
from skills.errors import SkillMisconfigured, SkillUnavailable
from skills.registry import SkillRegistry
from skills.resources import Component, Resources, ResourceSettings
from skills.skill import SkillRequest
from skills.stores.store import IndexedPassage
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


class TestDenseSkillWithTwoEncoders(RetrievingSkillContract):
    """The fast encoder counts letters in 8 buckets, the strong one in 4,096."""

    @pytest.fixture(scope="class")
    @classmethod
    def place(cls):
        with tempfile.TemporaryDirectory(dir=FAST_DISK) as folder:
            resources = cls.resources(Path(folder))
            fast, strong = resources.encoder("fast"), resources.encoder("strong")
            writer = resources.store().writer(
                "c", {"dense": (fast.id, fast.dim), "strong": (strong.id, strong.dim)}
            )
            writer.upsert(
                [
                    IndexedPassage(
                        each,
                        {
                            "dense": fast.encode([each.text], "passage")[0],
                            "strong": strong.encode([each.text], "passage")[0],
                        },
                        "h1",
                    )
                    for each in LIBRARY
                ]
            )
            writer.commit()
            yield Path(folder)

    @staticmethod
    def resources(home):
        encoders = {
            name: Component(
                class_path="skills.encoders.hashing.HashingEncoder", init_params={"dim": dim}
            )
            for name, dim in (("fast", 8), ("strong", 4096))
        }
        return Resources(ResourceSettings(home=home, cache=home / "cache", encoders=encoders))

    def make_skill(self, place, recall):
        config = DenseSkill.Config.model_validate(
            {"encoder": "fast", "refine": {"encoder": "strong", "recall": recall}}
        )
        return DenseSkill(config, self.resources(place))

    @pytest.fixture
    def skill(self, place):
        return self.make_skill(place, 200)

    def good_request(self, **changed):
        plain = {"query": "bananas sold", "collection": "c", "top_k": 4, "budget_ms": 1000}
        return SkillRequest(**(plain | changed))

    async def test_the_strong_encoder_decides_the_order(self, skill, place):
        strong = self.resources(place).encoder("strong")
        query = strong.encode(["bananas sold"], "query")[0]
        cosines = strong.encode([each.text for each in LIBRARY], "passage") @ query
        (result,) = await skill.run([self.good_request()])
        assert sorted(cosines.tolist(), reverse=True) == pytest.approx(
            [hit.score for hit in result.hits], abs=1e-5
        )

    async def test_the_fast_encoder_decides_who_is_asked(self, place):
        fast = self.resources(place).encoder("fast")
        query = fast.encode(["bananas sold"], "query")[0]
        cosines = fast.encode([each.text for each in LIBRARY], "passage") @ query
        recalled = {LIBRARY[i].id for i in (-cosines).argsort()[:2]}
        (result,) = await self.make_skill(place, 2).run([self.good_request(top_k=2)])
        assert recalled == {hit.passage.id for hit in result.hits}

    async def test_filters_and_caller_hold_for_both(self, skill):
        only = Filters((Condition("language", any_of=("zh",)),))
        (result,) = await skill.run([self.good_request(filters=only)])
        assert ["zh-mi"] == [hit.passage.id for hit in result.hits]
