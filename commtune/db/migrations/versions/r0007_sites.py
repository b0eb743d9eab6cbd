"""Where a campaign was measured: empty for this site, else the name of the one that shared it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from commtune.db.migrations.versions import r0006_views as views

revision = "r0007"
down_revision = "r0006"

#: Views that say where something is from, which are made anew with it.
_CHANGED = ("results", "campaigns_overview", "profiles_overview")


def upgrade() -> None:
    """Adds the column; what is stored was measured here."""
    column = sa.Column("site", sa.Text(), nullable=False, server_default=sa.text("''"))
    op.add_column("campaigns", column)
    _make_views("AS simulated, c.site AS site,")


def downgrade() -> None:
    """Goes back to a schema that can't tell what other sites measured."""
    _make_views("AS simulated,", before_drop=True)


def _make_views(flags: str, *, before_drop: bool = False) -> None:
    connection = op.get_bind()
    for name in _CHANGED:
        op.execute(f"DROP VIEW {name}")
    if before_drop:
        op.drop_column("campaigns", "site")
    for name in _CHANGED:
        views.make_view(connection, name, lambda query: query.replace("AS simulated,", flags, 1))
