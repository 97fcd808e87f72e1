import json
from pathlib import Path

import pytest

from policies.errors import DatasetInvalid
from policies.evaluation.dataset import EvaluationQuery, load_dataset

FILES = {
    "corpus.jsonl": '{"_id": "d1", "title": "", "text": "one"}\n{"_id": "d2", "text": "two"}\n',
    "queries.jsonl": (
        '{"_id": "q1", "text": "first?", "metadata": {"answer": "x"}}\n\n'
        '{"_id": "q2", "text": "second?"}\n{"_id": "q3", "text": "第三"}\n'
    ),
    "qrels.tsv": "query-id\tcorpus-id\tscore\nq3\td1\t1\nq1\td1\t2\nq1\td2\t0\nq2\td2\t0\n",
}
SHARED = Path(__file__).parents[4].parent / "shared" / "data"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def test_reads_judged_queries_in_the_order_of_their_file(folder):
    dataset = load_dataset(folder)
    assert (EvaluationQuery("q1", "first?"), EvaluationQuery("q3", "第三")) == dataset.queries
    assert {"q1": {"d1": 2, "d2": 0}, "q3": {"d1": 1}} == dataset.qrels
    assert ("mine", 2, 1) == (dataset.name, dataset.num_documents, dataset.num_unjudged)


@pytest.mark.parametrize(
    ("name", "old", "new", "where"),
    [
        ("queries.jsonl", "{", "", "queries.jsonl, line 1: is no JSON"),
        ("queries.jsonl", '"q3"', '"q1"', "queries.jsonl, line 4: _id 'q1' comes twice"),
        ("queries.jsonl", '"second?"', "7", "queries.jsonl, line 3: text must be"),
        ("corpus.jsonl", '"_id": "d2", ', "", "corpus.jsonl, line 2: _id must be"),
        (
            "corpus.jsonl",
            '{"_id": "d1", "title": "", "text": "one"}',
            "[]",
            "line 1: is no JSON ob",
        ),
        ("qrels.tsv", "q3\td1\t1", "q3 d1 1", "qrels.tsv, line 2: expected"),
        ("qrels.tsv", "q3\td1\t1", "q3\td1\t0.5", "qrels.tsv, line 2: expected"),
        ("qrels.tsv", "q3\td1", "q9\td1", "qrels.tsv, line 2: no query 'q9'"),
        ("qrels.tsv", "q3\td1", "q3\td9", "qrels.tsv, line 2: no document 'd9'"),
        ("qrels.tsv", FILES["qrels.tsv"], "", "qrels.tsv: judges no document"),
    ],
)
def test_a_wrong_folder_names_file_and_line(folder, name, old, new, where):
    (folder / name).write_text(FILES[name].replace(old, new, 1))
    with pytest.raises(DatasetInvalid) as caught:
        load_dataset(folder)
    assert where in str(caught.value)


def test_a_missing_file_is_named(folder):
    (folder / "qrels.tsv").unlink()
    with pytest.raises(DatasetInvalid, match=r"qrels\.tsv"):
        load_dataset(folder)


def test_a_sample_is_the_same_for_the_same_seed_and_keeps_the_order(tmp_path):
    lines = [json.dumps({"_id": f"q{i}", "text": "x"}) for i in range(50)]
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d", "text": "x"}')
    (tmp_path / "queries.jsonl").write_text("\n".join(lines))
    (tmp_path / "qrels.tsv").write_text("\n".join(f"q{i}\td\t1" for i in range(50)))
    dataset = load_dataset(tmp_path)
    sample = dataset.sample(10, seed=1)
    ids = [int(q.id[1:]) for q in sample.queries]
    assert (10, sorted(ids)) == (len(ids), ids)
    assert sample == dataset.sample(10, seed=1) != dataset.sample(10, seed=2)
    assert set(sample.qrels) == {q.id for q in sample.queries}
    assert dataset.sample(500, seed=1) == dataset


@pytest.mark.parametrize(
    ("name", "queries", "documents"),
    [("sec10q-pages", 74, 1034), ("stard-zh", 1543, 1444), ("multihop-news", 429, 438)],
)
def test_reads_real_folders(name, queries, documents):
    if not (SHARED / name).is_dir():
        pytest.skip("../shared/data is not here")
    dataset = load_dataset(SHARED / name)
    assert (queries, documents, 0) == (
        len(dataset.queries),
        dataset.num_documents,
        dataset.num_unjudged,
    )
