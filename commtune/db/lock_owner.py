"""Identifies the process that holds a campaign's lock, and tells whether it still lives."""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commtune.db.damage import Damage, read_rows
from commtune.paths import read_quietly

_PROC = Path("/proc")


@dataclass(frozen=True)
class LockOwner:
    """The unique identity of a controller process.

    Attributes:
        boot_id: changes with every boot of the kernel; empty if unknown.
        pid_start: start of the process, clock ticks since boot, because PIDs are reused.
        pid_namespace: inode of the PID namespace; 0 if unknown.
    """

    host: str
    boot_id: str
    pid: int
    pid_start: int
    pid_namespace: int

    @classmethod
    def current(cls) -> LockOwner:
        pid = os.getpid()
        return cls(
            host=socket.gethostname(),
            boot_id=read_quietly(_PROC / "sys/kernel/random/boot_id").strip(),
            pid=pid,
            pid_start=_start_of(pid) or 0,
            pid_namespace=_inode(_PROC / "self/ns/pid"),
        )

    def describe(self) -> str:
        """Returns a description for messages."""
        return f"process {self.pid} on {self.host}"

    @property
    def lives_here(self) -> bool:
        """Whether it lives, in this boot and PID namespace."""
        us = LockOwner.current()
        here = self.boot_id == us.boot_id and self.pid_namespace == us.pid_namespace
        return bool(us.boot_id) and here and _start_of(self.pid) == self.pid_start

    @classmethod
    def from_row(cls, row: Mapping[Any, Any]) -> LockOwner:
        return cls(**{name: row[name] for name in cls.__dataclass_fields__})


def _start_of(pid: int, proc: Path = _PROC) -> int | None:
    """Returns the start of a process, clock ticks since boot; ``None`` if dead or a zombie."""
    # The second field, the name, may contain blanks and parentheses; the others do not.
    stat = read_quietly(proc / str(pid) / "stat")
    state, *fields = stat.rpartition(")")[2].split() or ["X"]
    return None if state in "ZX" else int(fields[18])


def death_of(
    holder: LockOwner, asker: LockOwner, silent_s: float, stale_after_s: float, proc: Path = _PROC
) -> str:
    """Returns why the holder of a lock is considered dead; empty if it may live.

    Args:
        silent_s: seconds since its last heartbeat.
        stale_after_s: seconds of silence after which a holder on another machine is given up.
    """
    same_kernel = bool(asker.boot_id) and holder.boot_id == asker.boot_id
    if same_kernel and holder.pid_namespace == asker.pid_namespace:
        if _start_of(holder.pid, proc) == holder.pid_start:
            return ""
        return f"process {holder.pid} is gone"
    if asker.boot_id and holder.host == asker.host and not same_kernel:
        return f"{holder.host} was restarted"
    return f"silent for {silent_s:.0f} s" if silent_s > stale_after_s else ""


def living_holders(
    rows: Iterable[Mapping[str, Any]], tell: Callable[[Damage], None] | None = None
) -> Mapping[int, str]:
    """Returns descriptions of the holders that may live, by campaign.

    Silence doesn't count as death here: the holder may be in a long run.

    Args:
        rows: rows of ``locks``; damaged ones are reported and left out.
        tell: as for ``read_rows``.
    """
    us = LockOwner.current()
    return {
        row["campaign_id"]: describe_holder(row)
        for row in read_rows(rows, "locks", "campaign_id", tell=tell)
        if not death_of(LockOwner.from_row(row), us, 0.0, math.inf)
    }


def describe_holder(row: Mapping[Any, Any]) -> str:
    """Returns a description of a lock's row for messages."""
    when = time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(row["since"]))
    return f"{LockOwner.from_row(row).describe()}, since {when}"


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0
