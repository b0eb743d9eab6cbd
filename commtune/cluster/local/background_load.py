"""What other programs take of the cores that a run may use, read before and after it.

The kernel counts what each core spent (``/proc/stat``), and what our own processes used that ended
(``getrusage``); the rest is other programs'. From a container, ``/proc/stat`` counts cores of the
host, which is what disturbs; made up for the container (lxcfs, gVisor), it says little or nothing.
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
    """What cores and our own processes had used at a moment."""

    cores: Mapping[int, Mapping[str, int]]  # clock ticks since boot, by column, of each core
    own_s: float  # CPU seconds of the controller and of all its children that ended
    at_s: float  # monotonic clock, seconds


def read_load(
    proc: Path = _PROC, cores: Collection[int] | None = None, running_s: float = 0.0
) -> LoadSnapshot | None:
    """What was used until now; ``None`` where the system doesn't say.

    Args:
        running_s: CPU seconds of processes of ours that run on.
        cores: the ones that count; those that this process may run on where ``None``.
    """
    try:
        wanted = set(os.sched_getaffinity(0) if cores is None else cores)
        found = _parse_cores((proc / "stat").read_text())
    except (AttributeError, OSError, ValueError):  # not Linux, no /proc, or not the kernel's
        return None
    if not wanted <= found.keys():
        return None
    own_s = _own_s() + running_s
    return LoadSnapshot({core: found[core] for core in wanted}, own_s, time.monotonic())


def load_between(before: LoadSnapshot | None, after: LoadSnapshot | None) -> float | None:
    """The share of the usable cores' time, 0 to 1, that others used from one moment to another.

    Others are programs and virtual machines. ``None`` where it can't be told. It is as exact as
    the kernel's ticks, 10 ms a core: too coarse below some tenths of a second.
    """
    if before is None or after is None or before.cores.keys() != after.cores.keys():
        return None
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    whole_s = (after.at_s - before.at_s) * len(after.cores)
    if whole_s <= 0 or after.cores == before.cores:
        return None
    charged = ["user", "nice", "system"]
    # Some kernels measure interrupts by themselves (only such a one ever counts ``irq``) and
    # charge them to nobody: others' can't be told from those of the run's own traffic then.
    if not _ticks(after, ["irq"]):
        charged.append("softirq")
    used_s = (_ticks(after, charged) - _ticks(before, charged)) / ticks_per_s
    stolen_s = (_ticks(after, ["steal"]) - _ticks(before, ["steal"])) / ticks_per_s
    # Stolen time is added last: some kernels charge it to the process it was stolen from.
    others_s = max(0.0, used_s - (after.own_s - before.own_s)) + stolen_s
    return min(1.0, max(0.0, others_s / whole_s))


def _parse_cores(text: str) -> dict[int, dict[str, int]]:
    """The cores of a ``/proc/stat`` text, by number.

    Raises:
        ValueError: it is written otherwise than the kernel does.
    """
    lines = (line.split() for line in text.splitlines())
    # Old kernels have fewer columns. Those behind the eighth are part of the first two.
    return {
        int(words[0].removeprefix("cpu")): dict(zip(_COLUMNS, map(int, words[1:]), strict=False))
        for words in lines
        if words and words[0].startswith("cpu") and words[0] != "cpu"
    }


def _ticks(taken: LoadSnapshot, columns: Collection[str]) -> int:
    return sum(core.get(column, 0) for core in taken.cores.values() for column in columns)


def _own_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
