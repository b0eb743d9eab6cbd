"""Alembic's migrations: the only way that tables come to be."""
