"""Rows of passages to rows with vectors."""

import time
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from ingest.rows import with_vectors
from skills.encoders.encoder import TextEncoder

_BATCH = 256


class EmbedStage:
    """Embeds passages with every encoder of the collection."""

    def __init__(self, encoders: Mapping[str, TextEncoder]) -> None:
        """Take the encoders by vector name."""
        self._encoders = encoders

    def process(self, table: pa.Table) -> pa.Table:
        """Add a column of vectors for each encoder; rows without text get zeros.

        Texts are encoded in order of length, so that a batch wastes little on padding.
        """
        started = time.perf_counter()
        texts: list[str | None] = table.column("embedded_text").to_pylist()
        order = sorted(
            (i for i, text in enumerate(texts) if text is not None),
            key=lambda i: -len(texts[i] or ""),
        )
        vectors = {}
        for name, encoder in self._encoders.items():
            rows = np.zeros((len(texts), encoder.dim), np.float32)
            for start in range(0, len(order), _BATCH):
                at = order[start : start + _BATCH]
                rows[at] = encoder.encode([texts[i] or "" for i in at], "passage")
            vectors[name] = rows
        spent = np.array(table.column("spent_s").to_numpy(), np.float64)
        if order:
            spent[order] += (time.perf_counter() - started) / len(order)
        column = table.column_names.index("spent_s")
        return with_vectors(table.set_column(column, "spent_s", pa.array(spent)), vectors)
