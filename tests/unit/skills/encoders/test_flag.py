"""The FlagEmbedding encoders on small genuine checkpoints, where the extra `flag` is installed."""

import numpy as np
import pytest

from skills.encoders.colbert import max_sim
from skills.encoders.flag import BgeM3Encoder, FlagEncoder
from skills.errors import SkillMisconfigured, SkillUnavailable
from skills.resources import Resources, ResourceSettings
from tests.unit.skills.flag_checkpoints import HERE, HIDDEN, TEXTS, needing_flag, write_bge_m3


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flag") / "bge-m3"
    folder.mkdir()
    write_bge_m3(folder)
    return folder


def built(cls, model, **config):
    resources = Resources(ResourceSettings(home=model, cache=model))
    return cls(cls.Config(model=str(model), device="cpu", **config), resources)


def cosines(a, b):
    return (a * b).sum(axis=1)


@needing_flag
@pytest.mark.parametrize("cls", [FlagEncoder, BgeM3Encoder])
def test_vectors_are_those_of_the_checkpoint_in_the_order_of_the_texts(checkpoint, cls):
    import torch
    from transformers import AutoModel, AutoTokenizer

    encoder = built(cls, checkpoint, batch_size=2)
    vectors = encoder.encode(TEXTS, "passage")
    assert ((len(TEXTS), HIDDEN), np.float32, HIDDEN) == (vectors.shape, vectors.dtype, encoder.dim)
    tokenizer, model = (a.from_pretrained(checkpoint) for a in (AutoTokenizer, AutoModel))
    for text, vector in zip(TEXTS, vectors, strict=True):
        with torch.no_grad():
            given = tokenizer(text, return_tensors="pt")
            state = model.eval()(**given).last_hidden_state[0, 0].numpy()
        assert state @ vector / np.linalg.norm(state) == pytest.approx(1, abs=1e-4)


@needing_flag
@pytest.mark.parametrize("cls", [FlagEncoder, BgeM3Encoder])
def test_no_texts_and_unreadable_texts_are_no_failure(checkpoint, cls):
    encoder = built(cls, checkpoint)
    assert (0, HIDDEN) == encoder.encode([], "query").shape == encoder.encode([], "passage").shape
    odd = encoder.encode(["", "\ud800", "a" * 10_000], "query")
    assert np.allclose(1, np.linalg.norm(odd, axis=1), atol=1e-5)


@needing_flag
def test_instructions_and_pooling_change_vectors_and_the_name_of_their_space(checkpoint):
    plain = built(FlagEncoder, checkpoint)
    told = built(FlagEncoder, checkpoint, query_instruction="rank ", passage_instruction="a ")
    mean = built(FlagEncoder, checkpoint, pooling="mean")
    assert len({plain.id, told.id, mean.id}) == 3
    text = ["how are results"]
    assert cosines(told.encode(text, "query"), plain.encode(["rank " + text[0]], "query")) > 0.9999
    assert cosines(told.encode(text, "passage"), plain.encode(["a " + text[0]], "query")) > 0.9999
    assert cosines(mean.encode(text, "query"), plain.encode(text, "query")) < 0.99


@needing_flag
def test_token_vectors_score_as_bge_m3_scores_them(checkpoint):
    encoder = built(BgeM3Encoder, checkpoint)
    query, *passages = encoder.encode_tokens(TEXTS, "passage")
    assert (HIDDEN, []) == (encoder.token_dim, encoder.encode_tokens([], "query"))
    pairs = [(TEXTS[0], passage) for passage in TEXTS[1:]]
    expected = encoder._model.compute_score(pairs)["colbert"]
    assert expected == pytest.approx([max_sim(query, p) for p in passages], abs=1e-4)


@needing_flag
def test_a_narrower_token_head_is_loaded_as_it_is(tmp_path):
    write_bge_m3(tmp_path, token_dim=16)
    encoder = built(BgeM3Encoder, tmp_path, token_dim=16)
    assert 16 == encoder.token_dim == encoder.encode_tokens(["a"], "query")[0].shape[1]
    assert HIDDEN == encoder.dim


@pytest.mark.parametrize("head", ["colbert_linear.pt", "sparse_linear.pt"])
def test_bge_m3_without_a_head_is_refused_instead_of_made_up(tmp_path, head):
    for name in {"colbert_linear.pt", "sparse_linear.pt"} - {head}:
        (tmp_path / name).touch()
    with pytest.raises(SkillMisconfigured, match=head):
        built(BgeM3Encoder, tmp_path)


@needing_flag
def test_a_folder_without_a_checkpoint_is_unavailable(tmp_path):
    with pytest.raises(SkillUnavailable, match="cannot be loaded"):
        built(FlagEncoder, tmp_path)


@pytest.mark.skipif(HERE, reason="the extra `flag` is installed")
def test_without_the_extra_the_error_says_what_to_install(tmp_path):
    with pytest.raises(SkillMisconfigured, match=r"tactician\[flag\]"):
        built(FlagEncoder, tmp_path)
