import math
from collections import Counter
from itertools import chain, combinations

import numpy as np
import pytest

from skills.errors import RequestInvalid
from skills.manifest import load_manifest
from skills.registry import CATALOG
from skills.resources import Resources, ResourceSettings, build
from skills.siblings import SiblingsSkill, kinships
from skills.skill import SkillRequest
from skills.types import Hit, Passage, PassageMetadata
from tests.contract.skill_contract import RankingSkillContract

ALONE = [("a", 1.0, "x"), ("b", 0.8, "y"), ("c", 0.7, "z"), ("d", 0.0, "w")]
TOGETHER = [("a", 1.0, "x"), ("b", 0.8, "y"), ("c", 0.75, "x"), ("d", 0.0, "w")]


def passage(name, thread="", **more):
    attributes = {"thread": thread, "lang": "en"} | more
    return Passage(name, name, "text of " + name, "", PassageMetadata(attributes=attributes))


def request(candidates, **params):
    hits = tuple(Hit(passage(name, thread), score) for name, score, thread in candidates)
    return SkillRequest("q", "docs", 10, 100, hits=hits, params=params)


@pytest.fixture
def siblings(tmp_path):
    resources = Resources(ResourceSettings(home=tmp_path, cache=tmp_path))
    return SiblingsSkill(SiblingsSkill.Config(), resources)


class TestSiblings(RankingSkillContract):
    @pytest.fixture
    def skill(self, siblings):
        return siblings

    def good_request(self, **changed):
        return SkillRequest(
            **{"query": "q", "collection": "docs", "top_k": 10, "budget_ms": 100}
            | {"hits": request(TOGETHER).hits}
            | changed
        )


async def order(skill, candidates, **params):
    (result,) = await skill.run([request(candidates, **params)])
    assert result.error is None
    return [hit.passage.id for hit in result.hits]


async def test_a_sibling_of_the_best_candidate_rises(siblings):
    assert ["a", "c", "b", "d"] == await order(siblings, TOGETHER, weight=0.3)


async def test_a_sibling_of_the_best_candidate_makes_room_below_zero(siblings):
    near = [("a", 1.0, "x"), ("c", 0.8, "x"), ("b", 0.75, "y"), ("d", 0.0, "w")]
    assert ["a", "b", "c", "d"] == await order(siblings, near, weight=-0.3)


async def test_candidates_without_siblings_stay_where_they_are(siblings):
    assert ["a", "b", "c", "d"] == await order(siblings, ALONE, weight=1)


async def test_only_the_best_candidates_count_as_siblings(siblings):
    far = [("a", 1.0, "x"), ("b", 0.9, "y"), ("c", 0.8, "z"), ("d", 0.7, "z")]
    assert ["a", "b", "c", "d"] == await order(siblings, far, weight=1, depth=2)


async def test_a_weight_out_of_range_is_refused(siblings):
    (result,) = await siblings.run([request(ALONE, weight=2)])
    assert isinstance(result.error, RequestInvalid)
    assert "params.weight" == result.error.subject


async def test_the_score_of_siblings_is_told_with_its_weight(siblings):
    (result,) = await siblings.run([request(TOGETHER, weight=0.3)])
    assert {"weight": 0.3, "with_siblings": 2} == dict(result.explanation)
    scores = {hit.passage.id: hit.score for hit in result.hits}
    kin = math.log(4 / 2) / math.log(4)
    assert pytest.approx(0.75 + 0.3 * kin * 1.0) == scores["c"]
    assert pytest.approx(1.0 + 0.3 * kin * 0.75) == scores["a"]


def test_a_value_that_all_candidates_share_makes_no_siblings():
    assert 0 == kinships([passage("a", "x"), passage("b", "y"), passage("c", "z")]).max()


def test_the_rarest_shared_value_counts():
    shared = [passage("a", "x", law="l"), passage("b", "x", law="l"), passage("c", "y", law="l")]
    found = kinships([*shared, passage("d", "z", law="m")])
    assert pytest.approx(math.log(4 / 2) / math.log(4)) == found[0, 1]
    assert pytest.approx(math.log(4 / 3) / math.log(4)) == found[0, 2]
    assert 0 == found[0, 3]


def pairwise(passages):
    """The definition, pair by pair."""
    said = []
    for one in passages:
        metadata = one.metadata
        own = {"document_id": one.document_id, "title": one.title}
        own |= {"source_url": metadata.source_url, "heading_path": metadata.heading_path}
        values = set()
        for field, value in {**own, **metadata.attributes}.items():
            several = value if isinstance(value, tuple) else (value,)
            values |= {(field, each) for each in several if isinstance(each, str) and each}
        said.append(values)
    num, counts = len(said), Counter(chain.from_iterable(said))
    found = np.zeros((num, num))
    for i, j in combinations(range(num), 2):
        rarest = min((counts[value] for value in said[i] & said[j]), default=num)
        found[i, j] = found[j, i] = math.log(num / rarest) / math.log(num)
    return found


def drawn(rng, num, num_fields, spread):
    """Passages with fields of all kinds: few values or many, several at once, numbers, none."""

    def value(field):
        one = f"value {int(rng.integers(1, spread * (1 + field % 5) + 2))}"
        match int(rng.integers(0, 12)):
            case 0:
                return int(rng.integers(0, 3))
            case 1:
                return (one, one, f"value {int(rng.integers(1, 9))}")
            case 2:
                return ""
            case _:
                return one

    return [
        Passage(
            f"p{i}",
            f"d{int(rng.integers(0, num))}",
            "text",
            rng.choice(["", "Title", f"Title {i % 7}"]).item(),
            PassageMetadata(
                source_url=f"u{int(rng.integers(0, 4))}",
                heading_path=tuple(f"h{n}" for n in rng.integers(0, 20, i % 4)),
                attributes={
                    ("title" if field == 11 else f"field{field}"): value(field)
                    for field in range(num_fields)
                    if field % 3 or rng.random() < 0.7
                },
            ),
        )
        for i in range(num)
    ]


@pytest.mark.parametrize(
    ("num", "num_fields", "spread"), [(2, 3, 1), (3, 2, 1), (50, 0, 1), (50, 12, 4), (80, 30, 30)]
)
def test_kinship_is_what_it_is_defined_to_be(num, num_fields, spread):
    for seed in range(4):
        passages = drawn(np.random.default_rng(seed), num, num_fields, spread)
        assert np.allclose(pairwise(passages), kinships(passages), rtol=0, atol=1e-12)


def test_kinship_holds_for_more_degrees_of_rarity_than_one_number_does():
    """Every number of passages from 2 to 199 shares some value."""
    passages = [passage(f"p{i}", said=tuple(f"v{v}" for v in range(i, 199))) for i in range(200)]
    assert np.allclose(pairwise(passages), kinships(passages), rtol=0, atol=1e-12)


def test_numbers_make_no_siblings():
    pages = [passage(name, thread=name, chunk=n % 2) for n, name in enumerate("abcd")]
    assert 0 == kinships(pages).max()


def test_the_shipped_manifest_builds_it(tmp_path):
    manifest = load_manifest(CATALOG / "siblings.yaml")
    resources = Resources(ResourceSettings(home=tmp_path, cache=tmp_path))
    assert isinstance(build(manifest.component, resources), SiblingsSkill)
