"""Outcomes as Arrow rows."""

from ingest.embedding import EmbedStage
from ingest.rows import table_of, tokens_of, vectors_of
from tests.unit.ingest.fakes import FakeEncoder, FakeTokenEncoder


def test_a_table_without_rows_gets_its_columns_of_vectors():
    encoder = FakeTokenEncoder(FakeEncoder.Config(dim=4), None)
    table = EmbedStage({"dense": encoder}, {"late": encoder}).process(table_of([]))
    assert {"vector:dense", "tokens:late"} <= set(table.column_names)
    assert 4 == table.schema.field("tokens:late").type.value_type.list_size
    assert (0, 4) == vectors_of(table)["dense"].shape
    assert {"late": []} == tokens_of(table)
