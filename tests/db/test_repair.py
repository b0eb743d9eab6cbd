"""Repairs of SQLite files with damaged pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from stored_campaigns import Made
from stores import opened_store

from commtune.db.connection.engine import open_readable
from commtune.db.repair import set_damaged_apart
from commtune.errors import CommtuneError, DatabaseFault

_PAGE = 4096


def _store_two(path: Path) -> bytearray:
    """Stores two campaigns in a database; returns its bytes."""
    with opened_store(path) as store:
        for name in ("first", "second"):
            Made(name=name, trials=2, blocks=3, sizes=(8, 65536)).store(store)
    return bytearray(path.read_bytes())


def test_a_damaged_page_costs_its_campaigns_and_no_repair_ends_in_a_traceback(
    tmp_path: Path,
) -> None:
    path = tmp_path / "commtune.db"
    content = _store_two(path)
    kept = set()
    for page in range(1, len(content) // _PAGE, 2):
        damaged = content.copy()
        damaged[page * _PAGE] = 0x55
        path.write_bytes(damaged)
        try:
            repair = set_damaged_apart(f"sqlite:///{path}")
        except CommtuneError as error:
            assert "damaged" in error.message or "can be read" in error.message
        else:
            kept.add(repair.kept if repair else None)
    assert ("first", "second") in kept


def test_sqlites_own_message_need_not_be_text(tmp_path: Path) -> None:
    path = tmp_path / "commtune.db"
    content = _store_two(path)
    path.write_bytes(content.replace(b"CREATE TABLE systems", b"CREATE T\xc3\x28BLE systems"))
    url = f"sqlite:///{path}"
    with pytest.raises(DatabaseFault, match=f"{path} is damaged"):
        open_readable(url)
    with pytest.raises(DatabaseFault, match="no campaign of the database"):
        set_damaged_apart(url)


def test_what_others_can_write_is_not_repaired(tmp_path: Path) -> None:
    path = tmp_path / "open" / "commtune.db"
    path.parent.mkdir()
    path.parent.chmod(0o755)
    _store_two(path)
    path.chmod(0o666)
    with pytest.raises(DatabaseFault, match="is not opened: everybody can write it"):
        set_damaged_apart(f"sqlite:///{path}")
    assert [one.name for one in path.parent.iterdir()] == [path.name]
