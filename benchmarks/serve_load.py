"""How fast ``commtune serve`` answers what is best, and whether a storm of jobs gets its answers.

Fills an SQLite file as ``query_speed.py`` does, starts the service, and asks it over connections
that are kept open (all ask the same few questions, or each another one), and over new connections
that all begin at once. ::

    python benchmarks/serve_load.py --measurements 10000000

The rows are made up; only the times are results. Clients run on the same cores as the service.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from query_speed import SIZES, fill

#: The same few questions: those of jobs that start at once.
_FEW = [f"operation=allreduce&bytes={size}" for size in (8, 4096, 65536, 1 << 20)]


@dataclass
class Load:
    """What came of many questions."""

    seconds: list[float] = field(default_factory=list)
    errors: int = 0
    wall_s: float = 0.0

    def __str__(self) -> str:
        cuts = statistics.quantiles(self.seconds, n=100) if len(self.seconds) > 1 else [0.0] * 99
        rate = len(self.seconds) / self.wall_s
        return (
            f"{len(self.seconds):,} answers, {self.errors} errors, {rate:,.0f} a second; "
            f"p50 {cuts[49] * 1e3:.1f} ms, p99 {cuts[98] * 1e3:.1f} ms, "
            f"most {max(self.seconds, default=0.0) * 1e3:.1f} ms"
        )


class Target:
    """A service: where it is, and what opens it."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self.host, self.port = parts.hostname or "", parts.port or 80
        self.token = parts.query.partition("=")[2]

    def request(self, question: str) -> bytes:
        """A question about the best, as bytes."""
        return (
            f"GET /api/v1/best?{question} HTTP/1.1\r\nhost: {self.host}\r\n"
            f"authorization: Bearer {self.token}\r\n\r\n"
        ).encode()

    async def ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, question: str
    ) -> bool:
        """Asks over an open connection; whether there was an answer."""
        writer.write(self.request(question))
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.partition(b":")[2])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length")
        )
        await reader.readexactly(length)
        return head.startswith(b"HTTP/1.1 200")


async def keep_asking(
    target: Target, connections: int, seconds: float, next_question: Callable[[], str]
) -> Load:
    """Asks over connections that stay open, each as soon as it has its answer."""
    load = Load()
    began = time.perf_counter()

    async def one() -> None:
        reader, writer = await asyncio.open_connection(target.host, target.port)
        while time.perf_counter() - began < seconds:
            asked = time.perf_counter()
            load.errors += not await target.ask(reader, writer, next_question())
            load.seconds.append(time.perf_counter() - asked)
        writer.close()

    await asyncio.gather(*(one() for _ in range(connections)))
    load.wall_s = time.perf_counter() - began
    return load


async def storm(target: Target, jobs: int) -> Load:
    """As many new connections at once, each with one question."""
    load = Load()
    began = time.perf_counter()

    async def one(number: int) -> None:
        try:
            reader, writer = await asyncio.open_connection(target.host, target.port)
            load.errors += not await target.ask(reader, writer, _FEW[number % len(_FEW)])
            load.seconds.append(time.perf_counter() - began)
            writer.close()
        except (OSError, asyncio.IncompleteReadError):
            load.errors += 1

    await asyncio.gather(*(one(number) for number in range(jobs)))
    load.wall_s = time.perf_counter() - began
    return load


def different_questions() -> Callable[[], str]:
    """Questions that come again only when the answer is no longer kept."""
    kinds = list(product(SIZES, range(7), (2, 4, 8)))
    number = iter(range(10**9))

    def ask() -> str:
        size, system, ranks = kinds[next(number) % len(kinds)]
        return f"operation=allreduce&bytes={size}&system=machine-{system}&ranks={ranks}"

    return ask


def few_questions() -> Callable[[], str]:
    """The same few, in turn."""
    number = iter(range(10**9))
    return lambda: _FEW[next(number) % len(_FEW)]


def main() -> None:
    """Fills, serves, asks, prints."""
    arguments = _arguments()
    folder = Path(arguments.folder or tempfile.mkdtemp(prefix="commtune-serve-"))
    path = folder / "query-speed.db"
    if not path.exists():
        fill(f"sqlite:///{path}", path, arguments.measurements)
    print(
        f"{path.stat().st_size / 2**30:.2f} GiB; {os.cpu_count()} cores, Python "
        f"{platform.python_version()}; load of the machine before: {os.getloadavg()[0]:.1f}"
    )
    command = [sys.executable, "-m", "commtune.cli", "serve", "--bind", "127.0.0.1:0"]
    served = subprocess.Popen(
        [*command, "--db", str(path)], stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL
    )
    try:
        assert served.stdout is not None
        target = Target(served.stdout.readline().split()[-1])
        _measure(target, arguments)
        memory = psutil.Process(served.pid).memory_info().rss
        print(f"memory of the service: {memory / 2**20:.0f} MiB")
    finally:
        served.terminate()
        served.wait()
        if not arguments.folder:
            shutil.rmtree(folder)


def _measure(target: Target, arguments: argparse.Namespace) -> None:
    few, seconds = few_questions(), arguments.seconds
    asyncio.run(keep_asking(target, 1, 1.0, few))
    loads: Sequence[tuple[str, Load]] = [
        ("1 connection, few questions", asyncio.run(keep_asking(target, 1, seconds, few))),
        ("32 connections, few questions", asyncio.run(keep_asking(target, 32, seconds, few))),
        (
            "1 connection, different questions",
            asyncio.run(keep_asking(target, 1, seconds, different_questions())),
        ),
        (f"{arguments.jobs:,} jobs at once", asyncio.run(storm(target, arguments.jobs))),
    ]
    for name, load in loads:
        print(f"{name}: {load}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--measurements", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each load")
    parser.add_argument("--jobs", type=int, default=2000, help="that start at once")
    parser.add_argument("--folder", help="where to make the database, or find an earlier one")
    return parser.parse_args()


if __name__ == "__main__":
    main()
