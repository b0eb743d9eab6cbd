"""What Alembic runs: migrations on the connection that the engine hands over."""

from __future__ import annotations

from alembic import context

from commtune.db.connection.location import VERSION_TABLE
from commtune.db.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table=VERSION_TABLE,
    render_as_batch=True,
    # Alembic holds SQLite's tables for not transactional, which is true only of the driver's own
    # way to begin transactions; ours covers them, so that a half-made schema never stays.
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
