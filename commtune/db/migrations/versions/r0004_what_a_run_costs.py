"""What a run costs beside its measuring: first calls, and how long its launcher takes to end."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0004"
down_revision = "r0003"


def upgrade() -> None:
    """Goes to this schema; no row is touched, as the columns may be empty."""
    op.add_column("measurements", sa.Column("first_call_s", sa.Double(), nullable=True))
    op.add_column("runs", sa.Column("end_s", sa.Double(), nullable=True))


def downgrade() -> None:
    """Goes back to the schema without them."""
    op.drop_column("runs", "end_s")
    op.drop_column("measurements", "first_call_s")
