"""Disks of a cluster's that tests fill."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: In the folder of a cluster; all nodes see it.
SMALL = "small"


@contextmanager
def small_disk(cluster: Path) -> Iterator[None]:
    """A disk of 32 MiB in the folder of a cluster that starts within; none where none may be."""
    disk = cluster / SMALL
    disk.mkdir()
    disk.chmod(0o1777)
    options = ["-t", "tmpfs", "-o", "size=32m,mode=1777", "none", str(disk)]
    mounted = subprocess.run(["mount", *options], stderr=subprocess.DEVNULL, check=False)
    try:
        yield
    finally:
        if not mounted.returncode:
            subprocess.run(["umount", "--lazy", str(disk)], check=True)


def folder_on_small_disk(cluster: Path, owner: Path) -> Path:
    """A new folder on the disk, which is empty otherwise, of whom another file is."""
    disk = cluster / SMALL
    assert os.path.ismount(disk), "no file systems can be mounted here"
    for file in disk.iterdir():
        shutil.rmtree(file)
    folder = disk / "files"
    folder.mkdir()
    found = owner.stat()
    os.chown(folder, found.st_uid, found.st_gid)
    return folder


def fill(folder: Path) -> Path:
    """Fills the disk of a folder; returns the file that does."""
    file = folder / "full"
    with suppress(OSError), file.open("wb", buffering=0) as full:
        while full.write(bytes(4096)):
            pass
    return file
