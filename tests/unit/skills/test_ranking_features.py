import datetime
import math

import pytest

from skills.ranking_features import FEATURES, FeatureSettings, feature_rows
from skills.skill import SkillRequest
from skills.types import Caller, Condition, Filters, Hit, Passage, PassageMetadata, Provenance

NOW = datetime.datetime(2025, 1, 31, tzinfo=datetime.UTC)


def hit(name="p", text="text", *, score=1.0, found=(), title="", **metadata):
    provenance = tuple(Provenance(1, skill, 1, value) for skill, value in found)
    passage = Passage(name, name, text, title, PassageMetadata(**metadata))
    return Hit(passage, score, provenance)


def features(query, *hits, settings=None, **request):
    """By name, of each candidate."""
    asked = SkillRequest(query, "c", 10, 100, hits=hits, **request)
    rows = feature_rows(asked, settings or FeatureSettings(), NOW)
    assert (len(hits), len(FEATURES)) == rows.shape
    return [dict(zip(FEATURES, row.tolist(), strict=True)) for row in rows]


def test_scores_of_arms_are_told_apart_and_related_to_the_best():
    first, second = features(
        "q",
        hit("a", found=[("keyword", 8.0), ("dense", 0.5), ("fusion", 0.9)], score=3.0),
        hit("b", found=[("keyword", 2.0), ("late_interaction", 7.0)], score=1.0),
    )
    assert (8.0, 1.0, 0.5, 2.0) == (
        first["keyword_score"], first["keyword_share"], first["dense_score"],
        first["arm_agreement"],
    )  # fmt: skip
    assert (2.0, 0.25, 7.0, 1.0) == (
        second["keyword_score"], second["keyword_share"], second["late_score"],
        second["arm_agreement"],
    )  # fmt: skip
    assert math.isnan(second["dense_score"])
    assert (1.0, -1.0) == (first["prior_score"], second["prior_score"])
    assert (1.0, 0.5) == (first["prior_rank"], second["prior_rank"])


@pytest.mark.parametrize(
    ("query", "text", "feature", "expected"),
    [
        ("battery weight", "The battery is new.", "word_overlap", 0.5),
        ("心肌梗死 治疗", "心肌梗死的溶栓治疗", "word_overlap", 1.0),
        ("Does Peking University teach law?", "at Peking University", "entity_overlap", 1.0),
        ("what did 'The Verge' say", "The Age says", "entity_overlap", 0.0),
        ("is it 1,200 or 40", "It is 1200 metres.", "number_match", 0.5),
        ("revenue in 2023", "on 18 October 2023 it fell", "date_match", 1.0),
        ("revenue in 2022", "on 18 October 2023 it fell", "date_match", 0.0),
        ("error E-1042 on start", "see e-1042", "code_match", 1.0),
    ],
)
def test_matches_by_hand(query, text, feature, expected):
    (found,) = features(query, hit(text=text))
    assert expected == pytest.approx(found[feature])


@pytest.mark.parametrize("feature", ["entity_overlap", "number_match", "date_match", "code_match"])
def test_what_a_query_does_not_name_is_unknown_and_not_missing(feature):
    (found,) = features("how does it work", hit(text="In 2023 the E-1042 weighed 40 kg"))
    assert math.isnan(found[feature])


def test_title_and_headings_count_by_themselves():
    passage = hit(text="other words", title="Battery", heading_path=("Care", "Weight limits"))
    (found,) = features("battery weight", passage)
    assert 1.0 == found["title_match"]


def test_freshness_decays_with_the_time_of_the_source_type():
    old = (NOW - datetime.timedelta(days=30)).isoformat()
    news, manual, undated = features(
        "q",
        hit("a", last_updated=old, source_type="news"),
        hit("b", last_updated=old, source_type="pdf"),
        hit("c"),
        settings=FeatureSettings(freshness_days={"default": 60, "news": 30}),
    )
    assert math.exp(-1) == pytest.approx(news["freshness"])
    assert math.exp(-0.5) == pytest.approx(manual["freshness"])
    assert math.isnan(undated["freshness"])


def test_trust_is_that_of_the_source_type_times_that_of_the_passage():
    settings = FeatureSettings(authority={"web": 0.5})
    (found,) = features("q", hit(source_type="web", confidence_level=0.8), settings=settings)
    assert 0.4 == pytest.approx(found["source_authority"])


def test_roles_rules_and_the_business_are_seen():
    passage = hit(
        allowed_roles=("nurse",), author="David Pierce", attributes={"source": "Wired", "sold": 7}
    )
    (found,) = features(
        "what did david pierce write in wired",
        passage,
        settings=FeatureSettings(business_field="sold"),
        caller=Caller(roles=("nurse",)),
        filters=Filters((Condition("source", any_of=("Wired",)),)),
    )
    assert (1.0, 2.0, 1.0, 7.0) == (
        found["role_match"], found["rule_strength"], found["num_filters"],
        found["business_signal"],
    )  # fmt: skip


def test_no_candidates_no_rows():
    assert [] == features("q")
