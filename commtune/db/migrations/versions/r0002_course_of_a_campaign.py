"""Planned blocks, what libraries executed, conclusions, load by others, shares and details."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0002"
down_revision = "r0001"
branch_labels = None
depends_on = None

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
        sa.Column("id", _ID, nullable=False),
        sa.Column("campaign_id", _ID, nullable=False),
        sa.Column("conclusion", sa.JSON(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("fk_conclusions_campaign_id_campaigns")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_conclusions")),
    )
    op.create_index("ix_conclusions_campaign", "conclusions", ["campaign_id", "id"])


def _blocks() -> None:
    op.create_table(
        "blocks",
        sa.Column("campaign_id", _ID, autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("phase", sa.String(length=32), nullable=False),
        sa.Column("operation", sa.String(length=64), nullable=False),
        sa.Column("configurations", sa.JSON(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("fk_blocks_campaign_id_campaigns")
        ),
        sa.PrimaryKeyConstraint("campaign_id", "number", name=op.f("pk_blocks")),
    )


def _executions() -> None:
    op.create_table(
        "executions",
        sa.Column("campaign_id", _ID, autoincrement=False, nullable=False),
        sa.Column("configuration_id", _ID, autoincrement=False, nullable=False),
        sa.Column("operation", sa.String(length=64), nullable=False),
        sa.Column("followed", sa.String(length=32), nullable=False),
        sa.Column("fingerprints", sa.JSON(), nullable=False),
        sa.Column("said", sa.JSON(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("became", sa.String(length=64), nullable=True),
        sa.Column("created", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("fk_executions_campaign_id_campaigns")
        ),
        sa.ForeignKeyConstraint(
            ["configuration_id"],
            ["configurations.id"],
            name=op.f("fk_executions_configuration_id_configurations"),
        ),
        sa.PrimaryKeyConstraint(
            "campaign_id", "configuration_id", "operation", name=op.f("pk_executions")
        ),
    )
