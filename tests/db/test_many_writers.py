"""Sixteen controllers that write one database, some of which are killed: every value is there."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import database_values as given

from commtune.db.storage.store import Store
from commtune.model import RunResult

_WRITERS, _RUNS, _KILLS = 16, 12, 8

#: Stores the runs of one campaign that are not stored yet; the last one when it is told to.
_WRITER = """
import sys
sys.path[:0] = sys.argv[3:]
import database_values as given
from test_many_writers import _RUNS, result_of
from commtune.db.connection.busy_retry import BusyRetry
from commtune.db.connection.engine import open_database
from commtune.db.connection.location import wait_s
from commtune.db.storage.store import Store

url, writer = sys.argv[1], int(sys.argv[2])
store = Store(open_database(url, BusyRetry(wait_s())))
number = store.begin(given.campaign(f"campaign{writer}"))[0].id
store.add_trial(number, 1, given.TUNED, "user")
print("begun", flush=True)
stored = {run.run_id for run in store.runs(number)}
for place in range(_RUNS):
    result = result_of(writer, place)
    if place == _RUNS - 1:
        sys.stdin.readline()
    if result.run_id not in stored:
        store.start_runs(number, [given.request(result.run_id, position=place)], "session")
        store.finish_run(number, result, "allreduce")
store.finish_campaign(number)
"""


def result_of(writer: int, place: int) -> RunResult:
    """A run whose values no other has."""
    median_s = (1 + writer * _RUNS + place) * 1e-6
    sizes = (given.measurement(size, median_s + size * 1e-9) for size in given.SIZES)
    return given.result(f"w{writer}-{place}", wall_s=median_s * 1e3, measurements=tuple(sizes))


def _start(url: str, writer: int) -> subprocess.Popen[str]:
    helpers = [str(Path(given.__file__).parent), str(Path(__file__).parent)]
    words = [sys.executable, "-c", _WRITER, url, str(writer), *helpers]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _kill_some(url: str, writers: list[subprocess.Popen[str]], rng: random.Random) -> None:
    """Kills writers, most of them while they write, and starts others in their place."""
    for _ in range(_KILLS):
        place = rng.randrange(_WRITERS)
        writer = writers[place]
        if rng.random() < 0.8:
            assert writer.stdout
            assert writer.stdout.readline() == "begun\n"
        time.sleep(rng.uniform(0, 0.1))
        writer.kill()
        writer.communicate()
        assert writer.returncode == -signal.SIGKILL
        writers[place] = _start(url, place)


def _end(writers: list[subprocess.Popen[str]]) -> None:
    for writer in writers:
        writer.kill()
        writer.communicate()


def test_all_values_of_many_writers_are_stored_once(url: str, store: Store) -> None:
    with ExitStack() as at_last:
        writers = [_start(url, place) for place in range(_WRITERS)]
        at_last.callback(_end, writers)
        _kill_some(url, writers, random.Random(3))
        for writer in writers:
            writer.communicate("\n")
            assert writer.returncode == 0
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
