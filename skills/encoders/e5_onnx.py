"""Runs the ONNX form of multilingual-e5-small: texts to token ids, batches, vectors."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skills.encoders.e5_graph import FLOAT32, IDS, INT8, MASK, POOLED, TOKENS
from skills.encoders.encoder import FloatArray, TextRole

PREFIXES: dict[TextRole, str] = {"query": "query: ", "passage": "passage: "}
"""What the model was trained to see before a text."""
TOKENIZER = "tokenizer.model"
_INT8_TOKENS = 48
"""Up to this length a text is faster with int8 activations: 12 tokens 10.0 against 15.8 ms, 48
tokens 27.9 against 25.5 ms, 256 tokens 151 against 110 ms (2026-11, one thread of a loaded AVX512
machine). The text's own length decides, so its vector does not depend on what is encoded with
it."""


class OnnxE5:
    """The model in ONNX Runtime. Safe to call from several threads."""

    def __init__(
        self, directory: Path, threads: int, max_tokens: int, max_batch_tokens: int
    ) -> None:
        """Load what `e5_build.cached_model` made.

        Raises:
            ImportError: `onnxruntime` or `sentencepiece` cannot be loaded here.
            RuntimeError: ONNX Runtime refuses the graph.
        """
        from sentencepiece import SentencePieceProcessor

        self._tokenizer = SentencePieceProcessor(model_file=str(directory / TOKENIZER))
        self._max_tokens = max_tokens
        self._max_batch_tokens = max_batch_tokens
        self._int8 = _session(directory / INT8, threads)
        self._float32 = _session(directory / FLOAT32, threads)

    def pooled(self, texts: Sequence[str], role: TextRole) -> FloatArray:
        """One L2-normalised vector a text, `(len(texts), hidden)` float32."""
        ids = self._tokenize(texts, role)
        vectors = np.empty((len(ids), self.dim), np.float32)
        for batch in self._batches([len(i) for i in ids]):
            vectors[batch] = self._run([ids[i] for i in batch], POOLED)
        return vectors

    def tokens(self, texts: Sequence[str], role: TextRole) -> list[FloatArray]:
        """The last layer of each text, `(tokens, hidden)` float32, without its special tokens and
        its prefix.
        """
        ids = self._tokenize(texts, role)
        first = 1 + len(self._tokenizer.encode(PREFIXES[role]))
        found: dict[int, FloatArray] = {}
        for batch in self._batches([len(i) for i in ids]):
            states = self._run([ids[i] for i in batch], TOKENS)
            for row, i in enumerate(batch):
                found[i] = states[row, first : len(ids[i]) - 1].copy()
        return [found[i] for i in range(len(ids))]

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self._int8.get_outputs()[0].shape[-1])

    def _tokenize(self, texts: Sequence[str], role: TextRole) -> list[list[int]]:
        bos, eos = self._tokenizer.bos_id(), self._tokenizer.eos_id()
        prefix = PREFIXES[role]
        encoded = self._tokenizer.encode([prefix + text for text in texts], num_threads=1)
        return [[bos, *ids[: self._max_tokens - 2], eos] for ids in encoded]

    def _batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Indices of texts of similar length, at most `max_batch_tokens` with padding."""
        batch: list[int] = []
        for i in sorted(range(len(lengths)), key=lengths.__getitem__):
            crosses = batch and lengths[batch[0]] <= _INT8_TOKENS < lengths[i]
            if batch and (crosses or (len(batch) + 1) * lengths[i] > self._max_batch_tokens):
                yield batch
                batch = []
            batch.append(i)
        if batch:
            yield batch

    def _run(self, ids: Sequence[Sequence[int]], output: str) -> FloatArray:
        longest = max(map(len, ids))
        padded = np.full((len(ids), longest), self._tokenizer.pad_id(), np.int64)
        mask = np.zeros((len(ids), longest), np.int64)
        for row, tokens in enumerate(ids):
            padded[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        session = self._int8 if longest <= _INT8_TOKENS else self._float32
        vectors: FloatArray = session.run([output], {IDS: padded, MASK: mask})[0]
        return vectors


def _session(graph: Path, threads: int) -> Any:
    from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions

    options = SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Higher levels would merge Add and LayerNormalization into the slower SkipLayerNormalization.
    options.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_BASIC
    # A waiting thread must not burn the core that another replica needs.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
