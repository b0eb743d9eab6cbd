"""Alembic's migrations, which change the tables of databases with an older schema."""
