"""Campaigns under random faults, for hours: what they leave of memory, handles and files.

    unshare -m sh -c 'mount -t tmpfs tmpfs /dev/shm; exec python benchmarks/soak.py --minutes 480'

Each round makes simulated campaigns in compressed time, whose controllers die at random calls of
the store, in this process; and a real one under MPICH with ``commtune tune``, of a program that
meets a full disk, a limit on processes, missing programs and scripts, while the controller is
killed and its database is held by another program. The faults are those that the tests inject.
Exit code 1: a run was lost or stored twice, or something was left. The first rounds warm up; of
fewer, what is left can't be told. A round that has begun is ended, which can take a minute. The
namespace is for a /dev/shm that nobody else uses.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import signal
import sqlite3
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support/runs"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support/slurm"))

from command_line import CommandLine, wait_until
from killed_campaigns import assert_sound, campaign
from machine_faults import MACHINE_FAULTS
from step_program import MODES_SPACE, STEP_CAMPAIGN, STEP_PROGRAM

from commtune.formatting import format_count

_WARM_UP = 3
#: Bytes that this process may grow after it: what the allocator doesn't give back.
_MOST_GROWTH = 8 << 20
_FAULTY = "if [ -e fault.sh ]; then . ./fault.sh; exit $?; fi\n"


def count(folder: str) -> int:
    """Entries of a folder."""
    return len(list(Path(folder).iterdir()))


def measure_left() -> dict[str, float]:
    """What this process and the machine hold now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "memory, MiB": pages * os.sysconf("SC_PAGESIZE") / 2**20,
        "handles": count("/proc/self/fd"),
        "threads": threading.active_count(),
        "children": len(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()),
        "/dev/shm": count("/dev/shm"),
        "temporary files": count(tempfile.gettempdir()),
    }


def simulate(rng: random.Random) -> float:
    """Simulates a campaign whose controllers die at random; returns the seconds of its runs."""
    with tempfile.TemporaryDirectory() as folder:
        kills = [rng.randrange(3, 60) for _ in range(rng.randrange(8))]
        ended = campaign(Path(folder), kills)
        assert_sound(ended, kills=len(kills))
    return sum(run.wall_s for run in ended.runs)


def hold_database(line: CommandLine, rng: random.Random) -> None:
    """Another program writes for longer than the controller waits."""
    with closing(sqlite3.connect(line.database, isolation_level=None, timeout=30)) as other:
        other.execute("BEGIN IMMEDIATE")
        time.sleep(rng.uniform(0, 3))


def shake(line: CommandLine, rng: random.Random, counts: dict[str, int]) -> None:
    """Starts the controller, does something to it, and waits for its end or ends it."""
    before = len(line.records("step"))
    with line.start("tune", "campaign.yaml") as child:
        wanted = before + rng.randrange(1, 6)
        wait_until(lambda: len(line.records("step")) >= wanted, child)
        fault = rng.choice(["kill", "interrupt", "database held", *MACHINE_FAULTS])
        counts[fault] = counts.get(fault, 0) + 1
        if fault == "database held":
            hold_database(line, rng)
        elif fault in MACHINE_FAULTS:
            line.write(MACHINE_FAULTS[fault][0], "fault.sh")
            time.sleep(rng.uniform(0, 4))
            (line.folder / "fault.sh").unlink()
        child.send_signal(signal.SIGINT if fault == "interrupt" else signal.SIGKILL)
        child.communicate()


def check(line: CommandLine) -> None:
    """Goes on to the campaign's end: every run is stored once, and nothing is left."""
    said = line("tune", "campaign.yaml")
    assert said.code == 0, said.err
    runs = line.query("SELECT run_id, state, outcome FROM runs")
    assert len({run for run, *_ in runs}) == len(runs)
    assert {state for _, state, _ in runs} == {"stored"}
    blamed = "SELECT count(*) FROM runs JOIN configurations c ON c.id = configuration_id WHERE "
    blamed += "outcome IN ('failed', 'crashed') AND environment NOT LIKE '%broken%'"
    assert line.query(blamed) == [(0,)], line.query("SELECT outcome, detail FROM runs")
    ended = {f.stem for f in line.records("step") if "#commtune: ended 0" in f.read_text()}
    assert {run for run, _, outcome in runs if outcome == "ok"} <= ended
    assert line.query("SELECT * FROM locks") == []
    assert line.left_over() == {}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=480.0)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    rng, end = random.Random(asked.seed), time.monotonic() + 60 * asked.minutes
    counts: dict[str, int] = {}
    first: dict[str, float] = {}
    rounds, simulated_s = 0, 0.0
    while time.monotonic() < end or not rounds:
        simulated_s += sum(simulate(rng) for _ in range(5))
        with tempfile.TemporaryDirectory() as folder:
            line = CommandLine(Path(folder), {"COMMTUNE_DB_WAIT": "1"})
            line.write(_FAULTY + STEP_PROGRAM, "step.sh")
            line.write(MODES_SPACE, "space.yaml")
            line.write(STEP_CAMPAIGN)
            for _ in range(rng.randrange(1, 6)):
                shake(line, rng, counts)
            check(line)
        rounds += 1
        if rounds == _WARM_UP:
            first = measure_left()
    done = f"{format_count(rounds, 'round')}, {5 * rounds} simulated campaigns"
    done += f" ({simulated_s / 3600:.2f} h in compressed time)"
    print(f"{done}; faults: {counts}")
    if rounds <= _WARM_UP:
        print(f"what is left can be told of more than {_WARM_UP} rounds only")
        return 0
    last = measure_left()
    for name, value in last.items():
        print(f"{name}: {first[name]:.0f} after {_WARM_UP} rounds, {value:.0f} at the end")
    grown = last.pop("memory, MiB") - first.pop("memory, MiB")
    return int(grown > _MOST_GROWTH / 2**20 or last != first)


if __name__ == "__main__":
    sys.exit(main())
