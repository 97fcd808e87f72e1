"""Keep requests and signals."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        "experience",
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("collection", sa.Text(), nullable=False),
        sa.Column("index_version", sa.Text(), nullable=False),
        sa.Column("query", sa.Text(), nullable=True),
        sa.Column("query_digest", sa.Text(), nullable=False),
        sa.Column("language", sa.String(length=16), nullable=False),
        sa.Column("intent", sa.String(length=32), nullable=False),
        sa.Column("features", JSON, nullable=False),
        sa.Column("live", JSON, nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("propensity", sa.Float(precision=53), nullable=False),
        sa.Column("policy", sa.Text(), nullable=False),
        sa.Column("policy_version", sa.Text(), nullable=False),
        sa.Column("mode", sa.String(length=16), nullable=False),
        sa.Column("explored", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("scores", JSON, nullable=False),
        sa.Column("details", JSON, nullable=False),
        sa.Column("execution", JSON, nullable=False),
        sa.Column("passages", JSON, nullable=False),
        sa.Column("missing", JSON, nullable=False),
        sa.Column("timings_ms", JSON, nullable=False),
        sa.Column("total_ms", sa.Float(precision=53), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("user_digest", sa.Text(), nullable=False),
        sa.Column("session_digest", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("budget_ms", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("request_id"),
    )
    op.create_index("experience_by_session", "experience", ["session_digest", "at"], unique=False)
    op.create_index("experience_by_time", "experience", ["at", "request_id"], unique=False)
    op.create_index("experience_by_user", "experience", ["user_digest"], unique=False)
    op.create_table(
        "experience_signal",
        sa.Column("signal_id", sa.Text(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("value", sa.Float(precision=53), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("user_digest", sa.Text(), nullable=False),
        sa.Column("passage_id", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("signal_id"),
    )
    op.create_index(
        "experience_signal_by_request", "experience_signal", ["request_id", "at"], unique=False
    )
    op.create_index("experience_signal_by_user", "experience_signal", ["user_digest"], unique=False)


def downgrade() -> None:
    """Undo `upgrade`."""
    op.drop_index("experience_signal_by_user", table_name="experience_signal")
    op.drop_index("experience_signal_by_request", table_name="experience_signal")
    op.drop_table("experience_signal")
    op.drop_index("experience_by_user", table_name="experience")
    op.drop_index("experience_by_time", table_name="experience")
    op.drop_index("experience_by_session", table_name="experience")
    op.drop_table("experience")
