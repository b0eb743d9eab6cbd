"""Who holds a campaign, and whether that one still lives."""

from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commtune.db.damage import read_rows
from commtune.paths import exists

_PROC = Path("/proc")


@dataclass(frozen=True)
class LockOwner:
    """A controller process, told apart from every other one.

    Attributes:
        boot_id: changes with every start of the kernel; empty where the system doesn't say.
        pid_start: when the process started, in clock ticks since boot: numbers are used again.
        pid_namespace: inode of the namespace that the number counts in; 0 where unknown.
    """

    host: str
    boot_id: str
    pid: int
    pid_start: int
    pid_namespace: int

    @classmethod
    def current(cls, proc: Path = _PROC) -> LockOwner:
        pid = os.getpid()
        return cls(
            host=socket.gethostname(),
            boot_id=_read(proc / "sys/kernel/random/boot_id"),
            pid=pid,
            pid_start=start_of(pid, proc) or 0,
            pid_namespace=_inode(proc / "self/ns/pid"),
        )

    def describe(self) -> str:
        """For people."""
        return f"process {self.pid} on {self.host}"

    @property
    def lives_here(self) -> bool:
        """Whether it lives, and its number means the same process to us."""
        us = LockOwner.current()
        here = self.boot_id == us.boot_id and self.pid_namespace == us.pid_namespace
        return bool(us.boot_id) and here and start_of(self.pid) == self.pid_start

    @classmethod
    def from_row(cls, row: Mapping[Any, Any]) -> LockOwner:
        return cls(**{name: row[name] for name in cls.__dataclass_fields__})


def start_of(pid: int, proc: Path = _PROC) -> int | None:
    """When a process started, clock ticks since boot; ``None`` if it doesn't live (zombies too).

    Where the system has no ``/proc``, a living process says 0.
    """
    if not exists(proc / "self"):
        import psutil  # others don't wait for it

        return 0 if psutil.pid_exists(pid) else None
    # The name, second field, may hold blanks and parentheses; nothing after it does.
    state, *fields = _read(proc / str(pid) / "stat").rpartition(")")[2].split() or ["X"]
    return None if state in "ZX" else int(fields[18])


def death_of(
    holder: LockOwner, asker: LockOwner, silent_s: float, stale_after_s: float, proc: Path = _PROC
) -> str:
    """Why the holder of a lock is taken for dead; empty if it may live.

    Args:
        silent_s: seconds since its last heartbeat.
        stale_after_s: silence after which a controller that we can't look at is given up.
    """
    same_kernel = bool(asker.boot_id) and holder.boot_id == asker.boot_id
    if same_kernel and holder.pid_namespace == asker.pid_namespace:
        if start_of(holder.pid, proc) == holder.pid_start:
            return ""
        return f"process {holder.pid} is gone"
    if asker.boot_id and holder.host == asker.host and not same_kernel:
        return f"{holder.host} was restarted"
    return f"silent for {silent_s:.0f} s" if silent_s > stale_after_s else ""


def living_holders(rows: Iterable[Mapping[str, Any]]) -> Mapping[int, str]:
    """By campaign, who works on it: not those seen to be dead; silence may be a long run.

    Args:
        rows: of ``locks``; damaged ones are told and left out.
    """
    us = LockOwner.current()
    return {
        row["campaign_id"]: describe_holder(row)
        for row in read_rows(rows, "locks", "campaign_id")
        if not death_of(LockOwner.from_row(row), us, 0.0, math.inf)
    }


def describe_holder(row: Mapping[Any, Any]) -> str:
    """Describes the row of a lock for people."""
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row["since"]))
    return f"{LockOwner.from_row(row).describe()}, since {when}"


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0
