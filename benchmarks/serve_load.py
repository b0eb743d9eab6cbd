"""How fast ``commtune serve`` answers what is best, and whether a storm of jobs gets its answers.

Fills an SQLite file as ``query_speed.py`` does, starts the service, and asks it over connections
that are kept open (the same few questions, or each time a new one), and over new connections that
all begin at once. ::

    python benchmarks/serve_load.py --measurements 10000000

``--datasette PATH`` asks Datasette, of the same file and in the same turns, for the newest proven
configuration and its evidence by one statement. It keeps no answers, and doesn't rank or check.

The rows are made up; only the times are results. Clients run on the same cores as the service.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from urllib.parse import urlencode, urlsplit

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

    def plain(self) -> dict[str, float]:
        """What is told of it; times in ms."""
        cuts = statistics.quantiles(self.seconds, n=100) if len(self.seconds) > 1 else [0.0] * 99
        return {
            "answers": len(self.seconds),
            "errors": self.errors,
            "per_second": len(self.seconds) / self.wall_s,
            "p50_ms": cuts[49] * 1e3,
            "p99_ms": cuts[98] * 1e3,
            "most_ms": max(self.seconds, default=0.0) * 1e3,
        }


class Target:
    """A service: where it is, what opens it, and its process."""

    path = "/api/v1/best?"

    def __init__(self, address: str, process: int) -> None:
        parts = urlsplit(address)
        self.host, self.port = parts.hostname or "", parts.port or 80
        self.token = parts.query.partition("=")[2]
        self.process = psutil.Process(process)

    def request(self, question: str) -> bytes:
        """A question about the best, as bytes."""
        return (
            f"GET {self.path}{question} HTTP/1.1\r\nhost: {self.host}\r\n"
            f"authorization: Bearer {self.token}\r\n\r\n"
        ).encode()

    def cpu_s(self) -> float:
        """Processor time that it has used."""
        used = self.process.cpu_times()
        return float(used.user + used.system)

    async def ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, question: str
    ) -> bool:
        """Asks over an open connection; whether there was an answer."""
        writer.write(self.request(question))
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            (
                int(line.partition(b":")[2])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length")
            ),
            None,
        )
        if length is None:  # in chunks
            await reader.readuntil(b"\r\n0\r\n\r\n")
        else:
            await reader.readexactly(length)
        return head.startswith(b"HTTP/1.1 200")


#: The newest proven configuration for an operation, a size, a system and ranks, with its evidence.
_STATEMENT = """
SELECT p.name, c.name AS campaign, g.environment, x.bytes, x.default_s, x.tuned_s, x.ratio, x.low,
  x.high, x.pairs
FROM profiles p JOIN campaigns c ON c.id = p.campaign_id JOIN systems s ON s.id = c.system_id
JOIN configurations g ON g.id = p.configuration_id JOIN profile_points x ON x.profile_id = p.id
WHERE p.operation = :operation AND p.bytes_low <= :bytes AND p.bytes_high >= :bytes
  AND (:system = '' OR s.name = :system) AND (:ranks = '' OR p.ranks = :ranks)
  AND p.verdict = 'faster' AND c.site = '' AND x.bytes = :bytes AND NOT x.is_guard
ORDER BY p.created DESC, p.id DESC LIMIT 2
"""


class Datasette(Target):
    """Datasette, asked the same by one statement."""

    path = f"/query-speed.json?{urlencode({'sql': _STATEMENT, '_shape': 'array'})}&"

    def request(self, question: str) -> bytes:
        missing = [f"&{name}=" for name in ("system", "ranks") if f"{name}=" not in question]
        return super().request("".join([question, *missing]))


async def keep_asking(
    target: Target,
    connections: int,
    seconds: float,
    next_question: Callable[[], str],
    rate: float = 0.0,
) -> Load:
    """Asks over connections that stay open, each as soon as it has its answer.

    Args:
        rate: questions a second; 0 for as many as there can be. An answer's time is from when its
            question was due, so that one that comes late delays none unseen.
    """
    load = Load()
    began = time.perf_counter()

    async def one(number: int) -> None:
        reader, writer = await asyncio.open_connection(target.host, target.port)
        due = began + number / rate if rate else time.perf_counter()
        while due - began < seconds:
            await asyncio.sleep(due - time.perf_counter())
            load.errors += not await target.ask(reader, writer, next_question())
            now = time.perf_counter()
            load.seconds.append(now - due)
            due = due + connections / rate if rate else now
        writer.close()

    await asyncio.gather(*(one(number) for number in range(connections)))
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


def new_questions(kinds: Sequence[str]) -> Callable[[], str]:
    """Questions that were not asked before: spaces before the size change no answer."""
    asked = iter(range(10**9))

    def ask() -> str:
        spaces, which = divmod(next(asked), len(kinds))
        return f"operation=allreduce&bytes={'+' * spaces}{kinds[which]}"

    return ask


_OF_A_SYSTEM = [
    f"{size}&system=machine-{system}&ranks={ranks}"
    for size, system, ranks in product(SIZES, range(7), (2, 4, 8))
]
_OF_ANY_SYSTEM = [str(size) for size in SIZES]


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
        began = time.monotonic()
        fill(f"sqlite:///{path}", arguments.measurements)
        print(f"filled in {time.monotonic() - began:.0f} s")
    print(
        f"{path.stat().st_size / 2**30:.2f} GiB; {os.cpu_count()} cores, Python "
        f"{platform.python_version()}; load of the machine before: {os.getloadavg()[0]:.1f}"
    )
    try:
        with _started("serve", "--bind", "127.0.0.1:0", "--db", str(path)) as served:
            assert served.stdout is not None
            targets = {"serve": Target(served.stdout.readline().split()[-1], served.pid)}
            if not arguments.datasette:
                _measure(targets, arguments)
                return
            with _datasette(arguments.datasette, path) as other:
                _measure({**targets, "datasette": other}, arguments)
    finally:
        if not arguments.folder:
            shutil.rmtree(folder)


@contextmanager
def _started(*words: str, program: Sequence[str] = ()) -> Iterator[subprocess.Popen[str]]:
    command = [*(program or (sys.executable, "-m", "commtune.cli")), *words]
    # A pipe that nobody reads would stop a program that logs there.
    out = subprocess.DEVNULL if program else subprocess.PIPE
    with subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, text=True) as started:
        try:
            yield started
        finally:
            started.terminate()


@contextmanager
def _datasette(program: str, path: Path) -> Iterator[Target]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with _started(str(path), "--port", str(port), program=[program]) as started:
        while started.poll() is None:
            time.sleep(0.2)
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
        yield Datasette(f"http://127.0.0.1:{port}/", started.pid)


def _measure(targets: Mapping[str, Target], arguments: argparse.Namespace) -> None:
    """Each load for each in turns, so that a busy moment falls on both."""
    seconds = arguments.seconds
    loads: Mapping[str, Callable[[Target], Coroutine[None, None, Load]]] = {
        "1 connection, few questions": lambda to: keep_asking(to, 1, seconds, few_questions()),
        "32 connections, few questions": lambda to: keep_asking(to, 32, seconds, few_questions()),
        "32 connections, few questions, 1,000 a second": lambda to: keep_asking(
            to, 32, seconds, few_questions(), 1000
        ),
        "1 connection, new questions": lambda to: keep_asking(
            to, 1, seconds, new_questions(_OF_A_SYSTEM)
        ),
        "1 connection, new questions of any system": lambda to: keep_asking(
            to, 1, seconds, new_questions(_OF_ANY_SYSTEM)
        ),
        f"{arguments.jobs:,} jobs at once": lambda to: storm(to, arguments.jobs),
    }
    for target in targets.values():
        asyncio.run(keep_asking(target, 1, 1.0, few_questions()))
    found: dict[str, dict[str, dict[str, float]]] = {name: {} for name in loads}
    for name, ask in loads.items():
        for whose, target in targets.items():
            before = target.cpu_s()
            told = asyncio.run(ask(target)).plain()
            told["cpu_ms"] = 1e3 * (target.cpu_s() - before) / max(1, told["answers"])
            found[name][whose] = told
            print(
                f"{whose}, {name}: {told['answers']:,} answers, {told['errors']} errors, "
                f"{told['per_second']:,.0f} a second; p50 {told['p50_ms']:.2f} ms, "
                f"p99 {told['p99_ms']:.2f} ms, most {told['most_ms']:.1f} ms; "
                f"{told['cpu_ms']:.2f} ms of processor time an answer"
            )
            _write(arguments.json, {"loads": found})
    memory = {to: one.process.memory_info().rss / 2**20 for to, one in targets.items()}
    print(f"memory, MiB: {memory}")
    _write(arguments.json, {"loads": found, "memory_MiB": memory})


def _write(file: str | None, figures: Mapping[str, object]) -> None:
    if file:
        Path(file).write_text(json.dumps(figures, indent=1))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--measurements", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each load")
    parser.add_argument("--jobs", type=int, default=2000, help="that start at once")
    parser.add_argument("--datasette", metavar="PATH", help="the program, to ask it the same")
    parser.add_argument("--json", metavar="FILE", help="where to write the figures")
    parser.add_argument("--folder", help="where to make the database, or find an earlier one")
    return parser.parse_args()


if __name__ == "__main__":
    main()
