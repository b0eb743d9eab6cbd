"""Jobs of a scheduler, and where each run was made."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0003"
down_revision = "r0002"

#: SQLite numbers rows by itself only in a column declared INTEGER.
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Goes to this schema; no row is touched, as the columns may be empty."""
    _jobs()
    op.add_column("runs", sa.Column("nodes", sa.Text(), nullable=True))
    op.add_column("runs", sa.Column("distance", sa.Text(), nullable=True))


def downgrade() -> None:
    """Goes back to the schema without jobs."""
    op.drop_column("runs", "distance")
    op.drop_column("runs", "nodes")
    op.drop_table("jobs")


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("key", sa.String(length=255), primary_key=True),
        sa.Column("campaign_id", _ID, sa.ForeignKey("campaigns.id"), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("stage", sa.String(length=16), nullable=False),
        sa.Column("block", sa.Integer(), nullable=True),
        sa.Column("number", sa.String(length=64), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("word", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("nodes", sa.Text(), nullable=False),
        sa.Column("node_count", sa.Integer(), nullable=False),
        sa.Column("prepared_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=True),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.Column("node_hours", sa.Double(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
    )
    op.create_index("ix_jobs_campaign", "jobs", ["campaign_id", "node_hours"])
    is_open = sa.text("stage <> 'over'")
    op.create_index(
        "ix_jobs_open",
        "jobs",
        ["campaign_id", "prepared_at"],
        sqlite_where=is_open,
        postgresql_where=is_open,
    )
