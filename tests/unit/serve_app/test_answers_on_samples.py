"""The questions of the demo, from files to answers, with the real store and encoder."""

import pytest

from ingest.documents import DocumentSettings, DocumentStage
from ingest.known import KnownDocuments
from ingest.types import Unit
from policies.analysis import Analyzer
from policies.plan import PLANS, load_plan
from serve_app.answers.extractive import ExtractiveReader
from serve_app.answers.types import AnswerRequest
from serve_app.deadline import Deadline
from serve_app.execution.executor import Executor
from serve_app.execution.types import ExecutionRequest
from serve_app.samples import DOCUMENTS, QUESTIONS
from skills.registry import SkillRegistry
from skills.resources import Resources, ResourceSettings
from skills.stores.store import IndexedPassage
from skills.types import OPERATOR, MissingReason

pytestmark = pytest.mark.slow


class Direct:
    def __init__(self, skill):
        self._skill = skill

    async def call(self, request, deadline):
        (result,) = await self._skill.run([request])
        if result.error is not None:
            raise result.error
        return result


def passages():
    stage = DocumentStage(DocumentSettings(), KnownDocuments.of([]))
    for path in sorted(DOCUMENTS.rglob("*")):
        if path.is_file():
            unit = Unit(path.as_uri(), DOCUMENTS.as_uri(), path.stat().st_size)
            for outcome in stage.process(unit):
                yield from outcome.passages


@pytest.fixture(scope="module")
def resources(tmp_path_factory):
    home = tmp_path_factory.mktemp("samples")
    resources = Resources(ResourceSettings(home=home, cache=home))
    encoder = resources.encoder()
    found = list(passages())
    vectors = encoder.encode([f"{p.title}\n{p.text}" for p in found], "passage")
    writer = resources.store().writer("samples", {"dense": (encoder.id, encoder.dim)})
    writer.upsert(
        [IndexedPassage(p, {"dense": v}, p.id) for p, v in zip(found, vectors, strict=True)]
    )
    writer.commit()
    return resources


@pytest.fixture(scope="module")
def ask(resources):
    registry = SkillRegistry.load()
    names = ("keyword", "dense", "fusion", "metadata_filter", "entity_pair")
    targets = {name: Direct(registry.build(name, resources)) for name in names}
    manifests = {n: registry[n].model_copy(update={"timeout_ms": 60_000}) for n in names}
    executor = Executor(targets, manifests)
    reader = ExtractiveReader(ExtractiveReader.Config(), resources)

    async def asked(query, plan="hybrid_filtered"):
        (features,) = Analyzer().analyze([query])
        execution = await executor.execute(
            ExecutionRequest(
                query=query,
                plan=load_plan(PLANS / f"{plan}.yaml"),
                collection="samples",
                version="",
                top_k=10,
                deadline=Deadline.after(60_000),
                budget_ms=60_000,
                caller=OPERATOR,
            )
        )
        request = AnswerRequest(query, execution.hits, 60_000, features.intent, features.entities)
        (result,) = await reader.generate([request])
        by_id = {hit.passage.id: hit.passage for hit in execution.hits}
        for sentence in result.answer.sentences:
            (cited,) = sentence.citations
            assert sentence.text == by_id[cited.passage_id].text[cited.start : cited.end]
        return result.answer

    return asked


async def test_a_chinese_fact_is_answered_with_its_number(ask):
    answer = await ask(QUESTIONS[0])
    assert "3.86 亿元" in answer.sentences[0].text
    assert answer.missing == ()


async def test_an_open_how_is_answered_with_its_steps(ask):
    answer = await ask(QUESTIONS[1])
    assert [f"{i}." for i in range(1, 6)] == [step.text[:2] for step in answer.steps]
    assert "eight seconds" in answer.steps[1].text


@pytest.mark.parametrize("plan", ["hybrid_filtered", "compared"])
async def test_a_comparison_is_answered_side_by_side(ask, plan):
    answer = await ask(QUESTIONS[2], plan)
    assert ["Halden H5", "Halden H10"] == [row.side for row in answer.comparison]
    for row, other in (("H5", "H10"), ("H10", "H5")):
        said = next(r for r in answer.comparison if r.side.endswith(" " + row)).sentences
        assert any(row in s.text and other not in s.text for s in said)


@pytest.mark.parametrize("query", ["What is the capital of France?", "谁写了《红楼梦》？"])
async def test_what_no_document_says_is_not_answered(ask, query):
    answer = await ask(query)
    assert (answer.text, answer.sentences) == ("", ())
    assert [MissingReason.NO_EVIDENCE] == [missing.reason for missing in answer.missing]
