"""What Slurm answered one process, for all of a user's on this machine for a while."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from commtune.model import content_key
from commtune.private_files import make_private_folder


@dataclass(frozen=True)
class SharedAnswer:
    file: Path  # of one user, machine, cluster and question
    period_s: float  # how long an answer will do, seconds

    @classmethod
    def of_queue(cls, folder: Path, cluster: str, period_s: float) -> SharedAnswer:
        """Of squeue, for the jobs of this user; ``folder`` is for files of all campaigns."""
        which = content_key({"of": [os.environ.get("SLURM_CONF", ""), cluster]})[:8]
        name = f"queue-{socket.gethostname()}-{os.getuid()}-{which}"
        return cls(folder / "slurm" / name, period_s)

    def get(self, ask: Callable[[], str]) -> tuple[str, float]:
        """The answer, and when it was asked for, seconds since 1970.

        One process asks, the others wait for it. Where nothing can be written, everybody asks.
        """
        try:
            make_private_folder(self.file.parent)
            lock = self.file.with_suffix(".lock").open("a")
        except OSError:
            return ask(), time.time()
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return self._kept() or self._asked(ask)

    def _kept(self) -> tuple[str, float] | None:
        try:
            when, _, answer = self.file.read_text(errors="surrogateescape").partition("\n")
            age_s = time.time() - float(when)
        except (OSError, ValueError):
            return None
        return (answer, float(when)) if 0 <= age_s < self.period_s else None

    def _asked(self, ask: Callable[[], str]) -> tuple[str, float]:
        now = time.time()
        answer = ask()
        part = self.file.with_suffix(".part")
        with suppress(OSError):
            part.write_text(f"{now!r}\n{answer}", errors="surrogateescape")
            part.replace(self.file)
        return answer, now
