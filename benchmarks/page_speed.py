"""What each page of ``commtune serve`` and the report cost for one very long campaign.

Replays a recorded campaign into an SQLite file, copies its runs until there are enough, and asks a
service for every page; each page twice, by a service of its own. ::

    python benchmarks/page_speed.py --runs 100000

Prints processor time, peak memory and the size of each page. The copies say nothing about any
machine; only the costs are results.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

import psutil
from serve_load import Target

GRID = Path(__file__).parent / "grids" / "mpich-allreduce.jsonl.gz"
BUDGET = "\nbudget: {search: 60s, ablation: 10s, confirmation: 20s}\n"
_LENGTHS = """
SELECT max(started_at + wall_s) - min(started_at), max(block) + 1, max(id),
       sum(phase = 'search') FROM runs
"""


def main() -> None:
    """Fills, asks, prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--grid", type=Path, default=GRID, help="what is replayed (%(default)s)")
    parser.add_argument("--folder", help="where to make the database, or find an earlier one")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        path = Path(arguments.folder or made) / "pages.db"
        if not path.exists():
            fill(path, arguments.runs, arguments.grid)
        print(f"{path.stat().st_size / 2**20:.0f} MiB")
        for page in _pages(path):
            _show(path, page)


def fill(path: Path, runs: int, grid: Path = GRID) -> None:
    """One campaign with at least so many runs: those of the search again and again.

    The other phases stay as they are: confirmation never takes more than some hundred blocks.
    """
    campaign = path.with_suffix(".yaml")
    with gzip.open(grid) as recorded:
        campaign.write_text(json.loads(recorded.readline())["campaign"] + BUDGET)
    words = ("tune", str(campaign), "--replay", str(grid.resolve()), "--db", str(path))
    subprocess.run([sys.executable, "-m", "commtune.cli", *words], check=True, cwd=path.parent)
    with closing(sqlite3.connect(path)) as opened:
        length_s, blocks, newest, searched = opened.execute(_LENGTHS).fetchone()
        for copy in range(1, 1 + runs // searched):
            moved = f"run_id || '-{copy}', block + {copy * blocks}, started_at + {copy * length_s}"
            _copy(opened, "runs", ("run_id", "block", "started_at"), moved,
                  f"FROM runs WHERE id <= {newest} AND phase = 'search'")  # fmt: skip
            _copy(opened, "measurements", ("run_id",), "n.id", f"""
                FROM runs o JOIN runs n ON n.run_id = o.run_id || '-{copy}'
                JOIN measurements m ON m.run_id = o.id WHERE o.id <= {newest}""")  # fmt: skip
        opened.commit()


def _copy(
    opened: sqlite3.Connection, table: str, own: Sequence[str], values: str, source: str
) -> None:
    names = [row[1] for row in opened.execute(f"PRAGMA table_info({table})")]
    same = [name for name in names if name not in ("id", *own)]
    of = "m." if table == "measurements" else ""
    opened.execute(
        f"INSERT INTO {table} ({', '.join([*own, *same])}) "
        f"SELECT {', '.join([values, *(of + name for name in same)])} {source}"
    )


def _pages(path: Path) -> Iterator[str]:
    with closing(sqlite3.connect(path)) as opened:
        (name,) = opened.execute("SELECT name FROM campaigns").fetchone()
        (run,) = opened.execute("SELECT run_id FROM runs ORDER BY id LIMIT 1").fetchone()
        (profile,) = opened.execute("SELECT id FROM profiles ORDER BY id LIMIT 1").fetchone()
    yield "/"
    yield "/best?operation=allreduce&bytes=1MiB"
    yield f"/compare?left=campaign:{quote(name)}&right=campaign:{quote(name)}"
    campaign = f"/campaigns/{quote(name)}"
    yield from (campaign, f"{campaign}/runs", f"{campaign}/runs?outcome=crashed")
    yield from (f"{campaign}/runs/{run}", f"/profiles/{profile}", f"{campaign}/report")
    api = f"/api/v1{campaign}"
    yield from (
        api,
        f"{api}/trials?limit=1000",
        f"{api}/runs?limit=1000",
        f"{api}/results?limit=1000",
    )


class _Page(Target):
    def __init__(self, address: str, process: int, path: str) -> None:
        super().__init__(address, process)
        self.path = path


@contextmanager
def _served(path: Path, page: str) -> Iterator[_Page]:
    words = ("serve", "--bind", "127.0.0.1:0", "--db", str(path))
    command = [sys.executable, "-m", "commtune.cli", *words]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as one:
        assert one.stdout is not None
        try:
            yield _Page(one.stdout.readline().split()[-1], one.pid, page)
        finally:
            one.terminate()


def _show(path: Path, page: str) -> None:
    with _served(path, page) as target:
        before_s, before_mib = target.cpu_s(), _peak_mib(target.process)
        answered, length = asyncio.run(_ask(target))
        used_s, peak_mib = target.cpu_s() - before_s, _peak_mib(target.process)
    print(
        f"{page}: {used_s:.2f} s of processor time, {length / 1024:.0f} KiB; at most "
        f"{peak_mib:.0f} MiB, {before_mib:.0f} of them before{'' if answered else '; FAILED'}",
        flush=True,
    )


async def _ask(target: Target) -> tuple[bool, int]:
    reader, writer = await asyncio.open_connection(target.host, target.port)
    writer.write(target.request(""))
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(maxsplit=1)[0])
    await reader.readexactly(length)
    writer.close()
    return head.startswith(b"HTTP/1.1 200"), length


def _peak_mib(process: psutil.Process) -> float:
    said = Path(f"/proc/{process.pid}/status").read_text()
    return int(said.partition("VmHWM:")[2].split(maxsplit=1)[0]) / 1024


if __name__ == "__main__":
    main()
