"""What Slurm answered one process, for all of a user's on this machine for a while."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from commtune.cluster.slurm.faults import SlurmError, SlurmFault
from commtune.model import content_key
from commtune.private_files import make_private_folder

#: How long the next questions reach back as far as somebody once needed, seconds.
_WISH_KEPT_S = 600.0
#: How long what Slurm says of the site will do, seconds.
_SITE_KEPT_S = 120.0
#: How long it will do that there was none, seconds.
_FAULT_KEPT_S = 5.0


@dataclass(frozen=True)
class _Kept:
    """An answer, and what the next question is to be. Times are in seconds since 1970."""

    asked_at: float = 0.0
    answered_at: float = 0.0
    since: float = 0.0  # what was before that is not in it
    wanted_since: float = 0.0  # the earliest that somebody needed
    wanted_at: float = 0.0  # when that was said
    answer: str = ""
    error: str = ""  # name of the error, where there was no answer but this message

    def is_new(self, period_s: float) -> bool:
        """Whether it will do: who waited for it does not ask again, however long it took."""
        kept_s = min(period_s, _FAULT_KEPT_S) if self.error else period_s
        return 0 <= time.time() - self.answered_at < kept_s

    def renewed(self, ask: Callable[[float], str]) -> _Kept:
        """What Slurm answers now, or why it doesn't."""
        began, reach = time.time(), self.wanted_since
        try:
            answer, error = ask(reach), ""
        except SlurmFault as fault:
            answer, error = fault.message, fault.error.name
        return replace(
            self, asked_at=began, answered_at=time.time(), since=reach, answer=answer, error=error
        )

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
        """A program's answer for this user's jobs; ``folder`` is for files of all campaigns."""
        found = shutil.which(program) or ""
        which = content_key({"of": [os.environ.get("SLURM_CONF", ""), cluster, found]})[:8]
        name = f"{program}-{socket.gethostname()}-{os.getuid()}-{which}"
        return cls(folder / "slurm" / name, period_s)

    def get(self, ask: Callable[[float], str], since: float = 0.0) -> tuple[str, float] | None:
        """The answer, and when it was asked for, seconds since 1970.

        One process asks, the others wait for it. ``None`` where the last answer is new and does
        not reach back far enough: the next one will. Where nothing can be written, everybody asks.

        Args:
            ask: is told how far back the answer must reach, seconds since 1970.
            since: how far back this caller needs it.

        Raises:
            SlurmFault: Slurm did not answer whoever asked.
        """
        try:
            make_private_folder(self.file.parent)
            lock = self.file.with_suffix(".lock").open("a")
        except OSError:
            return ask(since), time.time()
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            before = self._read()
            kept = before.want(since, time.time())
            if not kept.is_new(self.period_s):
                kept = kept.renewed(ask)
            if kept is not before:
                self._write(kept)
            if kept.error:
                raise SlurmFault(kept.answer, SlurmError[kept.error])
            return (kept.answer, kept.asked_at) if kept.since <= since else None

    def _read(self) -> _Kept:
        try:
            kept = _Kept(**json.loads(self.file.read_text()))
            return kept if kept.error in ("", *SlurmError.__members__) else _Kept()
        except (OSError, ValueError, TypeError):
            return _Kept()

    def _write(self, kept: _Kept) -> None:
        part = self.file.with_suffix(".part")
        with suppress(OSError):
            part.write_text(json.dumps(asdict(kept)))
            part.replace(self.file)


def ask_of_site(ask: Callable[[], str], program: str, folder: Path | None) -> str:
    """What Slurm says of the site, asked once for campaigns of a user that begin together.

    Args:
        ask: asks it, by this program.
        folder: for files of all campaigns; ``None`` asks anew.
    """
    if folder is None:
        return ask()
    got = SharedAnswer.of(program, folder, "", _SITE_KEPT_S).get(lambda _: ask())
    return got[0] if got else ask()
