"""Detects the type of file system of a folder, and whether machines share it.

Uses the standard library only, since commands with fast start-up import it.
"""

from __future__ import annotations

import mmap
import os
import re
from contextlib import suppress
from pathlib import Path, PurePath

from commtune.errors import NO_ROOM
from commtune.paths import read_quietly

#: Linux's mount table of this process.
MOUNTINFO = Path("/proc/self/mountinfo")

#: Types on which several machines share files. SQLite's write-ahead log needs memory that all its
#: users share, and these don't provide that across machines.
_NETWORK = frozenset(
    (
        *("9p", "afs", "beegfs", "ceph", "cifs", "gfs2", "glusterfs", "gpfs", "lustre", "nfs"),
        *("nfs4", "ocfs2", "orangefs", "panfs", "pvfs2", "smb3", "smbfs", "virtiofs", "wekafs"),
        *("fuse.beegfs", "fuse.ceph", "fuse.glusterfs", "fuse.sshfs"),
    )
)

#: An upper bound on what a run writes, bytes.
_ROOM = 2**18


def has_room(folder: Path) -> bool:
    """Whether a folder has room for files: the disk isn't full, and no quota is reached."""
    probe = folder / f".room-{os.getpid()}"
    try:
        probe.write_bytes(bytes(_ROOM))
    except OSError as error:
        return error.errno not in NO_ROOM
    finally:
        with suppress(OSError):
            probe.unlink()
    return True


def has_small_blocks(folder: Path) -> bool:
    """Whether the blocks of a file system are smaller than a page of memory (ext4 with 1 KiB)."""
    return os.statvfs(folder).f_frsize < mmap.PAGESIZE


def filesystem_type(folder: PurePath, mountinfo: str) -> str:
    """Returns the type of file system that holds an absolute path without symbolic links.

    Args:
        mountinfo: text of ``/proc/self/mountinfo``.

    Returns:
        The type, such as ``ext4``; empty if no mount point holds the path.
    """
    best_depth, best_kind = -1, ""
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        columns = fields.split()
        if len(columns) < 5 or not rest:
            continue
        mount = PurePath(_unescape(columns[4]))
        # Of two mounts at one path the later hides the earlier (autofs, then nfs).
        if folder.is_relative_to(mount) and len(mount.parts) >= best_depth:
            best_depth, best_kind = len(mount.parts), rest.split()[0]
    return best_kind


def is_network(kind: str) -> bool:
    """Whether a type of file system is shared between machines."""
    return kind in _NETWORK


def network_type(folder: Path) -> str:
    """Returns the type of a folder's file system if it is a network one, else empty."""
    # Elsewhere than on Linux the type is unknown, and WAL is tried.
    kind = filesystem_type(folder.resolve(), read_quietly(MOUNTINFO))
    return kind if is_network(kind) else ""


def _unescape(text: str) -> str:
    """Replaces the kernel's octal escapes of spaces and backslashes."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), text)
