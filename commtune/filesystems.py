"""Which file systems are shared between machines, and which one holds a folder.

Standard library only: what answers from the shell imports this.
"""

from __future__ import annotations

import mmap
import os
import re
from contextlib import suppress
from pathlib import Path, PurePath

from commtune.errors import NO_ROOM

#: Linux's table of what is mounted where, for this process.
MOUNTINFO = Path("/proc/self/mountinfo")

#: Kinds on which several machines see one file. SQLite's write-ahead log needs memory that all
#: its users share, which these don't give across machines.
_NETWORK = frozenset(
    (
        *("9p", "afs", "beegfs", "ceph", "cifs", "gfs2", "glusterfs", "gpfs", "lustre", "nfs"),
        *("nfs4", "ocfs2", "orangefs", "panfs", "pvfs2", "smb3", "smbfs", "virtiofs", "wekafs"),
        *("fuse.beegfs", "fuse.ceph", "fuse.glusterfs", "fuse.sshfs"),
    )
)

#: What a run writes, with much to spare, bytes.
_ROOM = 2**18


def has_room(folder: Path) -> bool:
    """Whether files can be written into a folder: neither the disk is full nor a quota reached."""
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
    """Whether a file system gives out less than a page of memory at a time (ext4 with 1 KiB)."""
    return os.statvfs(folder).f_frsize < mmap.PAGESIZE


def filesystem_type(folder: PurePath, mountinfo: str) -> str:
    """The kind of file system that holds an absolute path without symbolic links.

    Args:
        mountinfo: text of ``/proc/self/mountinfo``.

    Returns:
        The kind, such as ``ext4``; empty where no mount holds the path.
    """
    best_depth, best_kind = -1, ""
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        columns = fields.split()
        if len(columns) < 5 or not rest:
            continue
        mount = PurePath(_unescape(columns[4]))
        # Of two mounts at one place the later one covers the earlier (autofs, then nfs).
        if folder.is_relative_to(mount) and len(mount.parts) >= best_depth:
            best_depth, best_kind = len(mount.parts), rest.split()[0]
    return best_kind


def is_network(kind: str) -> bool:
    """Whether a kind of file system is shared between machines."""
    return kind in _NETWORK


def network_type(folder: Path) -> str:
    """The kind of file system of a folder if it is a network one, else empty."""
    try:
        mountinfo = MOUNTINFO.read_text(errors="replace")
    except OSError:  # no Linux: nothing is known, and WAL is tried
        return ""
    kind = filesystem_type(folder.resolve(), mountinfo)
    return kind if is_network(kind) else ""


def _unescape(text: str) -> str:
    """Undoes the kernel's octal escapes of blanks and backslashes."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), text)
