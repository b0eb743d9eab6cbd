"""SQLite on a file system of blocks that are smaller than a page of memory, when it is full."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from components import require_component
from waiting import PATIENCE_S

from commtune.db.connection.engine import open_database
from commtune.filesystems import has_small_blocks


@pytest.fixture
def small_blocks(tmp_path: Path) -> Iterator[Path]:
    """A disk of ext4 with blocks of 1 KiB, as mkfs makes them for small disks."""
    image, disk = tmp_path / "image", tmp_path / "disk"
    disk.mkdir()
    with image.open("wb") as file:
        file.truncate(8 * 2**20)
    making = (("mkfs.ext4", "-q", "-b", "1024", image), ("mount", "-o", "loop", image, disk))
    is_root = os.getuid() == 0
    made = is_root and all(subprocess.run(words, check=False).returncode == 0 for words in making)
    require_component("root, mkfs.ext4 and loop devices", made)
    yield disk
    subprocess.run(("umount", "--lazy", disk), check=True)


#: Another process, which a bus error would end: it begins with the database again and again, and
#: each time there is one more block to be had.
_BEGINS = """
import os
import sys
from contextlib import suppress
from commtune.db.connection.engine import open_database
from commtune.errors import CommtuneError
url, full = sys.argv[1:]
for _ in range(64):
    os.truncate(full, os.stat(full).st_size - 1024)
    with suppress(CommtuneError):
        open_database(url).close()
"""


def test_a_full_disk_ends_nobody_with_a_bus_error(small_blocks: Path) -> None:
    assert has_small_blocks(small_blocks)
    url, full = f"sqlite:///{small_blocks}/commtune.db", small_blocks / "full"
    open_database(url).close()
    with suppress(OSError), full.open("wb", buffering=0) as file:
        while file.write(bytes(1024)):
            pass
    said = subprocess.run(
        [sys.executable, "-c", _BEGINS, url, str(full)],
        env={**os.environ, "COMMTUNE_DB_WAIT": "0"},
        text=True,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert said.returncode == 0, said
