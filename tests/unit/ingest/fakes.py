"""An in-memory store with versions and a cheap encoder."""

import hashlib

import numpy as np
from pydantic import BaseModel

from skills.stores.store import CollectionInfo


class FakeEncoder:
    """Unit vectors made of the text's digest."""

    class Config(BaseModel):
        dim: int = 8

    def __init__(self, config, resources):
        self.dim = config.dim
        self.id = f"digest@{config.dim}"
        self.num_texts = 0

    def encode(self, texts, role):
        self.num_texts += len(texts)
        rows = np.zeros((len(texts), self.dim), np.float32)
        for at, text in enumerate(texts):
            seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
            rows[at] = np.random.default_rng(seed).normal(size=self.dim)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


class FakeTokenEncoder(FakeEncoder):
    """A vector for every word."""

    token_id = "words"

    @property
    def token_dim(self):
        return self.dim

    def encode_tokens(self, texts, role):
        return [self.encode(text.split(), role) for text in texts]


class InMemoryStore:
    """Versions of collections as dicts from passage id to `IndexedPassage`."""

    class Config(BaseModel):
        pass

    def __init__(self, config, resources):
        self.current = {}
        self.number = {}

    def writer(self, collection, vectors, multi=()):
        return InMemoryWriter(self, collection)

    def passages(self, collection):
        return {i: p.passage for i, p in self.current.get(collection, {}).items()}

    def indexed(self, collection):
        return self.current.get(collection, {})


class InMemoryWriter:
    def __init__(self, store, collection):
        self.store = store
        self.collection = collection
        self.held = dict(store.current.get(collection, {}))
        self.touched = False

    def documents(self):
        return {p.passage.document_id: p.content_hash for p in self.held.values()}

    def upsert(self, passages):
        for p in passages:
            self.touched = True
            self.held[p.passage.id] = p

    def delete_documents(self, document_ids):
        gone = [i for i, p in self.held.items() if p.passage.document_id in set(document_ids)]
        for i in gone:
            self.touched = True
            del self.held[i]

    def commit(self):
        number = self.store.number.get(self.collection, 0)
        if self.touched:
            number += 1
        self.store.number[self.collection] = number
        self.store.current[self.collection] = self.held
        return CollectionInfo(self.collection, f"v{number}", len(self.held), 0, "")

    def abort(self):
        self.held = {}
