"""Small but genuine checkpoints of BGE-M3 and bge-reranker: two layers, random weights from a seed.

Built where torch and transformers are; the tokenizer's pieces are written by hand, because training
one gives other pieces each time.
"""

import importlib.util
import string

import pytest

HERE = importlib.util.find_spec("FlagEmbedding") is not None
HIDDEN = 64
TEXTS = (
    "how are results fused",
    "Reciprocal rank fusion adds reciprocal ranks.",
    "排名融合把多个结果合并",
    "向量检索 and keyword search",
    "a",
    "a much longer passage about nothing in particular, " * 6,
)


def needing_flag(test):
    """Mark a test that runs where the extra `flag` is installed."""
    test = pytest.mark.skipif(not HERE, reason="the extra `flag` is not installed")(test)
    for category in ("DeprecationWarning", "FutureWarning", "UserWarning"):
        # Of transformers, torch and SWIG, at import; none of ours.
        test = pytest.mark.filterwarnings(f"ignore::{category}")(test)
    return pytest.mark.slow(test)


def tokenizer():
    """XLM-RoBERTa's way of marking texts, over single characters and a few words."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    han = sorted({char for text in TEXTS for char in text if not char.isascii()})
    words = ["▁" + word for word in ("how", "are", "rank", "search", "passage", "a")]
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "▁", *string.printable, *han, *words, "<mask>"]
    scores = [0.0] * 4 + [-3.0 - 0.01 * i for i in range(len(pieces) - 5)] + [0.0]
    built = Tokenizer(models.Unigram(list(zip(pieces, scores, strict=True)), unk_id=3))
    built.normalizer = normalizers.NFKC()
    built.pre_tokenizer = pre_tokenizers.Metaspace()
    built.decoder = decoders.Metaspace()
    built.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=built,
        bos_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        cls_token="<s>",
        unk_token="<unk>",
        pad_token="<pad>",
        mask_token="<mask>",
        model_max_length=512,
        model_input_names=["input_ids", "attention_mask"],
    )


def _config(vocabulary, **more):
    from transformers import XLMRobertaConfig

    return XLMRobertaConfig(
        vocab_size=vocabulary,
        hidden_size=HIDDEN,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=2 * HIDDEN,
        max_position_embeddings=514,
        type_vocab_size=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        layer_norm_eps=1e-5,
        initializer_range=0.2,  # so that different texts get clearly different scores
        **more,
    )


def write_bge_m3(folder, token_dim=HIDDEN):
    """XLM-RoBERTa with the two heads of BGE-M3."""
    import torch
    from transformers import XLMRobertaModel

    torch.manual_seed(0)
    pieces = tokenizer()
    XLMRobertaModel(_config(len(pieces))).save_pretrained(folder)
    pieces.save_pretrained(folder)
    torch.save(torch.nn.Linear(HIDDEN, token_dim).state_dict(), folder / "colbert_linear.pt")
    torch.save(torch.nn.Linear(HIDDEN, 1).state_dict(), folder / "sparse_linear.pt")


def write_reranker(folder):
    """XLM-RoBERTa that gives a pair one logit; also as `model.onnx`."""
    import torch
    from transformers import XLMRobertaForSequenceClassification

    torch.manual_seed(0)
    pieces = tokenizer()
    model = XLMRobertaForSequenceClassification(_config(len(pieces), num_labels=1))
    model.eval().save_pretrained(folder)
    pieces.save_pretrained(folder)
    return model
