"""``commtune db``."""

from __future__ import annotations

from pathlib import Path

import pytest

from commtune.commands.setup import database
from commtune.commands.setup.doctor import doctor_command
from commtune.errors import NoAnswer, UserError


def test_a_mistyped_file_is_no_database_to_upgrade(tmp_path: Path) -> None:
    with pytest.raises(NoAnswer, match="there is no database at"):
        database.db_upgrade_command(str(tmp_path / "typo.db"))
    assert list(tmp_path.iterdir()) == []


def test_the_path_is_one_that_sqlite3_opens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for written in (str(tmp_path / "a.db"), f"sqlite:///{tmp_path / 'a.db'}"):
        database.db_path_command(written)
        assert capsys.readouterr().out == f"{tmp_path / 'a.db'}\n"


def test_a_server_is_shown_without_its_password(capsys: pytest.CaptureFixture[str]) -> None:
    database.db_path_command("postgresql://me:secret@host/runs")
    said = capsys.readouterr().out
    assert "host/runs" in said
    assert "secret" not in said


def test_the_doctor_says_that_it_does_not_understand_a_url(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(UserError, match=r"the database URL mysql://.* is not understood"):
        doctor_command("mysql://me:secret@host/runs")
    monkeypatch.setenv("COMMTUNE_DB", "oracle://host/runs")
    with pytest.raises(UserError, match=r"the database URL oracle://host/runs is not understood"):
        doctor_command()


@pytest.mark.parametrize(
    "url", ["postgresql://me@nowhere.invalid/runs", "https://nowhere.invalid"]
)
def test_the_doctor_asks_no_server(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    doctor_command(url)
    assert "backend" in capsys.readouterr().out
