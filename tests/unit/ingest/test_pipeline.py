"""The Ray executor against the in-process one: the caller cannot tell them apart."""

import json
import random

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.serve]


@pytest.fixture
def corpus(bench):
    words = random.Random(7)
    lines = [
        json.dumps({"_id": f"p{i}", "title": f"T{i}", "text": "word " * words.randint(1, 80)})
        for i in range(3000)
    ]
    bench.write("passages.jsonl", "\n".join(lines))
    bench.write(
        "manual.md", "# Manual\n\n" + "".join(f"## Part {i}\n\n{'x' * 400}\n\n" for i in range(20))
    )
    bench.write("broken.pdf", b"%PDF-1.7 broken")
    return bench


def test_ray_indexes_what_the_process_itself_would(corpus):
    by_process = corpus.run(execution="inline")
    expected = {
        i: (p.content_hash, p.vectors["dense"].tolist())
        for i, p in corpus.store.indexed("c").items()
    }
    corpus.store.current.clear()
    by_ray = corpus.run(execution="ray", retry_failed=True)
    found = {
        i: (p.content_hash, p.vectors["dense"].tolist())
        for i, p in corpus.store.indexed("c").items()
    }
    assert ("inline", "ray") == (by_process.execution, by_ray.execution)
    assert (by_process.added, by_process.failed) == (by_ray.added, by_ray.failed)
    assert expected == found
