"""Databases that others can have written, and what others can see of ours."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from made_files import give_away

from commtune.db.connection.engine import Database, open_database, open_readable
from commtune.db.connection.location import sqlite_path
from commtune.db.connection.reader import Changes, open_for_reading
from commtune.db.storage.pruning import shrink_file
from commtune.errors import DatabaseFault
from commtune.private_files import TRUSTED_VARIABLE, who_else_wrote


@pytest.fixture
def shared(tmp_path: Path, migrated_sqlite: Path) -> Path:
    """A database in a folder that everybody may enter, as below /tmp."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o755)
    return Path(shutil.copy(migrated_sqlite, folder / "commtune.db"))


@pytest.mark.usefixtures("no_umask")
def test_databases_and_their_folders_are_closed_to_others_under_any_umask(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / "commtune.db"
    with open_database(f"sqlite:///{file}") as database, database.write():
        modes = {one.name: one.stat().st_mode & 0o777 for one in file.parent.iterdir()}
    assert modes.keys() >= {"commtune.db", "commtune.db-wal"}
    assert set(modes.values()) == {0o600}
    assert {one.stat().st_mode & 0o777 for one in (file.parent, file.parent.parent)} == {0o700}


def test_what_a_site_chose_stays(shared: Path) -> None:
    shared.chmod(0o644)
    open_database(f"sqlite:///{shared}").close()
    assert shared.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    ("mode", "of_folder", "why"),
    [
        (0o666, 0o755, "everybody can write it"),
        (0o644, 0o777, "everybody can write its folder"),
        (0o644, 0o1777, ""),  # sticky: others can't replace it
        (0o644, 0o755, ""),
        (0o666, 0o700, ""),  # nobody else gets there
    ],
)
def test_what_others_can_write_is_not_opened(
    shared: Path, mode: int, of_folder: int, why: str
) -> None:
    shared.chmod(mode)
    shared.parent.chmod(of_folder)
    assert who_else_wrote(shared) == why


def test_a_database_in_a_sticky_folder_is_not_opened(shared: Path) -> None:
    shared.parent.chmod(0o1777)
    assert not who_else_wrote(shared)  # others can't replace it, but lay a journal beside it
    for file in (shared, shared.parent / "new.db"):
        with pytest.raises(DatabaseFault, match="everybody can write its folder") as fault:
            open_database(f"sqlite:///{file}")
        assert str(fault.value.hint).startswith("use one in a folder of your own; or,")
    assert [one.name for one in shared.parent.iterdir()] == [shared.name]


def test_a_database_is_opened_where_its_link_led_when_it_was_looked_at(
    shared: Path, tmp_path: Path
) -> None:
    (tmp_path / "link.db").symlink_to(shared)
    assert sqlite_path(f"sqlite:///{tmp_path}/link.db") == shared


@pytest.mark.parametrize("open_", [open_readable, open_database])
def test_a_pipe_or_folder_is_refused_and_not_waited_for(
    tmp_path: Path, open_: Callable[[str], Database]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DatabaseFault, match="it is a pipe or a device, not a regular file"):
        open_(f"sqlite:///{tmp_path}/pipe")
    with pytest.raises(DatabaseFault, match="it is a folder, not a regular file"):
        open_(f"sqlite:///{tmp_path}")


def test_a_file_that_others_can_write_is_neither_watched_nor_shrunk(shared: Path) -> None:
    url = f"sqlite:///{shared}"
    shared.chmod(0o666)
    with closing(Changes(url)) as changes:
        assert changes.version() is None
        with pytest.raises(DatabaseFault, match="everybody can write it"):
            shrink_file(url)
        shared.chmod(0o644)
        assert changes.version() is not None
    shrink_file(url)


@pytest.mark.root
@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
def test_a_log_that_another_user_laid_beside_a_database_is_not_read(
    shared: Path, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared.parent.chmod(0o1777)
    log = Path(f"{shared}{end}")
    log.write_bytes(b"")
    log.chmod(0o600)
    give_away(log)
    url = f"sqlite:///{shared}"
    said = f"is not opened: commtune.db{end} beside it belongs to nobody"
    for refused in (open_database, open_readable, lambda url: open_for_reading(url).__enter__()):
        with pytest.raises(DatabaseFault, match=said):
            refused(url)
    monkeypatch.setenv(TRUSTED_VARIABLE, str(shared))
    assert not who_else_wrote(shared, beside=(end,))


@pytest.mark.root
@pytest.mark.parametrize("mode", [0o755, 0o1777])
def test_the_owner_of_a_folder_can_replace_what_is_in_it(shared: Path, mode: int) -> None:
    shared.chmod(0o600)
    shared.parent.chmod(mode)
    give_away(shared.parent)
    assert who_else_wrote(shared) == "its folder belongs to nobody"


@pytest.mark.root
def test_a_database_that_another_user_laid_there_is_not_opened(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_away(shared)
    url = f"sqlite:///{shared}"
    for refused in (open_database, open_readable, lambda url: open_for_reading(url).__enter__()):
        with pytest.raises(DatabaseFault, match=r"is not opened: it belongs to nobody") as fault:
            refused(url)
        assert fault.value.hint == (
            "use one in a folder of your own; or, if you trust who wrote it: "
            f"export {TRUSTED_VARIABLE}={shared}"
        )
    monkeypatch.setenv(TRUSTED_VARIABLE, f"/elsewhere:{shared}")
    open_readable(url).close()


def test_a_link_is_as_good_as_where_it_leads(shared: Path, tmp_path: Path) -> None:
    shared.chmod(0o666)
    closed = tmp_path / "closed"
    closed.mkdir(0o700)
    (closed / "commtune.db").symlink_to(shared)
    assert who_else_wrote(closed / "commtune.db") == "everybody can write it"


@pytest.mark.parametrize(
    ("mode", "of_root", "is_refused"),
    [
        (0o777, 0o755, True),
        (0o755, 0o755, False),
        (0o1777, 0o755, False),  # sticky: others can't rename what is ours
        (0o777, 0o700, False),  # nobody else gets there
    ],
)
def test_who_can_rename_a_folder_above_can_replace_a_database(
    open_folder: Path, migrated_sqlite: Path, mode: int, of_root: int, *, is_refused: bool
) -> None:
    above = open_folder / "root" / "above"
    (above / "own" / "closed").mkdir(0o700, parents=True)
    file = Path(shutil.copy(migrated_sqlite, above / "own" / "closed" / "commtune.db"))
    above.chmod(mode)
    above.parent.chmod(of_root)
    if not is_refused:
        open_readable(f"sqlite:///{file}").close()
        return
    with pytest.raises(
        DatabaseFault, match=f"is not opened: everybody can write {above}"
    ) as fault:
        open_readable(f"sqlite:///{file}")
    assert fault.value.hint.startswith(f"chmod go-w {above}; or,")


def test_who_can_replace_a_link_can_replace_what_it_leads_to(open_folder: Path) -> None:
    own, above = open_folder / "own", open_folder / "above"
    own.mkdir(0o700)
    above.mkdir()
    (above / "up").symlink_to("../above/link")
    (above / "link").symlink_to(own)
    (own / "commtune.db").touch()
    (open_folder / "link").symlink_to(above / "up")
    linked = open_folder / "link" / "commtune.db"
    assert not who_else_wrote(linked)
    above.chmod(0o777)
    assert who_else_wrote(linked) == f"everybody can write {above}"
    (own / "loop").symlink_to("loop")
    assert not who_else_wrote(own / "loop" / "commtune.db")


@pytest.mark.root
def test_the_owner_of_a_folder_above_and_its_group_are_trusted(open_folder: Path) -> None:
    above = open_folder / "above"
    (above / "own").mkdir(0o700, parents=True)
    file = above / "own" / "commtune.db"
    give_away(above)
    above.chmod(0o2770)
    assert not who_else_wrote(file)
    for mode in (0o777, 0o1777):  # in a sticky folder, its owner can rename all
        above.chmod(mode)
        assert who_else_wrote(file) == f"everybody can write {above}"
    os.chown(above, 0, 0)
    assert not who_else_wrote(file)
