"""What the extractive reader saves by reading the promising sentences only, and each only once.

    python -m tests.load.reader_bench

The sample corpus is asked eight questions, by a reader that keeps no vectors (cold), by one that
has answered them before (warm), and by one that encodes every sentence of its passages. Time is
CPU time of this process, and the bars are ratios, so that a busy or slow machine changes neither.
Exit status 1 when one is missed: a cold answer takes at most a quarter of what reading everything
takes, a warm one at most a tenth, and they begin with the same sentence for seven of eight.
"""

import asyncio
import tempfile
import time
from pathlib import Path

from ingest.documents import DocumentSettings, DocumentStage
from ingest.known import KnownDocuments
from ingest.types import Unit
from policies.analysis import Analyzer
from serve_app.answers.extractive import ExtractiveReader
from serve_app.answers.types import AnswerRequest
from serve_app.samples import DOCUMENTS, QUESTIONS
from skills.resources import Resources, ResourceSettings
from skills.types import Hit

COLD, WARM, SAME = 0.25, 0.1, 7
QUERIES = (
    *QUESTIONS,
    "What does the warranty of the Halden H10 cover?",
    "澜星 S6 的可用容量是多少？",
    "What changed in the latest Halden firmware?",
    "How long is personal data kept?",
    "What is the Modbus address of the state of charge?",
)


def passages():
    stage = DocumentStage(DocumentSettings(), KnownDocuments.of([]))
    for path in sorted(DOCUMENTS.rglob("*")):
        if path.is_file():
            unit = Unit(path.as_uri(), DOCUMENTS.as_uri(), path.stat().st_size)
            for outcome in stage.process(unit):
                yield from outcome.passages


def requests(encoder):
    """Each query with the ten passages nearest to it."""
    found = list(passages())
    vectors = encoder.encode([f"{p.title}\n{p.text}" for p in found], "passage")
    for query, features in zip(QUERIES, Analyzer().analyze(QUERIES), strict=True):
        scores = vectors @ encoder.encode([query], "query")[0]
        hits = tuple(Hit(found[i], float(scores[i])) for i in scores.argsort()[::-1][:10])
        yield AnswerRequest(query, hits, 60_000, features.intent, features.entities)


async def asked(reader, all_requests):
    """CPU milliseconds an answer, and the answers."""
    started, answers = time.process_time(), []
    for request in all_requests:
        (result,) = await reader.generate([request])
        answers.append(result.answer)
    return (time.process_time() - started) * 1000 / len(answers), answers


async def main():
    with tempfile.TemporaryDirectory() as home:
        cache = Path(tempfile.gettempdir()) / "tactician"
        resources = Resources(ResourceSettings(home=Path(home), cache=cache))
        all_requests = list(requests(resources.encoder()))
        config = ExtractiveReader.Config()
        alone, whole = (
            ExtractiveReader(config.model_copy(update={"sentence_cache_size": 0} | more), resources)
            for more in ({}, {"max_sentences": 1000})
        )
        reader = ExtractiveReader(config, resources)
        every_ms, every = await asked(whole, all_requests)
        cold_ms, cold = await asked(alone, all_requests)
        await asked(reader, all_requests)
        warm_ms, warm = await asked(reader, all_requests)
    same = sum(a.sentences[:1] == b.sentences[:1] for a, b in zip(cold, every, strict=True))
    print(f"every sentence {every_ms:.0f} ms an answer, cold {cold_ms:.0f}, warm {warm_ms:.0f}")
    print(f"cold {cold_ms / every_ms:.2f} (bar {COLD}), warm {warm_ms / every_ms:.2f} (bar {WARM})")
    print(f"begin with the same sentence: {same} of {len(QUERIES)} (bar {SAME})")
    missed = cold_ms > COLD * every_ms or warm_ms > WARM * every_ms or same < SAME
    return 1 if missed or warm != cold else 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
