"""Token vectors that ingestion writes are what late interaction reads."""

from ingest.request import IngestRequest
from ingest.run import run
from skills.late_interaction import LateInteractionSkill
from skills.resources import Component, Resources, ResourceSettings
from skills.skill import SkillRequest
from skills.stores.store import KeywordSearch
from skills.types import OPERATOR, Filters, Hit

TEXTS = ("pump pressure drops", "the valve leaks", "pump valve")


async def test_late_interaction_reads_the_token_vectors_of_a_collection(tmp_path):
    (tmp_path / "docs").mkdir()
    for number, text in enumerate(TEXTS):
        (tmp_path / "docs" / f"{number}.txt").write_text(text)
    encoder = Component(class_path="tests.unit.ingest.fakes.FakeTokenEncoder")
    settings = ResourceSettings(home=tmp_path, cache=tmp_path, encoders={"default": encoder})
    run(
        IngestRequest(
            (str(tmp_path / "docs"),),
            "c",
            settings,
            token_encoders={"late": "default"},
            execution="inline",
        )
    )
    resources = Resources(settings)
    store = resources.vector_store()
    assert "words" == (await store.info("c")).vectors["late"]
    search = KeywordSearch("c", "", 9, Filters(), OPERATOR, text="pump valve")
    (found,) = await resources.keyword_store().match([search])
    assert len(TEXTS) == len(found)
    skill = LateInteractionSkill(LateInteractionSkill.Config(), resources)
    (result,) = await skill.run(
        [
            SkillRequest(
                query="pump valve",
                collection="c",
                top_k=3,
                budget_ms=5000,
                caller=OPERATOR,
                hits=tuple(Hit(hit.passage, 1.0) for hit in reversed(found)),
            )
        ]
    )
    assert "store" == result.explanation["source"]
    assert "pump valve" == result.hits[0].passage.text
