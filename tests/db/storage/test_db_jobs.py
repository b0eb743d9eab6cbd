"""Jobs of a scheduler and the runs that they make, over every kind of database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import database_values as given
import pytest
from sqlalchemy import event, insert, text

from commtune.db.storage.store import Store
from commtune.db.tables import JOBS
from commtune.errors import DatabaseFault
from commtune.model import DEFAULT, JobKind, JobStage

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
            insert(JOBS),
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


@pytest.mark.parametrize(
    ("nodes", "distance"), [((), ""), (("n1",), "same-node"), (("n1", "n12"), "other-groups")]
)
def test_a_run_says_where_it_was_made(
    store: Store, campaign_id: int, nodes: tuple[str, ...], distance: str
) -> None:
    given.add_run(store, campaign_id, nodes=nodes, distance=distance)
    (run,) = store.runs(campaign_id)
    assert (run.nodes, run.distance) == (nodes, distance)
    with store.database.read() as connection:
        row = connection.execute(text("SELECT nodes, distance FROM runs")).one()
    assert tuple(row) == (",".join(nodes) or None, distance or None)
