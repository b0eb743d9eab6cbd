"""The first schema: new databases are made from ``tables`` and ``views``, and begin here.

A later revision changes the databases that are older than it.
"""

revision = "r0008"
down_revision = None
