"""The one place that starts processes.

Argument lists, never a shell; an explicit environment, never the inherited one; a time limit;
and at the end, however it comes, nothing of the started tree is left. While a child runs the
controller sleeps in one system call, so that it takes no time on cores that measure.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

import psutil

from commtune.errors import MissingComponent

#: Every process that commtune starts for a run carries this variable, so that a later controller
#: finds what a killed one left behind, whatever process group or session it moved to.
MARKER = "COMMTUNE_RUN_ID"

_PR_SET_CHILD_SUBREAPER = 36
_TAIL_BYTES = 4000
_GRACE_S = 0.5


@dataclass(frozen=True)
class Completed:
    """How a process ended.

    Attributes:
        exit_code: exit status, 0 to 255; ``None`` when a signal ended it.
        signal: number of the signal that ended it, or ``None``.
        timed_out: the time limit was over and the tree was ended for it.
        wall_s: from start to end, seconds.
        output: what it printed, standard output and error together; the last 4,000 bytes only,
            unless all of it was asked for.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    wall_s: float
    output: str

    @property
    def ok(self) -> bool:
        """Whether it exited by itself with status 0."""
        return self.exit_code == 0 and not self.timed_out


def run(
    arguments: Sequence[str | os.PathLike[str]],
    *,
    environment: Mapping[str, str],
    timeout_s: float,
    cwd: Path | None = None,
    marker: str = "",
    whole_output: bool = False,
) -> Completed:
    """Runs a program to its end, or ends it and all that it started when the time is over.

    Args:
        arguments: program and arguments, passed unchanged.
        environment: the whole environment of the program.
        timeout_s: seconds it may take.
        marker: run identifier to find left-over processes by.
        whole_output: keep all of the output, not just its tail.

    Raises:
        MissingComponent: the program can't be started.
        KeyboardInterrupt: as it came, after the tree was ended.
    """
    _become_subreaper()
    full_environment = {**environment, **({MARKER: marker} if marker else {})}
    with tempfile.TemporaryFile() as output:
        started = time.monotonic()
        child = _start([os.fspath(a) for a in arguments], full_environment, cwd, output)
        timed_out = False
        try:
            timed_out = not _wait(child, timeout_s)
        finally:
            end_tree(child.pid, marker=marker, gently=timed_out)
            status = child.wait()
        return Completed(
            exit_code=status if status >= 0 else None,
            signal=-status if status < 0 else None,
            timed_out=timed_out,
            wall_s=time.monotonic() - started,
            output=_read(output, None if whole_output else _TAIL_BYTES),
        )


def replace(arguments: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Becomes another program (exec): same process, its signals and exit code are the caller's.

    Raises:
        MissingComponent: the program can't be started.
    """
    try:
        os.execvpe(arguments[0], list(arguments), dict(environment))
    except OSError as error:
        raise MissingComponent(
            f"can't start {arguments[0]}: {error.strerror}",
            hint="check the command's name and that it is on PATH",
        ) from error


def end_tree(pid: int, *, marker: str = "", gently: bool = False) -> int:
    """Ends a process, all its descendants, and everything that carries the marker.

    Processes that ignore signals, changed session, or lost their parent are found as well.
    Returns how many were ended. The process itself is left to its parent to be waited for.
    """
    if gently:
        # A launcher that is asked first takes its ranks and shared-memory files along.
        _signal(_living([pid]), signal.SIGTERM)
        _wait_gone(_members(pid, marker), _GRACE_S)
    return _kill_until_none(lambda: _members(pid, marker), keep=pid)


def end_marked(markers: set[str]) -> int:
    """Ends every process on this machine that carries one of the markers; returns how many."""
    return _kill_until_none(lambda: _marked(markers))


def _kill_until_none(members: Callable[[], list[psutil.Process]], keep: int = 0) -> int:
    ended: set[int] = set()
    # Again until none is found: between looking and killing, a process can fork.
    for _ in range(100):
        found = members()
        if not found:
            break
        ended.update(process.pid for process in found)
        _signal(found, signal.SIGKILL)
        _wait_gone(found, 1.0)
        _reap(found, keep)
    return len(ended)


def _start(
    arguments: list[str], environment: dict[str, str], cwd: Path | None, output: IO[bytes]
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            arguments,
            env=environment,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C is for the controller; it ends the tree in its own order.
            start_new_session=True,
        )
    except OSError as error:
        raise MissingComponent(
            f"can't start {arguments[0]}: {error.strerror}",
            hint="run 'commtune doctor' to see what this machine has",
        ) from error


def _wait(child: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Sleeps until the child ends or the time is over; True if it ended."""
    try:
        handle = os.pidfd_open(child.pid)
    except (AttributeError, OSError):  # not Linux, or a kernel before 5.3: Popen polls
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout_s)
        return child.poll() is not None
    try:
        poller = select.poll()
        poller.register(handle, select.POLLIN)
        return bool(poller.poll(max(0.0, timeout_s) * 1000))
    finally:
        os.close(handle)


def _members(pid: int, marker: str) -> list[psutil.Process]:
    """The living processes of a tree: descendants, strays adopted by us, marked ones."""
    found = {process.pid: process for process in _living([pid])}
    for process in list(found.values()):
        with contextlib.suppress(psutil.Error):
            found.update({child.pid: child for child in process.children(recursive=True)})
    with contextlib.suppress(psutil.Error):
        for child in psutil.Process().children(recursive=False):
            if _session(child.pid) == pid or (marker and _marker_of(child) == marker):
                found[child.pid] = child
                found.update({p.pid: p for p in child.children(recursive=True)})
    return [process for process in found.values() if _is_alive(process)]


def _marked(markers: set[str]) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter()
        if process.pid != os.getpid() and _marker_of(process) in markers and _is_alive(process)
    ]


def _marker_of(process: psutil.Process) -> str | None:
    try:
        return process.environ().get(MARKER)
    except (psutil.Error, OSError):  # another user's, or gone meanwhile
        return None


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _living(pids: Sequence[int]) -> Iterator[psutil.Process]:
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            if _is_alive(process):
                yield process


def _signal(processes: Iterable[psutil.Process], number: int) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            process.send_signal(number)


def _wait_gone(processes: Sequence[psutil.Process], timeout_s: float) -> None:
    # Not psutil.wait_procs: it would collect the exit status that the starter waits for.
    deadline = time.monotonic() + timeout_s
    while any(_is_alive(process) for process in processes) and time.monotonic() < deadline:
        time.sleep(0.005)


def _reap(processes: Iterable[psutil.Process], keep: int) -> None:
    """Collects those that were re-parented to us; ``keep`` is waited for by its starter."""
    for process in processes:
        if process.pid != keep:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)


def _become_subreaper() -> None:
    """Makes orphans of our descendants our children (Linux), so that none gets out of sight."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _read(output: IO[bytes], limit: int | None) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(0 if limit is None else max(0, size - limit))
    return output.read().decode(errors="replace")
