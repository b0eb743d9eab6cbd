"""Shares Slurm's answers between a user's controllers on a machine, to spare slurmctld."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from commtune.cluster.slurm.faults import SlurmError, SlurmFault
from commtune.model import content_key
from commtune.private_files import make_private_folder, replace_own_file

#: Seconds for which queries start as early as the earliest time that a process asked for.
_WISH_KEPT_S = 600.0
#: Seconds for which an answer about the site is valid.
_SITE_KEPT_S = 120.0
#: Seconds for which an error is valid.
_FAULT_KEPT_S = 5.0


@dataclass(frozen=True)
class _Kept:
    """An answer, and the start of the next query's period. Times are in seconds since 1970."""

    asked_at: float = 0.0
    answered_at: float = 0.0
    since: float = 0.0  # start of the answer's period
    wanted_since: float = 0.0  # the earliest start that a process asked for
    wanted_at: float = 0.0  # when it asked
    answer: str = ""
    error: str = ""  # name of the error whose message ``answer`` is; empty for none

    def is_new(self, period_s: float) -> bool:
        """Whether the answer is valid; its age counts from its arrival, however long it took."""
        kept_s = min(period_s, _FAULT_KEPT_S) if self.error else period_s
        return 0 <= time.time() - self.answered_at < kept_s

    def renewed(self, ask: Callable[[float], str]) -> _Kept:
        """Asks Slurm again; keeps its answer, or its error."""
        began, reach = time.time(), self.wanted_since
        try:
            answer, error = ask(reach), ""
        except SlurmFault as fault:
            answer, error = fault.message, fault.error.name
        return replace(
            self, asked_at=began, answered_at=time.time(), since=reach, answer=answer, error=error
        )

    def want(self, since: float, now: float) -> _Kept:
        """Lets the next query start at ``since``, if no process asked for an earlier start."""
        if since < self.wanted_since or not 0 <= now - self.wanted_at < _WISH_KEPT_S:
            return replace(self, wanted_since=since, wanted_at=now)
        return self


@dataclass(frozen=True)
class SharedAnswer:
    """The last answer to one query, for one user, machine and cluster, in a file."""

    file: Path
    period_s: float  # seconds for which an answer is valid

    @classmethod
    def of(cls, program: str, folder: Path, cluster: str, period_s: float) -> SharedAnswer:
        """Returns the answer of a program for this user; all campaigns share ``folder``."""
        found = shutil.which(program) or ""
        which = content_key({"of": [os.environ.get("SLURM_CONF", ""), cluster, found]})[:8]
        name = f"{program}-{socket.gethostname()}-{os.getuid()}-{which}"
        return cls(folder / "slurm" / name, period_s)

    def get(self, ask: Callable[[float], str], since: float = 0.0) -> tuple[str, float] | None:
        """Returns a valid answer, and when it was asked for, in seconds since 1970.

        One process asks while the others wait. ``None`` if the valid answer starts too late for
        this caller; the next one won't. If the file can't be written or locked, each process asks
        itself.

        Args:
            ask: queries Slurm, from this time on (seconds since 1970).
            since: start of the period that this caller needs, seconds since 1970.

        Raises:
            SlurmFault: Slurm did not answer the process that asked.
        """
        with ExitStack() as stack:
            try:
                make_private_folder(self.file.parent)
                lock = stack.enter_context(self.file.with_suffix(".lock").open("a"))
                fcntl.flock(lock, fcntl.LOCK_EX)
            except OSError:  # also where the file system has no locks, as some Lustre
                return ask(since), time.time()
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
        with suppress(OSError):
            replace_own_file(self.file, json.dumps(asdict(kept)))


def ask_of_site(ask: Callable[[], str], program: str, folder: Path) -> str:
    """Returns Slurm's answer about the site; campaigns that begin together ask only once.

    Args:
        folder: where campaigns share Slurm's answers.
    """
    got = SharedAnswer.of(program, folder, "", _SITE_KEPT_S).get(lambda _: ask())
    return got[0] if got else ask()
