"""Tests for files and folders that raise errors in all versions of Python; reading without any.

Since 3.14, ``Path.exists()`` and similar methods return false without permission to look, so a
folder without access would seem to be empty.
"""

from __future__ import annotations

import errno
import stat
from pathlib import Path

_NOTHING_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EBADF, errno.ELOOP})


def exists(path: Path) -> bool:
    """Whether a path exists.

    Raises:
        OSError: it is unknown: no access to a folder, a name is too long, a file server is down.
    """
    return _mode_of(path) is not None


def is_file(path: Path) -> bool:
    """Whether a path is a regular file; raises as ``exists``."""
    return stat.S_ISREG(_mode_of(path) or 0)


def is_folder(path: Path) -> bool:
    """Whether a path is a folder; raises as ``exists``."""
    return stat.S_ISDIR(_mode_of(path) or 0)


def read_quietly(path: Path) -> str:
    """Reads a file; empty if it is missing, or the kernel refuses (a device that is down)."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _mode_of(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except OSError as error:
        if error.errno in _NOTHING_THERE:
            return None
        raise
    except ValueError:  # the path has a NUL
        return None
