"""Measures the load of other programs on the cores of a run, from snapshots before and after it.

The kernel counts the busy time of each core (``/proc/stat``), and that of our own ended processes
(``getrusage``); the difference is the other programs'. In a container, ``/proc/stat`` has the
host's cores, as it should; where it is emulated (lxcfs, gVisor), it says little or nothing.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
#: Columns of a core in /proc/stat.
_COLUMNS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


@dataclass(frozen=True)
class LoadSnapshot:
    """The time that cores and our own processes had used at a moment."""

    cores: Mapping[int, Mapping[str, int]]  # clock ticks since boot, by column, of each core
    own_s: float  # CPU seconds of the controller and of all its children that ended
    at_s: float  # monotonic clock, seconds


def read_load(
    proc: Path = _PROC, cores: Collection[int] | None = None, running_s: float = 0.0
) -> LoadSnapshot | None:
    """Takes a snapshot; ``None`` if the system has no such counters.

    Args:
        running_s: CPU seconds of our own processes that still run.
        cores: numbers of the cores; by default those that this process may run on.
    """
    try:
        wanted = set(os.sched_getaffinity(0) if cores is None else cores)
        found = _parse_cores((proc / "stat").read_text())
    except (AttributeError, OSError, ValueError):  # not Linux, no /proc, or not the kernel's
        return None
    if not wanted <= found.keys():
        return None
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    own_s = sum(each.ru_utime + each.ru_stime for each in used) + running_s
    return LoadSnapshot({core: found[core] for core in wanted}, own_s, time.monotonic())


def load_between(before: LoadSnapshot | None, after: LoadSnapshot | None) -> float | None:
    """Returns the share of the cores' time that others used between two snapshots, 0 to 1.

    Others are programs and virtual machines. ``None`` if unknown. The kernel counts in ticks of
    10 ms a core, so this is too coarse below some tenths of a second.
    """
    if before is None or after is None or before.cores.keys() != after.cores.keys():
        return None
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    whole_s = (after.at_s - before.at_s) * len(after.cores)
    if whole_s <= 0 or after.cores == before.cores:
        return None
    charged = ["user", "nice", "system"]
    # Kernels with IRQ time accounting (only these count ``irq``) charge interrupts to no process,
    # so those of others can't be told from those of the run's own traffic.
    if not _ticks(after, ["irq"]):
        charged.append("softirq")
    used_s = (_ticks(after, charged) - _ticks(before, charged)) / ticks_per_s
    stolen_s = (_ticks(after, ["steal"]) - _ticks(before, ["steal"])) / ticks_per_s
    # Added last, as some kernels also charge stolen time to the process that lost it.
    others_s = max(0.0, used_s - (after.own_s - before.own_s)) + stolen_s
    return min(1.0, max(0.0, others_s / whole_s))


def _parse_cores(text: str) -> dict[int, dict[str, int]]:
    """Reads the cores of ``/proc/stat``, by number; a ``ValueError`` for another format."""
    lines = (line.split() for line in text.splitlines())
    # Old kernels have fewer columns. Those after the eighth are part of the first two.
    return {
        int(words[0].removeprefix("cpu")): dict(zip(_COLUMNS, map(int, words[1:]), strict=False))
        for words in lines
        if words and words[0].startswith("cpu") and words[0] != "cpu"
    }


def _ticks(taken: LoadSnapshot, columns: Collection[str]) -> int:
    return sum(core.get(column, 0) for core in taken.cores.values() for column in columns)
