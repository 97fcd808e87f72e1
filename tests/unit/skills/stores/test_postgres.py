import contextlib
import uuid

import pytest

from skills.stores.postgres import PostgresStore
from tests.contract.store_contract import (
    VectorStoreContract,
    VectorWritingContract,
    WritableStoreContract,
)


class OnPostgres:
    """A schema of its own on the embedded server."""

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _server(cls, postgres_server):
        cls.server = postgres_server

    @contextlib.contextmanager
    def make_place(self):
        name = f"t{uuid.uuid4().hex[:12]}"
        yield {"url": self.server.get_uri(), "schema_name": name}
        self.server.psql(f"DROP SCHEMA IF EXISTS {name} CASCADE;")

    def open_store(self, place):
        return PostgresStore(PostgresStore.Config(**place, timeout_s=30), None)


class TestPostgresVectors(
    OnPostgres, VectorStoreContract, VectorWritingContract, WritableStoreContract
):
    pass
