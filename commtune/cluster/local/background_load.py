"""What other programs take of the cores that a run may use, read before and after it.

The kernel counts for each core what it spent (``/proc/stat``), and for us what our processes used
that ended (``getrusage``): the run with its helper threads and busy loops, orphans that we
adopted, and the controller. The rest is other programs'. The run's configuration doesn't decide
whether they are there: a run beside them was disturbed, be it fast or slow. How much they get is
not quite out of its hands, as a run that sleeps leaves them more of a core than one that polls.

Seen from a container, ``/proc/stat`` counts whole cores of the host, other containers too, which
is what disturbs. Where a container is held by a quota instead of by cores, the cores that its
processes may use are all of the host's, and the share is one of them all; pauses for a used-up
quota are not counted. Where ``/proc/stat`` is made up for the container (lxcfs, gVisor), it lacks
what happens outside, or says nothing.
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
class _CoreTicks:
    """What a core spent since boot, in clock ticks."""

    busy: int  # in programs and the kernel on their behalf, interrupts not counted
    #: irq, softirq: in interrupts.
    irq: int
    softirq: int
    stolen: int  # given to other virtual machines while this one had work
    total: int  # all of it, idle time included


@dataclass(frozen=True)
class _LoadSnapshot:
    """What cores and our own processes had used at a moment."""

    cores: Mapping[int, _CoreTicks]
    own_s: float  # CPU seconds of the controller and of all its children that ended
    at_s: float  # monotonic clock, seconds


@dataclass(frozen=True)
class _BackgroundLoad:
    """CPU time that others used, as shares of the usable cores' time, 0 to 1."""

    share: float  # other programs and other virtual machines
    stolen: float  # the part of it that was other virtual machines'


def read_load(proc: Path = _PROC, cores: Collection[int] | None = None) -> _LoadSnapshot | None:
    """What was used until now; ``None`` where the system doesn't say.

    Args:
        cores: the ones that count; those that this process may run on where ``None``.
    """
    try:
        wanted = set(os.sched_getaffinity(0) if cores is None else cores)
        found = _parse_cores((proc / "stat").read_text())
    except (AttributeError, OSError, ValueError):  # not Linux, no /proc, or not the kernel's
        return None
    if not wanted <= found.keys():
        return None
    return _LoadSnapshot({core: found[core] for core in wanted}, _own_s(), time.monotonic())


def load_between(
    before: _LoadSnapshot | None, after: _LoadSnapshot | None
) -> _BackgroundLoad | None:
    """What others used from one moment to another; ``None`` where it can't be told.

    It is as exact as the kernel's ticks, 10 ms a core: too coarse below some tenths of a second.
    """
    if before is None or after is None or before.cores.keys() != after.cores.keys():
        return None
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    whole_s = (after.at_s - before.at_s) * len(after.cores)
    if whole_s <= 0 or _total(after) == _total(before):
        return None
    apart = any(core.irq for core in after.cores.values())
    used_s = (_used(after, apart) - _used(before, apart)) / ticks_per_s
    stolen_s = (_stolen(after) - _stolen(before)) / ticks_per_s
    # Stolen time is added last: some kernels charge it to the process it was stolen from.
    others_s = max(0.0, used_s - (after.own_s - before.own_s)) + stolen_s
    return _BackgroundLoad(_share(others_s / whole_s), _share(stolen_s / whole_s))


def _parse_cores(text: str) -> dict[int, _CoreTicks]:
    """The cores of a ``/proc/stat`` text, by number.

    Raises:
        ValueError: it is written otherwise than the kernel does.
    """
    lines = (line.split() for line in text.splitlines())
    return {
        int(words[0].removeprefix("cpu")): _core([int(word) for word in words[1:]])
        for words in lines
        if words and words[0].startswith("cpu") and words[0] != "cpu"
    }


def _core(numbers: list[int]) -> _CoreTicks:
    # Old kernels have fewer columns. Those behind the eighth are part of the first two.
    tick = dict.fromkeys(_COLUMNS, 0) | dict(zip(_COLUMNS, numbers, strict=False))
    busy = tick["user"] + tick["nice"] + tick["system"]
    return _CoreTicks(busy, tick["irq"], tick["softirq"], tick["steal"], sum(tick.values()))


def _used(taken: _LoadSnapshot, apart: bool) -> int:
    """Ticks in programs, and in interrupts where these are part of what programs are charged.

    Args:
        apart: the kernel measures interrupts by themselves (only such a one ever counts ``irq``)
            and charges them to nobody: then others' can't be told from those of the run's own
            network traffic, and none count.
    """
    return sum(core.busy + (0 if apart else core.softirq) for core in taken.cores.values())


def _stolen(taken: _LoadSnapshot) -> int:
    return sum(core.stolen for core in taken.cores.values())


def _total(taken: _LoadSnapshot) -> int:
    return sum(core.total for core in taken.cores.values())


def _own_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))
