"""Alembic's environment: runs the migrations on the connection that ``make_schema`` passes."""

from __future__ import annotations

from alembic import context

from commtune.db.connection.location import VERSION_TABLE
from commtune.db.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table=VERSION_TABLE,
    render_as_batch=True,
    # Alembic assumes that SQLite's DDL is not transactional, which is true only with the driver's
    # implicit transactions. Here an explicit one covers it, so that no half-made schema is left.
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
