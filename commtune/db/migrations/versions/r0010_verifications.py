"""Adds the table of verifications, and an index to count the runs behind a profile."""

import sqlalchemy as sa
from alembic import op

revision = "r0010"
down_revision = "r0009"

_Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "verifications",
        sa.Column("id", _Id, nullable=False),
        sa.Column("campaign_id", _Id, nullable=False),
        sa.Column("configuration_id", _Id, nullable=False),
        sa.Column("profile", sa.String(255), nullable=False),
        sa.Column("finding", sa.String(32), nullable=False),
        sa.Column("first_block", sa.Integer(), nullable=False),
        sa.Column("last_block", sa.Integer(), nullable=False),
        sa.Column("share", sa.Double(), nullable=False),
        sa.Column("session_spread", sa.Double(), nullable=False),
        sa.Column("ended_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_verifications"),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], "fk_verifications_campaign_id_campaigns"
        ),
        sa.ForeignKeyConstraint(
            ["configuration_id"],
            ["configurations.id"],
            "fk_verifications_configuration_id_configurations",
        ),
    )
    indexed = ["campaign_id", "configuration_id", "profile", "id", "finding"]
    op.create_index("ix_verifications_profile", "verifications", indexed)
    op.drop_column("trials", "label")  # always empty
    behind = ["campaign_id", "configuration_id", "phase", "block"]
    op.create_index("ix_runs_configuration", "runs", behind)
