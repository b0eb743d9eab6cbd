"""Writes a database as this commit makes it, with a campaign in it, as SQL beside this file.

To be run once for every new revision, before it is released::

    python tests/db/migrations/schemas/make.py
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[2] / "support/stored"), str(HERE.parents[3])]

import database_values as given  # noqa: E402

from commtune.db.connection.engine import open_database  # noqa: E402
from commtune.db.connection.location import SCHEMA  # noqa: E402
from commtune.db.lock_owner import LockOwner  # noqa: E402
from commtune.db.storage.store import Store  # noqa: E402
from commtune.model import JobStage  # noqa: E402
from commtune.model.conclusion import Conclusion, Decision  # noqa: E402


def main() -> None:
    """Makes the database and dumps it as SQL."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "commtune.db"
        with open_database(f"sqlite:///{path}") as database:
            fill(Store(database))
        with closing(sqlite3.connect(path)) as connection:
            lines = "\n".join(connection.iterdump())
    (HERE / f"{SCHEMA}.sql").write_text(f"{lines}\n")


def fill(store: Store) -> None:
    """Puts something into every table."""
    handle, _ = store.begin(given.campaign(), LockOwner("node1", "boot", 1, 2, 3))
    campaign_id = handle.id
    store.add_trial(campaign_id, 1, given.TUNED, "sampler")
    store.start_runs(campaign_id, [given.request()], "s1")
    result = given.result(other_load=0.25, nodes=("n1", "n2"), distance="same-switch", end_s=0.125)
    store.finish_run(campaign_id, result, "allreduce")
    store.job_book(campaign_id).put_job(given.job("over", stage=JobStage.OVER, node_hours=0.5))
    store.job_book(campaign_id).put_job(given.job())
    store.start_runs(campaign_id, [given.request("r2")], "s1")
    store.decide(campaign_id, Decision(blocks=5))
    store.plan_block(campaign_id, given.block())
    store.add_execution(campaign_id, given.execution())
    store.conclude(campaign_id, Conclusion())
    store.save_profiles(campaign_id, [given.profile()])
    store.add_verification(campaign_id, given.verification())


if __name__ == "__main__":
    main()
