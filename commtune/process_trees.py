"""Finds process trees, by a marker and by adoption of orphans, and ends them completely."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

import psutil

#: An environment variable of all processes of a run, by which a later controller finds what a
#: killed one left behind, whatever process group or session it moved to.
MARKER = "COMMTUNE_RUN_ID"

_PR_SET_CHILD_SUBREAPER = 36
#: Rounds of searching and killing before giving up, since the kernel may hold processes.
_MOST_SWEEPS = 100

#: Children that ``process`` started and has not yet waited for. The lock keeps a child that
#: another thread has just started, but not yet added here, from being taken for an orphan.
started_pids: set[int] = set()
start_lock = threading.Lock()


def end_tree(pid: int, marker: str, grace_s: float, others: Collection[int]) -> None:
    """Ends a child process and all that it started.

    Args:
        marker: run identifier; children with another one are of other trees.
        grace_s: seconds to wait after SIGTERM; 0 kills at once.
        others: children that existed before this one was started.
    """
    # Processes that ignore signals, changed session, lost their parent or cleared their
    # environment are found as well, since orphans become our children. The exit status of the
    # child itself is left to its starter.

    def roots() -> list[psutil.Process]:
        return _strays(pid, marker, others)

    if grace_s:
        # On SIGTERM, a launcher ends its ranks and removes its shared-memory files.
        everybody = with_descendants(roots())
        _signal(list_processes([pid]), signal.SIGTERM)
        _wait_gone(everybody, grace_s)
    _kill_until_none(roots)


def end_marked(markers: set[str]) -> None:
    """Ends every process on this machine that carries one of the markers."""
    _kill_until_none(lambda: _marked(markers))


def end_running(program: str, argument: str) -> None:
    """Ends every process of this user that runs a program with an argument.

    It is for programs that must not have a marker, since their children would inherit it.
    """
    _kill_until_none(lambda: _running(program, argument))


def _kill_until_none(roots: Callable[[], list[psutil.Process]]) -> None:
    """Kills trees until no process is found."""
    for _ in range(_MOST_SWEEPS):
        looked_at = roots()
        found = with_descendants(looked_at, freeze=True)
        # A process that ended during the search may have left orphans, which we adopted.
        if not found and roots() == looked_at:
            return
        _signal(found, signal.SIGKILL)
        _wait_gone(found, 1.0)


def _strays(pid: int, marker: str, others: Collection[int]) -> list[psutil.Process]:
    """Returns our children that belong to a tree: its root, and adopted orphans."""
    # Ended orphans are reaped, as nobody else waits for them. An orphan without a marker counts as
    # one of this tree only while no other tree runs.
    with start_lock:
        known = (started_pids | set(others)) - {pid}
        alone = started_pids <= {pid}
        mine = [c for c in child_pids() if c not in known and (c == pid or not _collected(c))]
    return [
        child
        for child in list_processes(mine)
        if child.pid == pid or _belongs(_marker_of(child), marker, alone)
    ]


def _belongs(seen: str | None, marker: str, alone: bool) -> bool:
    return seen == marker if seen else alone


def _collected(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def child_pids(pid: int | str = "self") -> list[int]:
    # This is a hundred times faster than a search of all processes. The kernel's list may skip
    # entries only while a child is reaped: our children are reaped only by us, and a stopped
    # process reaps none.
    threads: list[Path] = []
    with contextlib.suppress(OSError):  # the process ended
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    pids = []
    for thread in threads:
        with contextlib.suppress(OSError):  # the thread ended, another one has its children
            pids += [int(word) for word in (thread / "children").read_text().split()]
    return pids


def with_descendants(
    roots: Iterable[psutil.Process], *, freeze: bool = False
) -> list[psutil.Process]:
    """Returns the living processes of trees; ``freeze`` stops each by SIGSTOP."""
    # A process is stopped before the search for its children, so that it can't start more.
    found = {}
    waiting = list(roots)
    while waiting:
        process = waiting.pop()
        if process.pid not in found and _is_alive(process):
            found[process.pid] = process
            _signal([process] if freeze else [], signal.SIGSTOP)
            waiting += list_processes(child_pids(process.pid))
    return list(found.values())


def _marked(markers: set[str]) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter()
        if process.pid != os.getpid() and _marker_of(process) in markers and _is_alive(process)
    ]


def _running(program: str, argument: str) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter()
        if _runs(process, program, argument) and _is_alive(process)
    ]


def _runs(process: psutil.Process, program: str, argument: str) -> bool:
    try:
        words = process.cmdline()
        ours = process.uids().effective == os.geteuid()
    except (psutil.Error, OSError):
        return False
    return ours and argument in words and Path(words[0]).name == program


def _marker_of(process: psutil.Process) -> str | None:
    try:
        return process.environ().get(MARKER)
    except (psutil.Error, OSError):  # another user's process, or one that has ended
        return None


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def list_processes(pids: Iterable[int]) -> Iterator[psutil.Process]:
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            yield psutil.Process(pid)


def _signal(processes: Iterable[psutil.Process], number: int) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            process.send_signal(number)


def _wait_gone(processes: Sequence[psutil.Process], timeout_s: float) -> None:
    # psutil.wait_procs would reap the exit status that the starter waits for.
    deadline = time.monotonic() + timeout_s
    while any(_is_alive(process) for process in processes) and time.monotonic() < deadline:
        time.sleep(0.005)


def become_subreaper() -> None:
    """Lets this process adopt orphans among its descendants (Linux), so that none is lost."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
