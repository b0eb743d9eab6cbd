"""Finding processes that a test left behind, by a word in their command line."""

from __future__ import annotations

import time
from pathlib import Path

from waiting import PATIENCE_S


def living(word: str) -> dict[int, str]:
    """Command lines of all living processes that hold a word, by process number."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # gone meanwhile
            continue
        if word in line:  # a zombie has an empty command line
            found[int(folder.name)] = line.strip()
    return found


def programs(word: str) -> dict[int, str]:
    """The same, without copies of a process that have not become another program yet."""
    found = living(word)
    parents = {number: _parent(number) for number in found}
    return {
        number: line
        for number, line in found.items()
        if parents[number] and found.get(parents[number]) != line
    }


def _parent(number: int) -> int:
    """Who started a process; 0 for one that is gone."""
    try:
        stat = Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[1])


def wait_until_living(word: str, count: int, limit_s: float = PATIENCE_S) -> dict[int, str]:
    """Waits until so many processes hold the word, and returns those that do then."""
    deadline = time.monotonic() + limit_s
    while len(found := living(word)) < count and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def wait_until_gone(word: str, limit_s: float = PATIENCE_S) -> dict[int, str]:
    """Waits until no process holds the word; returns those that hold it all the same.

    A process that was killed is there until the kernel comes to it.
    """
    deadline = time.monotonic() + limit_s
    while (found := living(word)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return found
