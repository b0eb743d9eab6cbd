"""Transactions and statements of a run: each is a message to a server, and waits for an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from held_campaigns import hold
from made_up_spaces import made_up_space
from sqlalchemy import event
from synthetic import SyntheticBenchmark, VirtualClock

from commtune.campaign.plan import Plan
from commtune.db.connection.engine import Database
from commtune.db.storage.store import Store
from commtune.model import DEFAULT, Configuration, Operation, Phase, Workload
from commtune.tuner.execution.runner import Runner

SPACE = made_up_space("""
  - {name: V, kind: integer, values: [1, 2], source: made up}
""")
PLAN = Plan("counted", SPACE, Workload(Operation.ALLREDUCE, (8, 1024)))
ONE = Configuration({"V": "1"})


@pytest.fixture
def runner(store: Store) -> Runner:
    """One that holds its campaign, and has made a run of the default."""
    benchmark = SyntheticBenchmark(lambda *_: 1e-6, VirtualClock())
    runner = Runner(PLAN, hold(store, PLAN), benchmark, store, clock=benchmark.clock)
    runner.new_trial(DEFAULT, "baseline")
    make_run(runner, DEFAULT, Phase.SEARCH, runner.new_block())
    return runner


def make_run(runner: Runner, configuration: Configuration, phase: Phase, block: int) -> None:
    """Makes a run, and stores it."""
    runner.submit([configuration], phase, block)
    runner.collect()


@contextmanager
def counted(database: Database) -> Iterator[Counter[str]]:
    """Counts transactions and the statements in them; SQLite's BEGIN is none of these."""
    seen: Counter[str] = Counter()

    def count_begin(_connection: object) -> None:
        seen["transactions"] += 1

    def count_statement(_connection: object, _cursor: object, sql: str, *_: object) -> None:
        seen["statements"] += not sql.startswith("BEGIN")

    told: dict[str, Callable[..., None]] = {
        "begin": count_begin,
        "before_cursor_execute": count_statement,
    }
    for name, count in told.items():
        event.listen(database.engine, name, count)
    yield seen
    for name, count in told.items():
        event.remove(database.engine, name, count)


def test_a_run_of_the_search(store: Store, runner: Runner) -> None:
    with counted(store.database) as seen:
        runner.new_trial(ONE, "sampler")
        make_run(runner, ONE, Phase.SEARCH, runner.new_block())
    # The trial with its configuration; the run; then the lock, the run and its measurements.
    assert seen == {"transactions": 3, "statements": 2 + 2 + 4}


def test_a_block_of_the_confirmation(store: Store, runner: Runner) -> None:
    runner.new_trial(ONE, "sampler")
    with counted(store.database) as seen:
        block = runner.plan_block([ONE, DEFAULT], Phase.CONFIRM).number
    assert seen == {"transactions": 1, "statements": 1}
    with counted(store.database) as seen:
        make_run(runner, ONE, Phase.CONFIRM, block)
    assert seen == {"transactions": 2, "statements": 2 + 4}
