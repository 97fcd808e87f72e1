"""Rows of passages to rows with vectors."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ingest.rows import with_tokens, with_vectors
from skills.encoders.encoder import TextEncoder, TokenEncoder
from skills.resources import Resources

_BATCH = 256


class EmbedStage:
    """Embeds passages with every encoder of the collection."""

    def __init__(
        self,
        encoders: Mapping[str, TextEncoder],
        token_encoders: Mapping[str, TokenEncoder],
    ) -> None:
        """Take the encoders by vector name."""
        self._encoders = encoders
        self._token_encoders = token_encoders

    @classmethod
    def build(
        cls, resources: Resources, encoders: Mapping[str, str], token_encoders: Mapping[str, str]
    ) -> Self:
        """With encoders by their names.

        Raises:
            SkillMisconfigured: one is not there, or has no vectors of tokens.
        """
        return cls(
            {vector: resources.encoder(name) for vector, name in encoders.items()},
            {vector: resources.token_encoder(name) for vector, name in token_encoders.items()},
        )

    def process(self, table: pa.Table) -> pa.Table:
        """Add a column of vectors for each encoder; rows without text get zeros, or no tokens.

        Texts are encoded in order of length, so that a batch wastes little on padding.
        """
        started = time.perf_counter()
        texts: list[str | None] = table.column("embedded_text").to_pylist()
        order = sorted(
            (i for i, text in enumerate(texts) if text is not None),
            key=lambda i: -len(texts[i] or ""),
        )
        vectors = {n: _vectors(e, texts, order) for n, e in self._encoders.items()}
        tokens = {n: _tokens(e, texts, order) for n, e in self._token_encoders.items()}
        spent = np.array(table.column("spent_s").to_numpy(), np.float64)
        if order:
            spent[order] += (time.perf_counter() - started) / len(order)
        column = table.column_names.index("spent_s")
        table = table.set_column(column, "spent_s", pa.array(spent))
        dims = {n: e.token_dim for n, e in self._token_encoders.items()}
        return with_tokens(with_vectors(table, vectors), tokens, dims)


def _vectors(
    encoder: TextEncoder, texts: Sequence[str | None], order: Sequence[int]
) -> NDArray[np.float32]:
    rows = np.zeros((len(texts), encoder.dim), np.float32)
    for at, batch in _batches(texts, order):
        rows[at] = encoder.encode(batch, "passage")
    return rows


def _tokens(
    encoder: TokenEncoder, texts: Sequence[str | None], order: Sequence[int]
) -> list[NDArray[np.float32]]:
    rows = [np.zeros((0, encoder.token_dim), np.float32)] * len(texts)
    for at, batch in _batches(texts, order):
        for i, tokens in zip(at, encoder.encode_tokens(batch, "passage"), strict=True):
            # No store takes a passage without any: one of zeros matches nothing.
            rows[i] = tokens if len(tokens) else np.zeros((1, encoder.token_dim), np.float32)
    return rows


def _batches(
    texts: Sequence[str | None], order: Sequence[int]
) -> Iterator[tuple[Sequence[int], list[str]]]:
    for start in range(0, len(order), _BATCH):
        at = order[start : start + _BATCH]
        yield at, [texts[i] or "" for i in at]
