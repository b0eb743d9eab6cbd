"""Network file systems are noticed in the kernel's mount table."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from commtune import filesystems
from commtune.db.connection.engine import open_database
from commtune.filesystems import filesystem_type, is_network, network_type

MOUNTS = """\
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
30 22 0:25 / /proc rw,nosuid - proc proc rw
41 22 0:40 / /home rw,relatime shared:20 - autofs systemd-1 rw,fd=45
42 41 0:41 / /home rw,relatime shared:21 master:3 - nfs4 server:/home rw,vers=4.2
43 42 0:42 /ann /home/ann/local rw - xfs /dev/nvme0n1 rw
44 22 0:43 / /scratch rw - lustre 10.0.0.1@o2ib:/scratch rw
45 22 0:44 / /proj\\040one rw - gpfs fs1 rw
46 22 0:45 / /bee rw - beegfs beegfs_nodev rw
47 22 0:46 / /win rw - cifs //server/share rw
broken line
"""


@pytest.mark.parametrize(
    ("folder", "kind", "network"),
    [
        ("/var/lib", "ext4", False),
        ("/home/ann/.local/share/commtune", "nfs4", True),
        ("/home/ann/local/x", "xfs", False),
        ("/homework", "ext4", False),
        ("/scratch/ann", "lustre", True),
        ("/proj one/data", "gpfs", True),
        ("/bee", "beegfs", True),
        ("/win/d", "cifs", True),
    ],
)
def test_the_deepest_and_latest_mount_counts(folder: str, kind: str, network: bool) -> None:
    assert filesystem_type(PurePosixPath(folder), MOUNTS) == kind
    assert is_network(kind) is network


def test_nothing_mounted_is_no_kind() -> None:
    assert filesystem_type(PurePosixPath("/x"), "") == ""
    assert not is_network("")


def test_this_machine_answers(tmp_path: Path) -> None:
    assert network_type(Path("/proc")) == ""
    table = filesystems.MOUNTINFO.read_text()
    assert filesystem_type(PurePosixPath("/proc"), table) == "proc"
    # Inside a chroot the table doesn't hold the root; then nothing is known, which means local.
    rooted = any(line.split()[4] == "/" for line in table.splitlines())
    assert bool(filesystem_type(PurePosixPath(tmp_path.resolve()), table)) or not rooted


def test_sqlite_on_a_network_file_system_is_careful_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/commtune.db"
    local = open_database(url)
    local.close()
    table = tmp_path / "mountinfo"
    table.write_text(f"22 1 0:1 / {tmp_path.resolve()} rw - nfs4 server:/home rw\n")
    monkeypatch.setattr(filesystems, "MOUNTINFO", table)
    careful = open_database(url)
    with careful.read() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "delete"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
    careful.close()
    assert local.warnings == ()
    (warning,) = careful.warnings
    assert "nfs4" in warning and "PostgreSQL" in warning and "--db" in warning


def test_sqlite_on_a_local_disk_uses_the_write_ahead_log(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path}/commtune.db")
    with database.read() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 1
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 10_000
    database.close()
