"""The ONNX scorer on a small genuine graph: it counts the words that both sides share."""

import asyncio

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from skills.errors import SkillMisconfigured
from skills.resources import Resources, ResourceSettings
from skills.scorers.onnx import OnnxScorer
from skills.scorers.scorer import PairScorer

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "red", "green", "apple", "pear", "car", "a"]


def write_tokenizer(folder):
    vocabulary = {word: i for i, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer.save(str(folder / "tokenizer.json"))


def write_graph(path, classes=1):
    """Logit = words of side 0 times words of side 1, special tokens worth nothing."""
    names = ("input_ids", "attention_mask", "token_type_ids")
    inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, ["b", "s"]) for n in names]
    table = np.eye(len(WORDS), dtype=np.float32)
    table[:4] = 0
    head = np.array([[1.0]] if classes == 1 else [[-1.0, 1.0]], np.float32)
    constants = {"table": table, "one": np.array([1.0], np.float32), "head": head}
    axes = {"axis1": np.array([1]), "axis2": np.array([2])}
    nodes = [
        ("Gather", ["table", "input_ids"], "words", {}),
        ("Cast", ["token_type_ids"], "right", {"to": TensorProto.FLOAT}),
        ("Cast", ["attention_mask"], "mask", {"to": TensorProto.FLOAT}),
        ("Sub", ["one", "right"], "left", {}),
        ("Mul", ["right", "mask"], "right_mask", {}),
        ("Mul", ["left", "mask"], "left_mask", {}),
        ("Unsqueeze", ["left_mask", "axis2"], "l", {}),
        ("Unsqueeze", ["right_mask", "axis2"], "r", {}),
        ("Mul", ["words", "l"], "lw", {}),
        ("Mul", ["words", "r"], "rw", {}),
        ("ReduceSum", ["lw", "axis1"], "ls", {"keepdims": 0}),
        ("ReduceSum", ["rw", "axis1"], "rs", {"keepdims": 0}),
        ("Mul", ["ls", "rs"], "shared", {}),
        ("ReduceSum", ["shared", "axis1"], "count", {"keepdims": 1}),
        ("MatMul", ["count", "head"], "logits", {}),
    ]
    graph = helper.make_graph(
        [helper.make_node(kind, i, [o], **a) for kind, i, o, a in nodes],
        "shared_words",
        inputs,
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["b", classes])],
        [numpy_helper.from_array(v, n) for n, v in (constants | axes).items()],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)


@pytest.fixture
def scorer(tmp_path):
    folder = tmp_path / "shared-words"
    folder.mkdir()
    write_tokenizer(folder)
    write_graph(folder / "model.onnx")
    write_graph(folder / "two.onnx", classes=2)
    resources = Resources(ResourceSettings(home=tmp_path, cache=tmp_path))

    def build(**config):
        return OnnxScorer(OnnxScorer.Config(**{"folder": folder, **config}), resources)

    return build


def scores(scorer, query, passages):
    return asyncio.run(scorer.score(query, passages, 1000)).tolist()


PASSAGES = ["green pear", "a red car", "a red apple a red apple", ""]


def test_each_passage_gets_its_pairs_logit(scorer):
    built = scorer()
    assert isinstance(built, PairScorer)
    assert ([0, 1, 4, 0], "shared-words") == (scores(built, "red apple", PASSAGES), built.id)


def test_two_logits_become_the_lead_of_the_relevant_one(scorer):
    assert [0, 2, 8, 0] == scores(scorer(model="two.onnx"), "red apple", PASSAGES)


def test_the_passage_is_cut_and_not_the_query(scorer):
    long = "a " * 40 + "red"
    assert [0] == scores(scorer(max_tokens=16), "red apple", [long])
    assert [1] == scores(scorer(max_tokens=64), "red apple", [long])


@pytest.mark.parametrize("name", ["tokenizer.json", "model.onnx"])
def test_a_folder_without_its_files_is_refused(scorer, tmp_path, name):
    (tmp_path / "shared-words" / name).unlink()
    with pytest.raises(SkillMisconfigured, match=name):
        scorer()
