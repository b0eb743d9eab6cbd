"""Jobs of a scheduler and the runs that they make, over every kind of database."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import database_values as given
import pytest
from sqlalchemy import event, insert, text

from commtune.db.store import Store
from commtune.db.tables import Job
from commtune.errors import DatabaseFault
from commtune.model import DEFAULT, JobKind, JobStage, Outcome
from commtune.tuner import ports

#: Jobs of a campaign that was at it for long, of which two are not over.
MANY = 3000
_OTHERS = {"kind": "block", "block": None, "number": "", "folder": "", "word": "", "reason": "",
           "nodes": "", "node_count": 1, "started_at": None, "ended_at": None,
           "detail": ""}  # fmt: skip


@pytest.fixture
def campaign_id(store: Store) -> int:
    """A campaign with the baseline and one more trial."""
    campaign_id = store.open_campaign(given.campaign()).id
    store.add_trial(campaign_id, 0, DEFAULT, "baseline")
    store.add_trial(campaign_id, 1, given.TUNED, "sampler")
    return campaign_id


def requests(block: int = 4) -> list[Any]:
    """The runs of a block: the default, and the tuned configuration."""
    default = given.request(f"b{block}r0", configuration=DEFAULT, trial=0, block=block, position=0)
    return [default, given.request(f"b{block}r1", block=block, position=1)]


def results(block: int = 4, **changes: Any) -> list[Any]:
    """What came of ``requests``."""
    return [given.result(f"b{block}r{position}", **changes) for position in (0, 1)]


def test_the_job_book_is_what_the_tuner_asks_for(store: Store, campaign_id: int) -> None:
    book: ports.JobBook = store.job_book(campaign_id)  # mypy compares the signatures
    assert (list(book.open_jobs()), book.node_hours()) == ([], 0.0)


def test_a_job_comes_back_as_it_was_put_last(store: Store, campaign_id: int) -> None:
    book = store.job_book(campaign_id)
    prepared = given.job()
    running = replace(
        prepared,
        stage=JobStage.SUBMITTED,
        number="4711",
        word="RUNNING",
        reason="None",
        nodes="n[1-2]",
        started_at=1_700_000_100.5,
        node_hours=0.1 + 0.2,
        detail="moved\0 by \udcff an admin",
    )
    for job in (prepared, prepared, running):
        book.put_job(job)
    assert book.open_jobs() == [replace(running, detail="moved\ufffd by ? an admin")]
    over = replace(running, stage=JobStage.OVER, ended_at=1_700_000_200.0, detail="")
    book.put_job(over)
    assert (book.open_jobs(), book.all_jobs()) == ([], [over])


def test_open_jobs_are_this_campaigns_in_the_order_they_were_prepared(
    store: Store, campaign_id: int
) -> None:
    other = store.open_campaign(given.campaign("other")).id
    trace = given.job("trace", kind=JobKind.TRACE, block=None, prepared_at=5.0)
    later, over = given.job("later", prepared_at=9.0), given.job("over", stage=JobStage.OVER)
    for job in (later, over, trace):
        store.job_book(campaign_id).put_job(job)
    store.job_book(other).put_job(given.job("another"))
    assert store.job_book(campaign_id).open_jobs() == [trace, later]
    assert store.job_book(campaign_id).all_jobs() == [trace, later, over]


def test_a_job_never_goes_back(store: Store, campaign_id: int) -> None:
    book = store.job_book(campaign_id)
    submitted = given.job(stage=JobStage.SUBMITTED, number="7")
    book.put_job(submitted)
    with pytest.raises(DatabaseFault, match="is stored as submitted and can't be prepared again"):
        book.put_job(given.job())
    assert book.open_jobs() == [submitted]
    over = replace(submitted, stage=JobStage.OVER)
    book.put_job(over)
    with pytest.raises(DatabaseFault, match="is stored as over and can't be submitted again"):
        book.put_job(submitted)
    book.put_job(replace(over, node_hours=2.0))
    assert [job.node_hours for job in book.all_jobs()] == [2.0]


def test_a_key_belongs_to_one_campaign(store: Store, campaign_id: int) -> None:
    other = store.open_campaign(given.campaign("other")).id
    store.job_book(campaign_id).put_job(given.job())
    with pytest.raises(DatabaseFault, match="job shm-0004 belongs to another campaign"):
        store.job_book(other).put_job(given.job(number="9"))
    assert store.job_book(campaign_id).open_jobs() == [given.job()]
    with pytest.raises(DatabaseFault):
        store.job_book(other + 1).put_job(given.job("of no campaign"))


def test_node_hours_are_those_of_all_jobs_of_the_campaign(store: Store, campaign_id: int) -> None:
    book = store.job_book(campaign_id)
    book.put_job(given.job("over", stage=JobStage.OVER, node_hours=1.25))
    book.put_job(given.job("running", stage=JobStage.SUBMITTED, node_hours=0.5))
    book.put_job(given.job("waiting"))
    other = store.open_campaign(given.campaign("other")).id
    store.job_book(other).put_job(given.job("another", node_hours=99.0))
    assert book.node_hours() == 1.75


def fill(store: Store, campaign_id: int) -> None:
    """Many jobs that are over, one that waits and one that runs."""
    rows = [(f"over-{number}", "over", 0.25) for number in range(MANY)]
    rows += [("waiting", "prepared", 0.0), ("running", "submitted", 0.5)]
    with store.database.write() as connection:
        connection.execute(
            insert(Job),
            [
                {**_OTHERS, "campaign_id": campaign_id, "key": key, "stage": stage,
                 "prepared_at": float(number), "node_hours": hours}
                for number, (key, stage, hours) in enumerate(rows)
            ],
        )  # fmt: skip
        connection.exec_driver_sql("ANALYZE jobs")


@contextmanager
def statements(store: Store) -> Iterator[list[tuple[str, Any]]]:
    """What is asked of the table of jobs meanwhile, with its values."""
    asked: list[tuple[str, Any]] = []

    def keep(_connection: Any, _cursor: Any, statement: str, values: Any, *_more: Any) -> None:
        if "FROM jobs" in statement:
            asked.append((statement, values))

    event.listen(store.database.engine, "before_cursor_execute", keep)
    yield asked
    event.remove(store.database.engine, "before_cursor_execute", keep)


def plan(store: Store, statement: str, values: Any) -> str:
    """How the database goes about it."""
    is_sqlite = store.database.engine.dialect.name == "sqlite"
    explain = "EXPLAIN QUERY PLAN" if is_sqlite else "EXPLAIN"
    with store.database.read() as connection:
        rows = connection.exec_driver_sql(f"{explain} {statement}", values)
        return "\n".join(str(row) for row in rows)


def test_jobs_that_are_over_are_not_read(store: Store, campaign_id: int) -> None:
    fill(store, campaign_id)
    book = store.job_book(campaign_id)
    with statements(store) as asked:
        assert [job.key for job in book.open_jobs()] == ["waiting", "running"]
        assert book.node_hours() == MANY * 0.25 + 0.5
    open_plan, hours_plan = (plan(store, *statement) for statement in asked)
    assert "ix_jobs_open" in open_plan
    if store.database.engine.dialect.name == "sqlite":  # the other one goes by its statistics
        assert "SEARCH jobs USING COVERING INDEX ix_jobs_campaign " in hours_plan


def test_the_runs_of_a_block_are_registered_together_or_not_at_all(
    store: Store, campaign_id: int
) -> None:
    store.start_runs(campaign_id, requests(), "s1")
    store.start_runs(campaign_id, requests(), "s1")
    lost = given.request("lost", trial=9, block=5)
    with pytest.raises(DatabaseFault, match="unknown trial 9"):
        store.start_runs(campaign_id, [*requests(5), lost], "s1")
    store.start_runs(campaign_id, requests(6), "s1")
    assert store.open_runs(campaign_id) == requests() + requests(6)
    assert store.open_runs(campaign_id, block=6) == requests(6)
    assert store.open_runs(campaign_id, block=5) == []


def test_results_of_several_runs_are_stored_once(store: Store, campaign_id: int) -> None:
    store.start_runs(campaign_id, requests(), "s1")
    assert store.finish_run(campaign_id, results()[0], "allreduce")
    assert store.finish_runs(campaign_id, results(), "allreduce") == [False, True]
    assert store.finish_runs(campaign_id, results(), "allreduce") == [False, False]
    assert [run.run_id for run in store.runs(campaign_id)] == ["b4r0", "b4r1"]
    unknown = given.result("unknown")
    store.start_runs(campaign_id, requests(5), "s1")
    with pytest.raises(DatabaseFault, match="unknown was never registered"):
        store.finish_runs(campaign_id, [*results(5), unknown], "allreduce")
    assert store.open_runs(campaign_id) == requests(5)


def test_a_job_is_settled_with_its_runs(store: Store, campaign_id: int) -> None:
    book = store.job_book(campaign_id)
    store.start_runs(campaign_id, requests(), "s1")
    job = given.job(stage=JobStage.SUBMITTED, number="7", node_hours=0.25)
    book.put_job(job)
    assert store.settle_job(campaign_id, job, results(), "allreduce") == [True, True]
    assert (book.open_jobs(), store.open_runs(campaign_id)) == ([], [])
    assert book.all_jobs() == [replace(job, stage=JobStage.OVER)]
    again = replace(job, node_hours=0.5)
    assert store.settle_job(campaign_id, again, results(wall_s=9.0), "allreduce") == [False, False]
    assert book.node_hours() == 0.5
    assert {run.wall_s for run in store.runs(campaign_id)} == {0.75}


def test_a_job_that_made_nothing_is_settled_with_what_was_lost(
    store: Store, campaign_id: int
) -> None:
    store.start_runs(campaign_id, requests(), "s1")
    never = results(outcome=Outcome.NEVER_STARTED, measurements=(), header=None, footer=None)
    store.settle_job(campaign_id, given.job(), never, "allreduce")
    runs = list(store.runs(campaign_id))
    assert {run.outcome for run in runs} == {Outcome.NEVER_STARTED}
    assert all(run.outcome.is_lost and not run.measurements for run in runs)


def test_a_refused_result_leaves_the_job_open(store: Store, campaign_id: int) -> None:
    book = store.job_book(campaign_id)
    store.start_runs(campaign_id, requests(), "s1")
    book.put_job(given.job())
    with pytest.raises(DatabaseFault, match="unknown was never registered"):
        store.settle_job(
            campaign_id, given.job(), [*results(), given.result("unknown")], "allreduce"
        )
    assert book.open_jobs() == [given.job()]
    assert store.open_runs(campaign_id) == requests()
    assert list(store.runs(campaign_id)) == []


DYING = """
import os, sys
sys.path[:0] = sys.argv[4:]
import test_db_jobs
from commtune.db import writing
from commtune.db.engine import open_database
from commtune.db.store import Store
import database_values as given

url, campaign_id, survived = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
finish, finished = writing.finish_run, []

def dying(*arguments):
    if len(finished) == survived:
        os.kill(os.getpid(), 9)
    finished.append(1)
    return finish(*arguments)

writing.finish_run = dying
store = Store(open_database(url))
store.settle_job(campaign_id, given.job(), test_db_jobs.results(), "allreduce")
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("survived", [0, 1, 2])
def test_a_controller_that_dies_while_it_settles_leaves_all_or_nothing(
    store: Store, url: str, campaign_id: int, survived: int
) -> None:
    store.start_runs(campaign_id, requests(), "s1")
    store.job_book(campaign_id).put_job(given.job())
    here = Path(__file__).parent
    arguments = [url, str(campaign_id), str(survived), str(here), str(here.parent)]
    child = subprocess.run([sys.executable, "-c", DYING, *arguments], capture_output=True)
    assert child.returncode == -9, child.stderr
    is_settled = survived == len(requests())
    assert bool(store.job_book(campaign_id).open_jobs()) != is_settled
    assert store.open_runs(campaign_id) == ([] if is_settled else requests())
    assert len(list(store.runs(campaign_id))) == (2 if is_settled else 0)


@pytest.mark.parametrize(
    ("nodes", "distance"), [((), ""), (("n1",), "same-node"), (("n1", "n12"), "other-groups")]
)
def test_a_run_says_where_it_was_made(
    store: Store, campaign_id: int, nodes: tuple[str, ...], distance: str
) -> None:
    store.start_run(campaign_id, given.request(), "s1")
    store.finish_run(campaign_id, given.result(nodes=nodes, distance=distance), "allreduce")
    (run,) = store.runs(campaign_id)
    assert (run.nodes, run.distance) == (nodes, distance)
    with store.database.read() as connection:
        row = connection.execute(text("SELECT nodes, distance FROM runs")).one()
    assert tuple(row) == (",".join(nodes) or None, distance or None)
