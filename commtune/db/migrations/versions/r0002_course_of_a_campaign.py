"""Planned blocks, what libraries executed, conclusions, load by others, shares and details."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0002"
down_revision = "r0001"

#: SQLite numbers rows by itself only in a column declared INTEGER.
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Goes to this schema; no row is touched, as columns get defaults or may be empty."""
    _conclusions()
    _blocks()
    _executions()
    op.add_column("runs", sa.Column("other_load", sa.Double(), nullable=True))
    op.add_column(
        "profile_points",
        sa.Column("share", sa.Double(), server_default=sa.text("1.0"), nullable=False),
    )
    op.add_column(
        "profiles",
        sa.Column("details", sa.JSON(), server_default=sa.text("'{}'"), nullable=False),
    )


def downgrade() -> None:
    """Goes back to the first schema."""
    op.drop_column("profiles", "details")
    op.drop_column("profile_points", "share")
    op.drop_column("runs", "other_load")
    for table in ("executions", "blocks", "conclusions"):
        op.drop_table(table)


def _conclusions() -> None:
    op.create_table(
        "conclusions",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("campaign_id", _ID, sa.ForeignKey("campaigns.id"), nullable=False),
        sa.Column("conclusion", sa.JSON(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
    )
    op.create_index("ix_conclusions_campaign", "conclusions", ["campaign_id", "id"])


def _blocks() -> None:
    op.create_table(
        "blocks",
        sa.Column("campaign_id", _ID, primary_key=True, autoincrement=False),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("phase", sa.String(length=32), nullable=False),
        sa.Column("operation", sa.String(length=64), nullable=False),
        sa.Column("configurations", sa.JSON(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaigns.id"]),
    )


def _executions() -> None:
    op.create_table(
        "executions",
        sa.Column("campaign_id", _ID, primary_key=True, autoincrement=False),
        sa.Column("configuration_id", _ID, primary_key=True, autoincrement=False),
        sa.Column("operation", sa.String(length=64), primary_key=True),
        sa.Column("followed", sa.String(length=32), nullable=False),
        sa.Column("fingerprints", sa.JSON(), nullable=False),
        sa.Column("said", sa.JSON(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("became", sa.String(length=64), nullable=True),
        sa.Column("created", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaigns.id"]),
        sa.ForeignKeyConstraint(["configuration_id"], ["configurations.id"]),
    )
