"""The FlagEmbedding scorer on a small genuine checkpoint, where the extra `flag` is installed."""

import asyncio
import warnings

import pytest

from skills.errors import SkillMisconfigured, SkillUnavailable
from skills.resources import Resources, ResourceSettings
from skills.scorers.flag import FlagScorer
from skills.scorers.onnx import OnnxScorer
from skills.scorers.scorer import PairScorer
from tests.unit.skills.flag_checkpoints import HERE, TEXTS, needing_flag, write_reranker


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flag") / "bge-reranker-v2-m3"
    folder.mkdir()
    write_reranker(folder)
    return folder


def built(cls, home, /, **config):
    return cls(cls.Config(**config), Resources(ResourceSettings(home=home, cache=home)))


def scores(scorer, query=TEXTS[0], passages=TEXTS[1:]):
    return asyncio.run(scorer.score(query, passages, 1000)).tolist()


@needing_flag
def test_scores_are_the_checkpoints_logits_in_the_order_of_the_passages(checkpoint):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    scorer = built(FlagScorer, checkpoint, model=str(checkpoint), device="cpu", batch_size=2)
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    model = AutoModelForSequenceClassification.from_pretrained(checkpoint).eval()
    with torch.no_grad():
        pairs = [tokenizer(TEXTS[0], passage, return_tensors="pt") for passage in TEXTS[1:]]
        expected = [model(**pair).logits.item() for pair in pairs]
    assert isinstance(scorer, PairScorer)
    assert scorer.id == "bge-reranker-v2-m3"
    assert expected == pytest.approx(scores(scorer), abs=1e-4)
    assert len({round(score, 3) for score in expected}) == len(expected)
    assert scores(scorer, passages=TEXTS[1:2]) == pytest.approx(expected[:1], abs=1e-4)


@needing_flag
def test_an_export_scores_the_same_in_onnx_runtime(checkpoint):
    import torch
    from transformers import AutoModelForSequenceClassification

    model = AutoModelForSequenceClassification.from_pretrained(checkpoint).eval()
    example = torch.ones((2, 8), dtype=torch.long)
    axes = {0: "pairs", 1: "tokens"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tracer warns of every branch
        torch.onnx.export(
            model,
            (example, example),
            str(checkpoint / "model.onnx"),
            input_names=["input_ids", "attention_mask"],
            output_names=["logits"],
            dynamic_axes={"input_ids": axes, "attention_mask": axes},
            opset_version=17,
            dynamo=False,
        )
    flag = built(FlagScorer, checkpoint, model=str(checkpoint), device="cpu")
    onnx = built(OnnxScorer, checkpoint, folder=checkpoint)
    assert scores(flag) == pytest.approx(scores(onnx), abs=1e-3)


@needing_flag
def test_a_folder_without_a_checkpoint_is_unavailable(tmp_path):
    with pytest.raises(SkillUnavailable, match="cannot be loaded"):
        built(FlagScorer, tmp_path, model=str(tmp_path))


@pytest.mark.skipif(HERE, reason="the extra `flag` is installed")
def test_without_the_extra_the_error_says_what_to_install(tmp_path):
    with pytest.raises(SkillMisconfigured, match=r"tactician\[flag\]"):
        built(FlagScorer, tmp_path, model="bge")
