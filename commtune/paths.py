"""What is at a path, told alike by every Python.

Since 3.14, ``Path.exists()`` and its kin say "no" where nobody may look, too. Then a closed folder
would be taken for an empty one.
"""

from __future__ import annotations

import errno
import stat
from pathlib import Path

_NOTHING_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EBADF, errno.ELOOP})


def exists(path: Path) -> bool:
    """Whether anything is there.

    Raises:
        OSError: nobody can tell: a folder is closed, a name too long, a file server away.
    """
    return _mode_of(path) is not None


def is_file(path: Path) -> bool:
    """Whether a regular file is there; raises as ``exists``."""
    return stat.S_ISREG(_mode_of(path) or 0)


def is_folder(path: Path) -> bool:
    """Whether a folder is there; raises as ``exists``."""
    return stat.S_ISDIR(_mode_of(path) or 0)


def _mode_of(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except OSError as error:
        if error.errno in _NOTHING_THERE:
            return None
        raise
    except ValueError:  # a NUL in it
        return None
