"""The first schema in a release, which needs no migration.

New databases are created from ``tables`` and ``views``; later revisions change older ones.
"""

revision = "r0008"
down_revision = None
