"""Passages for store tests, written as briefly as a test can read them."""

from pathlib import Path

from skills.encoders.hashing import HashingEncoder
from skills.resources import Resources, ResourceSettings
from skills.stores.store import IndexedPassage, KeywordSearch, VectorSearch
from skills.types import OPERATOR, Condition, Filters, Passage, PassageMetadata

FAST_DISK = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Stores sync every version to disk; on a busy disk that is most of a test's time."""

ENCODER = HashingEncoder(HashingEncoder.Config(dim=64), None)
VECTORS = {"dense": (ENCODER.id, ENCODER.dim)}


def passage(passage_id, text, document=None, title="", **metadata):
    return Passage(passage_id, document or passage_id, text, title, PassageMetadata(**metadata))


def indexed(given, content_hash="h1", vectors=VECTORS):
    encoded = ENCODER.encode([given.text], "passage")[0]
    return IndexedPassage(given, dict.fromkeys(vectors, encoded), content_hash)


def write(store, passages, *, collection="c", delete=(), content_hash="h1", vectors=VECTORS):
    """Write and commit; returns the version's `CollectionInfo`."""
    writer = store.writer(collection, vectors)
    writer.delete_documents(delete)
    writer.upsert([indexed(each, content_hash, vectors) for each in passages])
    return writer.commit()


def words(text, *conditions, top_k=10, collection="c", version="", caller=OPERATOR):
    return KeywordSearch(collection, version, top_k, Filters(tuple(conditions)), caller, text=text)


def near(text, *conditions, top_k=10, collection="c", version="", caller=OPERATOR, name="dense"):
    vector = ENCODER.encode([text], "query")[0]
    filters = Filters(tuple(conditions))
    return VectorSearch(collection, version, top_k, filters, caller, vector, name)


def where(field, **bounds):
    return Condition(field, **bounds)


def ids(ranking):
    assert isinstance(ranking, list), ranking
    return [hit.passage.id for hit in ranking]


def resources(home):
    return Resources(ResourceSettings(home=home, cache=home / "cache"))
