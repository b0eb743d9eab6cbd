"""Commands that write a file: where it can't be written, they say why, and what to do."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from components import require_component
from small_disks import SMALL, fill, small_disk
from stored_campaigns import Made
from stores import opened_store

from commtune.app.profiles.plotting import write_plot
from commtune.app.profiles.reporting import write_campaign_report
from commtune.commands.campaigns.init import init_command
from commtune.commands.campaigns.results import results_command
from commtune.commands.reference.findings import findings_reproduce_command
from commtune.db.connection.location import database_url
from commtune.db.repair import back_up
from commtune.documents.files import write_file
from commtune.errors import EnvironmentFault, UserError


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> str:
    """With a campaign."""
    url = f"sqlite:///{tmp_path_factory.mktemp('stored')}/commtune.db"
    with opened_store(url) as store:
        Made(name="night").store(store)
    return url


_WRITE = pytest.mark.parametrize(
    ("name", "write"),
    [
        ("page.html", lambda file, db: write_campaign_report("night", file, None, db)),
        ("plot.svg", lambda file, db: write_plot("night", file, db)),
        ("plot.pdf", lambda file, db: write_plot("night", file, db)),
        ("plot.png", lambda file, db: write_plot("night", file, db)),
        ("table.csv", lambda file, db: results_command(["night"], None, file, db)),
        ("campaign.yaml", lambda file, _: init_command(file, force=True)),
    ],
)


@_WRITE
def test_a_full_disk_says_what_to_do(
    name: str, write: Callable[[Path, str], object], db: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.symlink_to("/dev/full")
    with pytest.raises(EnvironmentFault) as raised:
        write(file, db)
    assert raised.value.message == f"can't write {file}: No space left on device"
    assert raised.value.hint == "free some space, or name another place"


def test_a_report_is_no_folder_where_there_is_a_file(db: str) -> None:
    with pytest.raises(UserError, match="can't write a report as /dev/full") as raised:
        write_campaign_report("night", Path("/dev/full"), None, db)
    assert raised.value.hint.startswith("end it in .html")


def test_a_folder_that_is_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError) as raised:
        findings_reproduce_command("affinity-alltoall", "alps", output=tmp_path / "file")
    assert raised.value.message == f"can't write {tmp_path / 'file'}: File exists"
    assert raised.value.hint == "name another place"


@pytest.mark.root
@_WRITE
def test_a_full_disk_leaves_the_old_file_and_no_half_of_a_new_one(
    name: str, write: Callable[[Path, str], object], db: str, tmp_path: Path
) -> None:
    with small_disk(tmp_path):
        disk = tmp_path / SMALL
        require_component("rights to mount", disk.is_mount())
        (disk / name).write_text("old")
        fill(disk)
        with pytest.raises(EnvironmentFault, match=f"can't write {disk / name}: No space left"):
            write(disk / name, db)
        assert (disk / name).read_text() == "old"
        assert sorted(file.name for file in disk.iterdir()) == sorted(["full", name])


@pytest.mark.root
def test_a_backup_on_a_full_disk_names_the_copy(db: str, tmp_path: Path) -> None:
    with small_disk(tmp_path):
        disk = tmp_path / SMALL
        require_component("rights to mount", disk.is_mount())
        fill(disk)
        with pytest.raises(EnvironmentFault, match=f"can't write {disk}/copy.db: No space left"):
            back_up(database_url(db), disk / "copy.db")
        assert [file.name for file in disk.iterdir()] == ["full"]


def test_a_limit_on_the_size_of_files_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(
            EnvironmentFault, match=f"can't write {file}: File too large"
        ) as raised:
            write_file(file, 2000 * "x")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "ulimit -f" in raised.value.hint
    assert file.read_text() == "old"


def test_a_link_stays_and_the_file_behind_it_keeps_its_mode(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to(file.name)
    write_file(link, "new")
    assert link.is_symlink() and file.read_text() == "new"
    assert file.stat().st_mode & 0o777 == 0o640


def test_open_files_are_written_to_by_their_names(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    write_file(Path(f"/dev/fd/{writing}"), "through a pipe")
    with (tmp_path / "file").open("w+") as opened:
        write_file(Path(f"/dev/fd/{opened.fileno()}"), "into an open file")
        assert opened.read() == "into an open file"
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert pipe.read() == "through a pipe"
