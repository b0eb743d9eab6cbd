"""``commtune db``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commtune.commands.setup import database
from commtune.commands.setup.doctor import doctor_command
from commtune.errors import NoAnswer


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


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("COMMTUNE_DB", "oracle://host/runs", "the database URL oracle://host/runs is not under"),
        ("COMMTUNE_DB", "mysql://me:s3cret@host/runs", "the database URL mysql://me:***@host"),
        ("COMMTUNE_DB_FILE", "/nowhere/url", "COMMTUNE_DB_FILE=/nowhere/url can't be read"),
    ],
)
def test_the_doctor_says_that_it_finds_no_database_and_goes_on(
    variable: str,
    value: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("COMMTUNE_DB", raising=False)
    monkeypatch.setenv(variable, value)
    doctor_command(json_output=True)
    found = {check["area"]: check for check in json.loads(capsys.readouterr().out)}
    assert found["database"]["status"] == "missing"
    assert said in found["database"]["what"]
    assert "s3cret" not in found["database"]["what"]
    assert "backend" in found


@pytest.mark.parametrize(
    "url", ["postgresql://me@nowhere.invalid/runs", "https://nowhere.invalid"]
)
def test_the_doctor_asks_no_server(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    doctor_command(url)
    assert "backend" in capsys.readouterr().out
