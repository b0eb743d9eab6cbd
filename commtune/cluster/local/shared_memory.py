"""Removes shared memory that killed MPI processes leave in /dev/shm until the next reboot."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

_SHARED_MEMORY = Path("/dev/shm")

#: Names of segments by MPICH, Intel MPI, Open MPI, UCX, and by our benchmark for its canary.
_OURS = re.compile(
    r"(mpich_shm_|mpich_|Intel_MPI_|(vader|sm)_segment\.|ucx_shm|open_mpi\.|commtune-canary-)"
)


def remove_stale_segments(since: float, folder: Path = _SHARED_MEMORY) -> None:
    """Removes our user's segments from ``since`` (s since 1970) on that no process uses."""
    candidates = [path for path in _segments(folder) if _is_ours(path, since)]
    if not candidates:
        return
    used = set(_used(folder))
    for path in candidates:
        if str(path) not in used:
            with contextlib.suppress(OSError):
                path.unlink()


def _segments(folder: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        yield from (path for path in folder.iterdir() if _OURS.match(path.name))


def _is_ours(path: Path, since: float) -> bool:
    try:
        status = path.stat()
    except OSError:
        return False
    # A second of slack, as file systems have coarse timestamps.
    return status.st_uid == os.getuid() and status.st_mtime >= since - 1


def _used(folder: Path) -> Iterator[str]:
    """Yields the files of the folder that a process has mapped or open."""
    prefix = f"{folder}/"
    for process in Path("/proc").glob("[0-9]*"):
        # Open files first: a process that maps a segment and closes it meanwhile is found then.
        with contextlib.suppress(OSError):
            for link in (process / "fd").iterdir():
                with contextlib.suppress(OSError):
                    name = str(link.readlink())
                    if name.startswith(prefix):
                        yield name
        with contextlib.suppress(OSError):
            for line in (process / "maps").read_text(errors="replace").splitlines():
                name = line[line.find("/") :] if "/" in line else ""
                if name.startswith(prefix):
                    yield name
