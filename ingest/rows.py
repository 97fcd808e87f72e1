"""Outcomes as Arrow rows: what travels from parsing to embedding to the driver.

Every document has one row of its own, and one row a passage. Embedding adds one column of vectors
for each vector name.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from ingest.types import DocumentOutcome
from skills.encoders.passage_text import embedded_text
from skills.types import FactAnchor, Passage, PassageMetadata

SCHEMA = pa.schema(
    [
        ("document_id", pa.string()),
        ("uri", pa.string()),
        ("offset", pa.int64()),
        ("content_hash", pa.string()),
        ("state", pa.string()),
        ("reason", pa.string()),
        ("stage", pa.string()),
        ("num_passages", pa.int32()),
        ("size_bytes", pa.int64()),
        ("passage", pa.binary()),
        ("embedded_text", pa.string()),
        ("spent_s", pa.float64()),
    ]
)
"""`passage` and `embedded_text` are null in a document's own row. `spent_s` is the time that this
row cost: parsing in a document's row, embedding in a passage's."""
VECTOR_PREFIX = "vector:"
TOKENS_PREFIX = "tokens:"


def table_of(outcomes: Iterable[tuple[DocumentOutcome, float]]) -> pa.Table:
    """Rows of outcomes, each with the seconds that it took."""
    rows: list[tuple[Any, ...]] = []
    for o, spent_s in outcomes:
        document = (o.document_id, o.uri, o.offset, o.content_hash, str(o.state))
        size = (len(o.passages), o.size_bytes)
        rows.append((*document, o.reason, o.stage, *size, None, None, spent_s))
        rows.extend(
            (*document, "", "", *size, encode_passage(p), embedded_text(p), 0.0) for p in o.passages
        )
    columns = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def with_vectors(table: pa.Table, vectors: Mapping[str, NDArray[np.float32]]) -> pa.Table:
    """Add vector columns; each array has shape `(table.num_rows, dim)`, float32."""
    for name, values in vectors.items():
        column = pa.FixedSizeListArray.from_arrays(
            pa.array(np.ascontiguousarray(values).reshape(-1)), values.shape[1]
        )
        table = table.append_column(VECTOR_PREFIX + name, column)
    return table


def with_tokens(
    table: pa.Table,
    tokens: Mapping[str, Sequence[NDArray[np.float32]]],
    dims: Mapping[str, int],
) -> pa.Table:
    """Add columns of token vectors; each has one `(tokens, dim)` float32 array a row. They are kept
    in half precision, as stores keep them. `dims` is what a table without rows cannot tell.
    """
    for name, values in tokens.items():
        offsets = np.concatenate([[0], np.cumsum([len(rows) for rows in values])])
        none = np.zeros((0, dims[name]), np.float32)
        flat = np.concatenate([none, *values]).astype(np.float16)
        rows = pa.FixedSizeListArray.from_arrays(pa.array(flat.reshape(-1)), dims[name])
        column = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), rows)
        table = table.append_column(TOKENS_PREFIX + name, column)
    return table


def tokens_of(table: pa.Table) -> dict[str, list[NDArray[np.float32]]]:
    """The columns of token vectors, one `(tokens, dim)` float32 array a row."""
    found: dict[str, list[NDArray[np.float32]]] = {}
    for name in table.column_names:
        if name.startswith(TOKENS_PREFIX):
            column = table.column(name).combine_chunks()
            dim = column.type.value_type.list_size
            flat = column.flatten().flatten().to_numpy(zero_copy_only=False).astype(np.float32)
            offsets = np.cumsum([0, *column.value_lengths().to_pylist()])
            rows = np.split(flat.reshape(-1, dim), offsets[1:])[: table.num_rows]
            found[name.removeprefix(TOKENS_PREFIX)] = rows
    return found


def vectors_of(table: pa.Table) -> dict[str, NDArray[np.float32]]:
    """The vector columns, each `(num_rows, dim)` float32."""
    found: dict[str, NDArray[np.float32]] = {}
    for name in table.column_names:
        if name.startswith(VECTOR_PREFIX):
            column = table.column(name).combine_chunks()
            flat = column.flatten().to_numpy(zero_copy_only=False)
            dim = column.type.list_size
            found[name.removeprefix(VECTOR_PREFIX)] = flat.reshape(table.num_rows, dim)
    return found


def encode_passage(passage: Passage) -> bytes:
    """A passage as JSON."""
    return orjson.dumps(passage)


def decode_passage(data: bytes) -> Passage:
    """A passage from the JSON of `encode_passage`."""
    raw = orjson.loads(data)
    given = raw["metadata"]
    for name in ("domain_tags", "heading_path", "allowed_roles"):
        given[name] = tuple(given[name])
    given["fact_anchors"] = tuple(FactAnchor(**anchor) for anchor in given["fact_anchors"])
    given["attributes"] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in given["attributes"].items()
    }
    return Passage(
        raw["id"], raw["document_id"], raw["text"], raw["title"], PassageMetadata(**given)
    )
