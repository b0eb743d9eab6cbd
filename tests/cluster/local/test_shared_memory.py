"""Leftover segments go; those in use, other people's and older ones stay."""

import mmap
import os
import subprocess
import sys
import time
from pathlib import Path

from commtune.cluster.local.shared_memory import remove_stale_segments


def test_only_unused_segments_of_mpi_are_removed(tmp_path: Path) -> None:
    since = time.time()
    names = ["mpich_shm_1_0", "Intel_MPI_x", "sm_segment.node.0", "database", "mpich_shm_used"]
    for name in names:
        (tmp_path / name).write_bytes(bytes(4096))
    old = tmp_path / "mpich_shm_old"
    old.write_bytes(b"x")
    os.utime(old, (since - 100, since - 100))

    with (tmp_path / "mpich_shm_used").open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), 4096)
    remove_stale_segments(since, tmp_path)

    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"database", "mpich_shm_used", "mpich_shm_old"}
    mapped.close()
    remove_stale_segments(since, tmp_path)
    assert not (tmp_path / "mpich_shm_used").exists()


def test_a_file_that_another_process_holds_open_stays(tmp_path: Path) -> None:
    segment = tmp_path / "mpich_shm_held"
    segment.write_bytes(b"x")
    code = "import sys; f = open(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(segment)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    remove_stale_segments(0.0, tmp_path)
    assert segment.exists()
    holder.communicate()
    remove_stale_segments(0.0, tmp_path)
    assert not segment.exists()
