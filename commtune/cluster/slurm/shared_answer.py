"""What Slurm answered one process, for all of a user's on this machine for a while."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from commtune.model import content_key
from commtune.private_files import make_private_folder

#: How long the next questions reach back as far as somebody once needed, seconds.
_WISH_KEPT_S = 600.0


@dataclass(frozen=True)
class _Kept:
    """An answer, and what the next question is to be. Times are in seconds since 1970."""

    asked_at: float = 0.0
    since: float = 0.0  # what was before that is not in it
    wanted_since: float = 0.0  # the earliest that somebody needed
    wanted_at: float = 0.0  # when that was said
    answer: str = ""

    def want(self, since: float, now: float) -> _Kept:
        """What the next question is to reach, where this is earlier than all that was needed."""
        if since < self.wanted_since or not 0 <= now - self.wanted_at < _WISH_KEPT_S:
            return replace(self, wanted_since=since, wanted_at=now)
        return self


@dataclass(frozen=True)
class SharedAnswer:
    """Of one user, machine, cluster and question, in a file."""

    file: Path
    period_s: float  # how long an answer will do, seconds

    @classmethod
    def of(cls, program: str, folder: Path, cluster: str, period_s: float) -> SharedAnswer:
        """Of a program, for the jobs of this user; ``folder`` is for files of all campaigns."""
        which = content_key({"of": [os.environ.get("SLURM_CONF", ""), cluster]})[:8]
        name = f"{program}-{socket.gethostname()}-{os.getuid()}-{which}"
        return cls(folder / "slurm" / name, period_s)

    def get(self, ask: Callable[[float], str], since: float = 0.0) -> tuple[str, float] | None:
        """The answer, and when it was asked for, seconds since 1970.

        One process asks, the others wait for it. ``None`` where the last answer is new and does
        not reach back far enough: the next one will. Where nothing can be written, everybody asks.

        Args:
            ask: is told how far back the answer must reach, seconds since 1970.
            since: how far back this caller needs it.
        """
        try:
            make_private_folder(self.file.parent)
            lock = self.file.with_suffix(".lock").open("a")
        except OSError:
            return ask(since), time.time()
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            now = time.time()
            before = self._read()
            kept = before.want(since, now)
            if not 0 <= now - kept.asked_at < self.period_s:
                reach = kept.wanted_since
                kept = replace(kept, asked_at=now, since=reach, answer=ask(reach))
            if kept is not before:
                self._write(kept)
            return (kept.answer, kept.asked_at) if kept.since <= since else None

    def _read(self) -> _Kept:
        try:
            return _Kept(**json.loads(self.file.read_text()))
        except (OSError, ValueError, TypeError):
            return _Kept()

    def _write(self, kept: _Kept) -> None:
        part = self.file.with_suffix(".part")
        with suppress(OSError):
            part.write_text(json.dumps(asdict(kept)))
            part.replace(self.file)
