"""The late_interaction skill over an encoder whose token vectors are words."""

import asyncio
import zlib
from dataclasses import dataclass, field

import numpy as np
import pytest

from skills.encoders.colbert import max_sim
from skills.errors import RequestInvalid, SkillUnavailable
from skills.late_interaction import LateInteractionSkill
from skills.manifest import load_manifest
from skills.registry import CATALOG
from skills.resources import Resources, ResourceSettings, load_class
from skills.skill import SkillRequest
from skills.stores.qdrant_edge import QdrantEdgeStore
from skills.stores.store import CollectionInfo, IndexedPassage
from skills.types import Caller, Condition, Hit, MissingReason, Passage

DIM = 64


@dataclass
class FakeClock:
    now: float = 100.0

    def __call__(self):
        return self.now


@dataclass
class FakeTokenEncoder:
    """A word's vector is a random direction of its own; encoding a passage takes fixed time."""

    clock: FakeClock
    seconds: float = 0.0
    fails: bool = False
    seen: list = field(default_factory=list)
    token_id = "words@1"
    token_dim = DIM

    def encode_tokens(self, texts, role):
        if self.fails:
            raise SkillUnavailable("encoder", "no token vectors here")
        if role == "passage":
            self.seen.extend(texts)
            self.clock.now += self.seconds * len(texts)
        return [np.array([self.word(w) for w in text.split()]).reshape(-1, DIM) for text in texts]

    @staticmethod
    def word(word):
        vector = np.random.default_rng(zlib.crc32(word.encode())).normal(size=DIM)
        return (vector / np.linalg.norm(vector)).astype(np.float32)


@dataclass
class FakeVectorStore:
    """Keeps token vectors of some passages."""

    encoder: FakeTokenEncoder
    texts: dict = field(default_factory=dict)
    made_by: str = ""
    fails: bool = False
    searches: list = field(default_factory=list)

    async def info(self, collection, version=""):
        if self.fails:
            raise SkillUnavailable("store", "down")
        vectors = {"late": self.made_by} if self.made_by else {"dense": "other"}
        return CollectionInfo(collection, version or "v7", 9, 9, "", vectors=vectors)

    async def nearest(self, searches):
        self.searches.extend(searches)
        return [self._ranking(search) for search in searches]

    def _ranking(self, search):
        (condition,) = search.filters.all_of
        hits = []
        for name in condition.any_of:
            tokens = self.encoder.encode_tokens([self.texts[name]], "query")[0]
            score = max_sim(search.vector, tokens) * len(search.vector)
            hits.append(Hit(Passage(name, name, self.texts[name]), score))
        return sorted(hits, key=lambda hit: -hit.score)[: search.top_k]


class Setting:
    def __init__(self, tmp_path, store=None, **config):
        self.clock = FakeClock()
        self.encoder = FakeTokenEncoder(self.clock)
        self.store = store or FakeVectorStore(self.encoder)
        resources = Resources(ResourceSettings(home=tmp_path, cache=tmp_path))
        resources.token_encoder = lambda name: self.encoder
        resources.vector_store = lambda name: self.store
        built = LateInteractionSkill.Config(expected_ms=1, **config)
        self.skill = LateInteractionSkill(built, resources, self.clock)

    def run(self, *requests):
        return asyncio.run(self.skill.run(requests))

    def rerank(self, texts, query="red apple", **request):
        (result,) = self.run(asked(texts, query, **request))
        return result


def asked(texts, query="red apple", **request):
    hits = tuple(
        Hit(Passage(f"p{i}", f"d{i}", text), score) for i, (text, score) in enumerate(texts.items())
    )
    given = {"collection": "docs", "top_k": 10, "budget_ms": 1000, **request}
    return SkillRequest(query, hits=hits, **given)


@pytest.fixture
def setting(tmp_path):
    return Setting(tmp_path)


def texts_of(result):
    return [hit.passage.text for hit in result.hits]


FRUIT = {"green pear": 3.0, "a red car": 2.0, "one red apple": 1.0}


def test_a_passage_that_has_the_words_of_the_query_comes_first(setting):
    result = setting.rerank(FRUIT, params={"weight": 3})
    assert ["one red apple", "a red car", "green pear"] == texts_of(result)
    assert {"depth": 3, "source": "encoder", "weight": 3} == result.explanation


def test_scores_are_sums_of_z_scores(setting):
    result = setting.rerank({"red apple": 1.0, "blue": 3.0}, params={"weight": 0.5})
    assert [("blue", 0.5), ("red apple", -0.5)] == [
        (hit.passage.text, pytest.approx(hit.score)) for hit in result.hits
    ]


def test_without_weight_the_order_stays(setting):
    assert list(FRUIT) == texts_of(setting.rerank(FRUIT, params={"weight": 0}))


def test_equal_scores_are_ordered_by_passage_id(setting):
    result = setting.rerank({"x": 1.0, "y": 1.0, "z": 1.0}, params={"weight": 0})
    assert ["p0", "p1", "p2"] == [hit.passage.id for hit in result.hits]


def test_no_more_than_top_k_hits_come_back(setting):
    assert len(setting.rerank(FRUIT, top_k=2).hits) == 2


@pytest.mark.parametrize("texts", [{}, {"one": 1.0}])
def test_nothing_to_compare_is_no_failure(setting, texts):
    result = setting.rerank(texts)
    assert (list(texts), (), None) == (texts_of(result), result.missing, result.error)


def test_the_best_candidates_are_compared_when_the_budget_ends(tmp_path):
    setting = Setting(tmp_path, batch_size=1)
    setting.encoder.seconds = 0.1
    many = {f"text {i}": 100.0 - i for i in range(50)}
    started = setting.clock.now
    result = setting.rerank(many, budget_ms=1000)
    assert {f"text {i}" for i in range(len(result.hits))} == set(texts_of(result))
    assert 5 <= len(result.hits) <= 10
    assert setting.clock.now - started <= 0.8


def test_without_time_for_two_candidates_it_says_so(setting):
    result = setting.rerank(FRUIT, budget_ms=1)
    assert () == result.hits
    assert [MissingReason.OVER_BUDGET] == [missing.reason for missing in result.missing]


def test_requests_of_a_batch_share_the_budget(tmp_path):
    setting = Setting(tmp_path, batch_size=1)
    setting.encoder.seconds = 0.05
    first, second = (
        asked({f"{name} {i}": 100.0 - i for i in range(50)}) for name in ("first", "second")
    )
    depths = [len(result.hits) for result in setting.run(first, second)]
    assert min(depths) >= 4


def test_a_passage_is_encoded_once_and_with_its_title(setting):
    hit = Hit(Passage("p", "d", "text", title="Title"), 1.0)
    request = SkillRequest("q", "docs", 10, 1000, hits=(hit, Hit(Passage("r", "d", "other"), 0.5)))
    setting.run(request)
    setting.run(request)
    assert ["Title\ntext", "other"] == setting.encoder.seen


def test_no_more_vectors_are_kept_than_configured(tmp_path):
    setting = Setting(tmp_path, cached_tokens=2)
    for _ in range(2):
        setting.rerank({"one two three": 1.0, "four": 0.5, "five six": 0.2})
    assert ["one two three", "four", "five six"] == setting.encoder.seen[:3]
    assert ["one two three", "four"] == setting.encoder.seen[3:]


def test_vectors_that_the_collection_keeps_are_used(setting):
    setting.store.made_by = "words@1"
    setting.store.texts = {"p0": "green pear", "p1": "a red car", "p2": "one red apple"}
    caller = Caller("acme", ("hr",))
    stored = setting.rerank(FRUIT, params={"weight": 3}, caller=caller, version="v3")
    assert [] == setting.encoder.seen
    assert "store" == stored.explanation["source"]
    (search,) = setting.store.searches
    assert (caller, "v3", "late") == (search.caller, search.version, search.vector_name)
    assert (Condition("id", any_of=("p0", "p1", "p2")),) == search.filters.all_of
    setting.store.made_by = ""
    computed = setting.rerank(FRUIT, params={"weight": 3})
    assert [hit.score for hit in computed.hits] == pytest.approx(
        [hit.score for hit in stored.hits], abs=1e-3
    )


def test_a_real_store_gives_the_scores_that_the_encoder_gives(tmp_path):
    computed = Setting(tmp_path)
    resources = Resources(ResourceSettings(home=tmp_path, cache=tmp_path))
    store = QdrantEdgeStore(QdrantEdgeStore.Config(), resources)
    writer = store.writer("docs", {"late": ("words@1", DIM)}, multi=("late",))
    others = {f"red apple {i}": 1.0 for i in range(20)}
    passages = [hit.passage for hit in asked(FRUIT | others).hits]
    tokens = computed.encoder.encode_tokens([p.text for p in passages], "query")
    rows = [IndexedPassage(p, {"late": t}, p.id) for p, t in zip(passages, tokens, strict=True)]
    writer.upsert(rows)
    writer.commit()
    stored = Setting(tmp_path, store)
    found, expected = stored.rerank(FRUIT), computed.rerank(FRUIT)
    assert ("store", []) == (found.explanation["source"], stored.encoder.seen)
    assert texts_of(expected) == texts_of(found)
    assert [h.score for h in expected.hits] == pytest.approx(
        [h.score for h in found.hits], abs=0.01
    )


def test_vectors_of_another_encoder_are_not_compared(setting):
    setting.store.made_by = "words@2"
    assert "encoder" == setting.rerank(FRUIT).explanation["source"]


def test_a_store_that_is_down_does_not_stop_it(setting):
    setting.store.fails = True
    assert 3 == len(setting.rerank(FRUIT).hits)


def test_an_encoder_without_token_vectors_fails_every_request(setting):
    setting.encoder.fails = True
    results = setting.run(asked(FRUIT), asked(FRUIT))
    assert [SkillUnavailable] * 2 == [type(result.error) for result in results]
    with pytest.raises(SkillUnavailable):
        asyncio.run(setting.skill.check_health())


@pytest.mark.parametrize("params", [{"weight": -1}, {"wight": 1}, {"weight": float("inf")}])
def test_wrong_parameters_fail_only_their_request(setting, params):
    bad, good = setting.run(asked(FRUIT, params=params), asked(FRUIT))
    assert isinstance(bad.error, RequestInvalid)
    assert bad.error.subject.startswith("params.")
    assert 3 == len(good.hits)


def test_the_catalogue_describes_it():
    manifest = load_manifest(CATALOG / "late_interaction.yaml")
    cls = load_class(manifest.class_path)
    assert cls is LateInteractionSkill
    cls.Config.model_validate(manifest.init_params)
