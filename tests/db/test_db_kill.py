"""A controller that is killed while it stores a run leaves the run whole or not at all."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import database_values as given
import pytest
from sqlalchemy import text
from stores import opened_store

from commtune.db.queries.summaries import list_summaries
from commtune.db.storage.store import Store
from commtune.errors import DatabaseFault

CHILD = """
import sys, time
sys.path.insert(0, sys.argv[2])
import database_values as given
from sqlalchemy import event
from commtune.db.connection.engine import open_database
from commtune.db.storage.store import Store

database = open_database(sys.argv[1])
store = Store(database)
campaign_id = store.open_campaign(given.campaign()).id

def stop(connection, cursor, statement, *rest):
    if statement.startswith(sys.argv[3]):
        print("inside", flush=True)
        time.sleep(60)

event.listen(database.engine, "after_cursor_execute", stop)
store.finish_run(campaign_id, given.result(), "allreduce")
"""


@pytest.mark.parametrize("moment", ["UPDATE runs", "INSERT INTO measurements"])
def test_no_half_run_is_left(url: str, store: Store, moment: str) -> None:
    campaign_id = given.begin(store)
    store.start_runs(campaign_id, [given.request()], "s1")
    arguments = [
        sys.executable,
        "-c",
        CHILD,
        url,
        str(Path(__file__).parents[1] / "support/stored"),
        moment,
    ]
    child = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    assert child.stdout and child.stdout.readline() == "inside\n"
    child.kill()
    child.communicate()
    assert child.returncode == -signal.SIGKILL
    with store.database.read() as connection:
        assert connection.execute(text("SELECT state FROM runs")).scalar() == "running"
        assert connection.execute(text("SELECT count(*) FROM measurements")).scalar() == 0
    assert store.open_runs(campaign_id) == [given.request()]
    store.finish_run(campaign_id, given.result(), "allreduce")
    (run,) = store.runs(campaign_id)
    assert len(run.measurements) == len(given.SIZES)


#: Writes more than its cache holds, so that the file has rows of an unfinished transaction.
SPILLER = """
import sqlite3, sys, time

connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN EXCLUSIVE")
connection.execute("UPDATE campaigns SET name = 'unfinished'")
connection.execute("CREATE TABLE filler AS SELECT randomblob(1000000)")
print("inside", flush=True)
time.sleep(60)
"""


def test_without_a_log_nobody_reads_an_unfinished_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMTUNE_DB_WAIT", "0.3")
    path = tmp_path / "commtune.db"
    url = f"sqlite:///{path}"
    with opened_store(url) as store:
        store.open_campaign(given.campaign())
    with closing(sqlite3.connect(path)) as connection:  # as on a network file system
        connection.execute("PRAGMA journal_mode = delete")
    arguments = [sys.executable, "-c", SPILLER, str(path)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout and child.stdout.readline() == "inside\n"
        with pytest.raises(DatabaseFault, match="another program writes"):
            list_summaries(url)
        child.kill()
    assert [campaign.name for campaign in list_summaries(url)] == [given.campaign().name]
