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


def written(corpus):
    return {
        i: (p.content_hash, {name: vectors.tolist() for name, vectors in p.vectors.items()})
        for i, p in corpus.store.indexed("c").items()
    }


def test_ray_indexes_what_the_process_itself_would(corpus):
    late = {"late": "tokens"}
    by_process = corpus.run(execution="inline", token_encoders=late)
    expected = written(corpus)
    corpus.store.current.clear()
    by_ray = corpus.run(execution="ray", retry_failed=True, token_encoders=late)
    found = written(corpus)
    assert {"dense", "late"} == set(next(iter(found.values()))[1])
    assert ("inline", "ray") == (by_process.execution, by_ray.execution)
    assert (by_process.added, by_process.failed) == (by_ray.added, by_ray.failed)
    assert expected == found
