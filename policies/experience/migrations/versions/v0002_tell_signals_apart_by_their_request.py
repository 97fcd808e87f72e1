"""Tell signals apart by their request: callers choose `signal_id`, and two may choose the same."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# SQLite names no primary key and cannot change one in place: there, the table is made anew.
_NAME = "experience_signal_pkey"
_NAMING = {"pk": "%(table_name)s_pkey"}


def upgrade() -> None:
    """Upgrade the schema."""
    _key(["request_id", "signal_id"])


def downgrade() -> None:
    """Undo `upgrade`; fails when an id was used for two requests."""
    _key(["signal_id"])


def _key(columns: list[str]) -> None:
    with op.batch_alter_table("experience_signal", naming_convention=_NAMING) as table:
        table.drop_constraint(_NAME, type_="primary")
        table.create_primary_key(_NAME, columns)
