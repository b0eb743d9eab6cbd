"""How fast a large database answers, and how fast all of it is exported.

Fills an SQLite file, and a PostgreSQL database if one is named, with campaigns, runs, measurements
and profiles of a realistic shape. Then it times ``best``, ``status`` and ``plot`` in process and,
beside a bare start of Python, from the shell, and ``results`` in every format that can be written
here. ::

    python benchmarks/query_speed.py --measurements 10000000
    python benchmarks/query_speed.py --folder FOLDER --server postgresql://USER@HOST/EMPTY

The rows are made up; only the times are results. Times on a core are those of this program and the
commands that it starts, not of a server.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from sqlalchemy import text

from commtune.app.campaigns.stored import list_campaigns
from commtune.app.profiles.plotting import write_plot
from commtune.db.codec import pack_samples
from commtune.db.connection.engine import open_database
from commtune.db.connection.location import database_url, sqlite_path
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

#: What is asked from the shell.
COMMANDS = ("best --op allreduce --bytes 1MiB", "status", "plot campaign-1 -o {folder}/plot.svg")

#: Statements that databases share make the rows where they are stored: past the store, which takes
#: a transaction for each run.
_RUNS = """
INSERT INTO runs (run_id, campaign_id, trial_id, configuration_id, phase, block, position, session,
  operation, workload, timing, state, outcome, started_at, wall_s, detail, output_tail,
  oversubscribed)
WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :runs)
SELECT 'run-' || campaign_id || '-' || n, campaign_id, id, configuration_id, 'search', 0, 0, 's',
  'allreduce', :workload, '{}', 'stored', 'ok', 0.0, 0.5, '', '', FALSE
FROM trials CROSS JOIN numbers WHERE campaign_id = :campaign
"""
_MEASUREMENTS = """
INSERT INTO measurements (run_id, place, operation, bytes, median_s, min_s, mean_s, p95_s, max_s,
  algbw, busbw, batch, wrong, n_samples, samples)
WITH RECURSIVE places(place) AS (
  SELECT 0 UNION ALL SELECT place + 1 FROM places WHERE place < :last)
SELECT id, place, 'allreduce', CAST(:least AS BIGINT) << place, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6,
  1e9, 1e9, 1, 0, 100, :samples
FROM runs CROSS JOIN places WHERE campaign_id = :campaign
"""

#: What no command that uses SQLAlchemy can go below.
ALONE = """
import sys
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool
with create_engine(sys.argv[1], poolclass=NullPool).connect() as connection:
    connection.execute(text("SELECT 1")).scalar()
"""

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
    file = f"sqlite:///{folder}/query-speed.db"
    for url in filter(None, (file, database_url(arguments.server) if arguments.server else "")):
        _prepare(url, arguments.measurements)
        in_process(url, folder, arguments.repeat * 10)
        from_shell(url, folder, arguments.repeat)
    exported(file, folder)
    if not (arguments.keep or arguments.folder):
        shutil.rmtree(folder)


def _prepare(url: str, measurements: int) -> None:
    """Fills a database that has no runs, and prints what it holds."""
    counted = "SELECT COUNT(*) AS found FROM measurements"
    began = time.perf_counter()
    open_database(url).close()
    with open_for_reading(url) as rows:
        found = rows(counted, {})[0]["found"]
    if not found:
        fill(url, measurements)
        print(f"filled in {time.perf_counter() - began:.0f} s")
        with open_for_reading(url) as rows:
            found = rows(counted, {})[0]["found"]
    path = sqlite_path(url)
    size = f", {path.stat().st_size / 2**30:.2f} GiB" if path else ""
    print(f"{url.partition(':')[0]}: {found:,} measurements{size}; "
          f"load of the machine: {os.getloadavg()[0]:.1f}")  # fmt: skip


def fill(url: str, measurements: int, runs: int = RUNS_A_CAMPAIGN) -> None:
    """Makes campaigns of so many runs until there are so many measurements."""
    database = open_database(url)
    store = Store(database)
    shared = {"runs": runs, "workload": json.dumps(WORKLOAD), "samples": SAMPLES}
    shared |= {"last": len(SIZES) - 1, "least": SIZES[0]}
    for number in range(max(1, measurements // (runs * len(SIZES)))):
        campaign_id = store.open_campaign(_campaign(number)).id
        store.add_trial(campaign_id, 1, _configuration(number), "sampler")
        store.save_profiles(campaign_id, list(_profiles(number)))
        with database.write() as connection:
            for statement in (_RUNS, _MEASUREMENTS):
                asked = text(statement)
                given = {name: shared.get(name, campaign_id) for name in asked.compile().params}
                connection.execute(asked, given)
    if database.engine.dialect.name == "postgresql":  # which else does so by itself, in a while
        with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as server:
            server.execute(text("VACUUM ANALYZE"))
    database.close()


def in_process(url: str, folder: Path, repeat: int) -> None:
    """Prints the time of one question: opening the database for it, and with it kept open."""
    for op, size in (("allreduce", 1 << 20), ("broadcast", 64)):
        for limit in (1, 10):
            ask = partial(_ask, url, op, size, limit)
            with keep_open(url):
                kept = _times(ask, repeat)
            print(
                f"best in process, {op} {size} B, at most {limit} answers: "
                f"{_describe(_times(ask, repeat))}; database kept open: {_describe(kept)}"
            )
    others: dict[str, Callable[[], object]] = {
        "status": lambda: list_campaigns(url),
        "plot": lambda: write_plot("campaign-1", folder / "plot.svg", url),
    }
    for name, call in others.items():
        call()  # imports, at the first time
        print(f"{name} in process: {_describe(_times(call, max(1, repeat // 30)))}")


def from_shell(url: str, folder: Path, repeat: int) -> None:
    """Prints the time of each command beside that of Python's start, and of SQLAlchemy alone."""
    environment = {**os.environ, "COMMTUNE_DB": url}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # each start would compile all modules anew

    def call(*arguments: str) -> None:
        words = [sys.executable, *arguments]
        subprocess.run(words, env=environment, check=True, stdout=subprocess.DEVNULL)

    others = {"Python alone": ("-c", "pass"), "SQLAlchemy alone": ("-c", ALONE, url)}
    for command in COMMANDS:
        words = ("-m", "commtune.cli", *shlex.split(command.format(folder=folder)))
        programs = {f"commtune {command}": words, **others}
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
        for _ in range(repeat):  # in turns: a busy moment falls on all
            for name, arguments in programs.items():
                times[name] += _times(partial(call, *arguments), 1)
        print("; ".join(f"{name}: {_describe(taken)}" for name, taken in times.items()))


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
    parser.add_argument("--server", help="URL of an empty PostgreSQL database, or a filled one")
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


def _ask(url: str, op: str, size: int, limit: int) -> object:
    with open_for_reading(url) as rows:
        found = best.find_candidates(rows, op, size, {}, limit)
        return best.read_answers(rows, [row["id"] for row in found], size)


def _times(call: Callable[[], object], repeat: int) -> list[tuple[float, float]]:
    """Seconds by the clock, and on a core, of each call."""
    taken = []
    for _ in range(repeat):
        began, cpu = time.perf_counter(), _cpu_s()
        call()
        taken.append((time.perf_counter() - began, _cpu_s() - cpu))
    return taken


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _describe(times: Sequence[tuple[float, float]]) -> str:
    wall, cpu = (statistics.median(column) * 1e3 for column in zip(*times, strict=True))
    return f"{wall:.2f} ms ({cpu:.2f} ms on a core)"


if __name__ == "__main__":
    main()
