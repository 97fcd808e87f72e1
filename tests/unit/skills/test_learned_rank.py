import numpy as np
import pytest

from skills.checked_archive import pack, unpack
from skills.errors import RequestInvalid, SkillMisconfigured, SkillUnavailable
from skills.learned_rank import RANKER, LearnedRankSkill
from skills.manifest import load_manifest
from skills.ranking_features import FEATURES, feature_rows
from skills.ranking_model import load_ranker
from skills.registry import CATALOG
from skills.resources import Resources, ResourceSettings, build
from tests.contract.skill_contract import RankingSkillContract
from tests.unit.skills.ranked_world import NOW, SETTINGS, candidates, card, request, trained


@pytest.fixture(scope="module")
def model():
    return trained()


def opened(home, **config):
    resources = Resources(ResourceSettings(home=home, cache=home))
    return LearnedRankSkill(LearnedRankSkill.Config(**config), resources, lambda: NOW)


def keep(home, data):
    path = home / RANKER
    path.parent.mkdir(exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_bytes(data)
    fresh.replace(path)


@pytest.fixture
def skill(model, tmp_path):
    keep(tmp_path, model.dump(card()))
    return opened(tmp_path)


class TestContract(RankingSkillContract):
    @pytest.fixture
    def skill(self, model, tmp_path):
        keep(tmp_path, model.dump(card()))
        return opened(tmp_path)

    def good_request(self, **changed):
        return request(candidates(np.random.default_rng(7))[0], **changed)


async def test_what_was_learnt_decides_the_order(skill):
    hits, relevant = candidates(np.random.default_rng(8))
    (result,) = await skill.run([request(hits)])
    expected = {h.passage.id for h, is_good in zip(hits, relevant, strict=True) if is_good}
    assert expected == {h.passage.id for h in result.hits[:3]}
    assert 720 == result.explanation["labels"]


async def test_every_hit_says_what_its_score_is_made_of(skill, model):
    hits, _ = candidates(np.random.default_rng(9))
    (result,) = await skill.run([request(hits)])
    best = result.hits[0].provenance[-1]
    assert ("learned_rank", 1, "business_signal") == (best.skill, best.rank, best.parts[0][0])
    rows = feature_rows(request(hits), SETTINGS, NOW)
    parts = model.contributions(rows)
    assert (len(hits), len(FEATURES) + 1) == parts.shape
    assert model.score(rows) == pytest.approx(parts.sum(axis=1), abs=1e-4)


async def test_what_falls_below_the_depth_is_said(skill):
    hits, _ = candidates(np.random.default_rng(9))
    (result,) = await skill.run([request(hits, top_k=10)])
    assert [("reranked_down", "rank 11"), ("reranked_down", "rank 12")] == [
        (d.reason, d.detail) for d in result.dropped
    ]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"num_labels": 499}, "499 labels"),
        ({"win": 0.1, "win_low": -0.01}, "did not win"),
        ({"win": -0.1, "win_low": -0.2, "win_high": 0.0}, "did not win"),
    ],
)
async def test_a_ranker_that_did_not_earn_it_is_never_used(model, tmp_path, changed, why):
    keep(tmp_path, model.dump(card(**changed)))
    skill = opened(tmp_path)
    (result,) = await skill.run([request(candidates(np.random.default_rng(1))[0])])
    assert isinstance(result.error, SkillUnavailable)
    assert not result.hits
    with pytest.raises(SkillUnavailable, match=why):
        await skill.check_health()


async def test_a_running_skill_takes_a_new_ranker_and_keeps_it_when_the_next_is_bad(
    model, tmp_path
):
    skill = opened(tmp_path)
    with pytest.raises(SkillUnavailable, match="train ranker"):
        await skill.check_health()
    keep(tmp_path, model.dump(card()))
    await skill.check_health()
    keep(tmp_path, b"nonsense")
    await skill.check_health()
    keep(tmp_path, model.dump(card(win_low=-1.0)))
    (result,) = await skill.run([request(candidates(np.random.default_rng(1))[0])])
    assert result.error is None
    assert model.version == result.explanation["ranker"]


def test_a_ranker_is_the_same_after_writing_and_reading(model):
    data = model.dump(card())
    again, read = load_ranker(data, "here")
    assert (model.version, card(), data) == (again.version, read, again.dump(read))


def test_a_changed_file_is_refused_by_its_checksum(model):
    data = bytearray(model.dump(card()))
    data[len(data) // 2] ^= 1
    with pytest.raises(SkillMisconfigured, match="here"):
        load_ranker(bytes(data), "here")


def test_a_ranker_of_other_features_is_refused(model):
    files = unpack(model.dump(card()))
    files["ranker.json"] = files["ranker.json"].replace(b"title_match", b"title_mitch")
    with pytest.raises(SkillMisconfigured, match="other features"):
        load_ranker(pack(files), "here")


async def test_params_are_refused(skill):
    (result,) = await skill.run([request((), params={"depth": 3})])
    assert isinstance(result.error, RequestInvalid)


def test_it_is_off_until_it_is_asked_for(tmp_path):
    path = CATALOG / "learned_rank.yaml"
    assert not load_manifest(path, {}).enabled
    asked = load_manifest(path, {"TACTICIAN_LEARNED_RANK_ENABLED": "true"})
    assert asked.enabled
    resources = Resources(ResourceSettings(home=tmp_path, cache=tmp_path))
    assert isinstance(build(asked.component, resources), LearnedRankSkill)
