"""How fast the best configuration is found in a large database, and all of it is exported.

Fills an SQLite file with campaigns, runs, measurements and profiles of a realistic shape, then
times ``best`` in process and, against a bare start of Python, from the shell, and ``results`` in
every format that can be written here. ::

    python benchmarks/query_speed.py --measurements 10000000
    python benchmarks/query_speed.py --command "commtune best --op allreduce --bytes 1MiB"

The command finds the database in COMMTUNE_DB. The rows are made up; only the times are results.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path

from commtune.db.codec import pack_samples
from commtune.db.connection.engine import open_database
from commtune.db.connection.reader import keep_open, open_for_reading
from commtune.db.queries import best
from commtune.db.records import CampaignRecord, StackRecord, SystemRecord
from commtune.db.storage.store import Store
from commtune.model import (
    Configuration,
    Interval,
    Operation,
    PointEvidence,
    Profile,
    Timing,
    Verdict,
    Workload,
)
from commtune.spaces.loading import load_space

SIZES = [1 << power for power in range(3, 23)]
RUNS_A_CAMPAIGN = 500
SAMPLES = pack_samples([1e-6 + index * 1e-9 for index in range(100)])
WORKLOAD = Workload(Operation.ALLREDUCE, tuple(SIZES)).plain()
SPACE = load_space("mpich-host-allreduce")
#: As long as those that campaigns store.
WHAT = {"workload": WORKLOAD, "timing": asdict(Timing()), "guards": {}}
SEARCHED = {"name": SPACE.name, "pinned": {}, "variables": [*SPACE.by_name],
            "parameters": {one.name: [*one.values] for one in SPACE.parameters}}  # fmt: skip
OPERATIONS = ("allreduce", "alltoall", "allgather", "broadcast")

IN_PROCESS = (
    "import sys; from commtune.app.profiles.best import best; "
    "row = next(best('allreduce', 1 << 20, {}, db=sys.argv[1])); "
    "print(row.name, row.configuration)"
)

EXPORT = """
import resource, sys, time
from pathlib import Path
from commtune.app.campaigns.results import write_results
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before, began, cpu = peak(), time.perf_counter(), time.process_time()
rows = write_results((), None, Path(sys.argv[2]), sys.argv[1])
print(rows, time.perf_counter() - began, time.process_time() - cpu, before, peak())
"""


def main() -> None:
    """Fills, asks, prints."""
    arguments = _arguments()
    folder = Path(arguments.folder or tempfile.mkdtemp(prefix="commtune-query-"))
    path = folder / "query-speed.db"
    url = f"sqlite:///{path}"
    began = time.perf_counter()
    if path.exists():
        print(f"using {path} as it is")
    else:
        fill(url, path, arguments.measurements)
        print(f"filled {path} in {time.perf_counter() - began:.0f} s")
    print(f"{_count(path):,} measurements, {path.stat().st_size / 2**30:.2f} GiB")
    in_process(url, arguments.repeat * 10)
    from_shell(url, arguments.command, arguments.repeat)
    exported(url, folder)
    if not (arguments.keep or arguments.folder):
        shutil.rmtree(folder)


def fill(url: str, path: Path, measurements: int, runs: int = RUNS_A_CAMPAIGN) -> None:
    """Makes campaigns of so many runs until there are so many measurements."""
    database = open_database(url)
    store = Store(database)
    campaigns = max(1, measurements // (runs * len(SIZES)))
    for number in range(campaigns):
        campaign_id = store.open_campaign(_campaign(number)).id
        store.add_trial(campaign_id, 1, _configuration(number), "sampler")
        store.save_profiles(campaign_id, list(_profiles(number)))
    database.close()
    with closing(sqlite3.connect(path)) as connection:
        for campaign_id, trial_id, configuration_id in connection.execute(
            "SELECT campaign_id, id, configuration_id FROM trials"
        ).fetchall():
            _bulk(connection, campaign_id, trial_id, configuration_id, runs)


def in_process(url: str, repeat: int) -> None:
    """Prints the time of one question: opening the database for it, and with it kept open."""
    for op, size in (("allreduce", 1 << 20), ("broadcast", 64)):
        for limit in (1, 10):
            ask = partial(_ask, url, op, size, limit)
            with keep_open(url):
                kept = _times(ask, repeat)
            opened = _times(ask, repeat)
            print(
                f"best in process, {op} {size} B, at most {limit} answers: median "
                f"{_ms(opened)} ms, {_ms(kept)} ms with the database kept open"
            )


def from_shell(url: str, command: str, repeat: int) -> None:
    """Prints the time of a command, and how much of it is more than a bare Python start."""
    environment = {**os.environ, "COMMTUNE_DB": url}
    words = shlex.split(command) if command else [sys.executable, "-c", IN_PROCESS, url]

    def call(arguments: Sequence[str]) -> None:
        subprocess.run(arguments, env=environment, check=True, stdout=subprocess.DEVNULL)

    bare, asked = [], []
    for _ in range(repeat):  # in turns: a busy moment falls on both
        bare += _times(lambda: call([sys.executable, "-c", "pass"]), 1)
        asked += _times(lambda: call(words), 1)
    more = statistics.median(asked) - statistics.median(bare)
    print(f"bare Python start: median {_ms(bare)} ms")
    print(f"{command or 'best, through the API, in a new Python'}: median {_ms(asked)} ms")
    print(f"more than bare Python: {more * 1e3:.0f} ms")


def exported(url: str, folder: Path) -> None:
    """Prints how fast ``results`` writes all measurements, and the memory that it takes."""
    for format in ("csv", "jsonl", "parquet"):
        file = folder / f"results.{format}"
        said = subprocess.run(
            [sys.executable, "-c", EXPORT, url, str(file)], capture_output=True, text=True
        )
        if said.returncode:
            print(f"results, {format}: {said.stderr.strip().splitlines()[-1]}")
            continue
        rows, wall_s, cpu_s, before, peak = map(float, said.stdout.split())
        size = file.stat().st_size / 2**20
        print(
            f"results, {format}: {rows:,.0f} rows in {wall_s:.1f} s, {cpu_s:.1f} s of them on a"
            f" core ({rows / cpu_s:,.0f} rows/s), {size:,.0f} MiB; peak memory {peak:.0f} MiB,"
            f" {before:.0f} MiB of it before the first row"
        )
        file.unlink()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--measurements", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=30, help="calls to take the median of")
    parser.add_argument("--command", default="", help="what to time from the shell")
    parser.add_argument("--folder", help="where to make the database, or find an earlier one")
    parser.add_argument("--keep", action="store_true", help="leave the database there")
    return parser.parse_args()


def _campaign(number: int) -> CampaignRecord:
    system = SystemRecord(f"system-{number % 7}", f"machine-{number % 7}", {"cores": 64})
    return CampaignRecord(
        name=f"campaign-{number}",
        what={"number": number, **WHAT},
        settings={},
        space=SEARCHED,
        space_key="0",
        seed=number,
        system=system,
        stack=StackRecord(f"stack-{number % 11}", f"MPICH 4.{number % 11}"),
    )


def _configuration(number: int) -> Configuration:
    return Configuration({"MPIR_CVAR_A": str(number), "MPIR_CVAR_B": str(number % 5)})


def _profiles(number: int) -> Iterator[Profile]:
    """Four ranges for one operation, five sizes each, at two speeds."""
    operation = OPERATIONS[number % len(OPERATIONS)]
    for start in range(0, len(SIZES), 5):
        sizes = SIZES[start : start + 5]
        yield Profile(
            name=f"{operation}-{sizes[0]}",
            operation=operation,
            backend="mpi-host",
            ranks=2 << number % 3,
            nodes=1,
            bytes_low=sizes[0],
            bytes_high=sizes[-1] * 2 - 1,
            configuration=_configuration(number),
            verdict=Verdict.FASTER,
            points=tuple(
                PointEvidence(
                    operation,
                    size,
                    speed,
                    2e-5,
                    1.5e-5,
                    Interval(1.33, 1.2, 1.4, 7),
                    Verdict.FASTER,
                )
                for size in sizes
                for speed in ("fast", "slow")
            ),
        )


def _bulk(
    connection: sqlite3.Connection,
    campaign_id: int,
    trial_id: int,
    configuration_id: int,
    runs: int,
) -> None:
    """Writes a campaign's runs past the store, which takes a transaction for each."""
    first = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM runs").fetchone()[0]
    ids, workload = range(first, first + runs), json.dumps(WORKLOAD)
    connection.executemany(
        "INSERT INTO runs (id, run_id, campaign_id, trial_id, configuration_id, phase, block,"
        " position, session, operation, workload, timing, state, outcome, started_at, wall_s,"
        " detail, output_tail, oversubscribed) VALUES (?, ?, ?, ?, ?, 'search', 0, 0, 's',"
        " 'allreduce', ?, '{}', 'stored', 'ok', 0.0, 0.5, '', '', 0)",
        [
            (number, f"run-{number}", campaign_id, trial_id, configuration_id, workload)
            for number in ids
        ],
    )
    connection.executemany(
        "INSERT INTO measurements (run_id, place, operation, bytes, median_s, min_s, mean_s,"
        " p95_s, max_s, algbw, busbw, batch, wrong, n_samples, samples) VALUES"
        " (?, ?, 'allreduce', ?, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1e9, 1e9, 1, 0, 100, ?)",
        [(run, place, size, SAMPLES) for run in ids for place, size in enumerate(SIZES)],
    )
    connection.commit()


def _count(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT count(*) FROM measurements").fetchone()[0])


def _ask(url: str, op: str, size: int, limit: int) -> object:
    with open_for_reading(url) as rows:
        found = best.find_candidates(rows, op, size, {}, limit)
        return best.read_answers(rows, [row["id"] for row in found], size)


def _times(call: Callable[[], object], repeat: int) -> list[float]:
    taken = []
    for _ in range(repeat):
        began = time.perf_counter()
        call()
        taken.append(time.perf_counter() - began)
    return taken


def _ms(times: Sequence[float]) -> str:
    return f"{statistics.median(times) * 1e3:.2f}"


if __name__ == "__main__":
    main()
