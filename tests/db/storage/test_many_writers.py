"""Sixteen controllers that write one database, some of which are killed: every value is there."""

from __future__ import annotations

import random
import signal
import time
from contextlib import ExitStack
from multiprocessing.connection import Connection

import database_values as given
import pytest
from forked_commands import fork_server

from commtune.db.connection.busy_retry import BusyRetry
from commtune.db.connection.engine import open_database
from commtune.db.connection.location import wait_s
from commtune.db.storage.store import Store
from commtune.model import RunResult

_WRITERS, _RUNS, _KILLS = 16, 12, 8


def result_of(writer: int, place: int) -> RunResult:
    """A run whose values no other has."""
    median_s = (1 + writer * _RUNS + place) * 1e-6
    sizes = (given.measurement(size, median_s + size * 1e-9) for size in given.SIZES)
    return given.result(f"w{writer}-{place}", wall_s=median_s * 1e3, measurements=tuple(sizes))


class _Writer:
    """A process that stores the runs of one campaign that are not stored yet."""

    def __init__(self, url: str, place: int) -> None:
        self.pipe, its_end = fork_server().Pipe()
        self.process = fork_server().Process(target=_write, args=(url, place, its_end))
        self.process.start()
        its_end.close()

    def end(self) -> None:
        """Kills it."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _write(url: str, writer: int, pipe: Connection) -> None:
    """Stores the runs; the last one when it is told to."""
    store = Store(open_database(url, BusyRetry(wait_s())))
    number = store.begin(given.campaign(f"campaign{writer}"))[0].id
    store.add_trial(number, 1, given.TUNED, "user")
    pipe.send("begun")
    stored = {run.run_id for run in store.runs(number)}
    for place in range(_RUNS):
        result = result_of(writer, place)
        if place == _RUNS - 1:
            pipe.recv()
        if result.run_id not in stored:
            store.start_runs(number, [given.request(result.run_id, position=place)], "session")
            store.finish_run(number, result, "allreduce")
    store.finish_campaign(number)


def _kill_some(url: str, writers: list[_Writer], rng: random.Random) -> None:
    """Kills writers, most of them while they write, and starts others in their place."""
    for _ in range(_KILLS):
        place = rng.randrange(_WRITERS)
        if rng.random() < 0.8:
            assert writers[place].pipe.recv() == "begun"
        time.sleep(rng.uniform(0, 0.1))
        writers[place].end()
        assert writers[place].process.exitcode == -signal.SIGKILL
        writers[place] = _Writer(url, place)


def _end(writers: list[_Writer]) -> None:
    for writer in writers:
        writer.end()


@pytest.mark.slow
def test_all_values_of_many_writers_are_stored_once(url: str, store: Store) -> None:
    with ExitStack() as at_last:
        writers = [_Writer(url, place) for place in range(_WRITERS)]
        at_last.callback(_end, writers)
        _kill_some(url, writers, random.Random(3))
        for writer in writers:
            writer.pipe.send("the last one")
            writer.process.join()
            assert writer.process.exitcode == 0
    assert given.count(store, "runs") == _WRITERS * _RUNS
    assert given.count(store, "measurements") == _WRITERS * _RUNS * len(given.SIZES)
    assert given.count(store, "locks") == 0
    summaries = given.summaries_of(store)
    assert {one.name for one in summaries} == {f"campaign{place}" for place in range(_WRITERS)}
    for summary in summaries:
        _compare(store, summary.id, int(summary.name.removeprefix("campaign")))


def _compare(store: Store, campaign_id: int, writer: int) -> None:
    for place, run in enumerate(store.runs(campaign_id)):
        wanted = result_of(writer, place)
        assert (run.run_id, run.outcome, run.wall_s) == (wanted.run_id, "ok", wanted.wall_s)
        given.check_measurements(store, run.run_id, wanted.measurements)
