"""``commtune results``: where the table goes, and in which format."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from command_line import ROOT
from pyarrow import parquet  # type: ignore[import-untyped,unused-ignore]
from stored_campaigns import Made
from stores import opened_store

from commtune.commands.campaigns.results import results_command
from commtune.db.queries.results import COLUMNS
from commtune.errors import UserError


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database with two campaigns."""
    file = tmp_path_factory.mktemp("results") / "commtune.db"
    with opened_store(file) as store:
        for name in ("night", "day"):
            Made(name=name, trials=4, blocks=1).store(store)
    return str(file)


def test_without_a_file_it_prints_csv_of_all_campaigns(
    db: str, capsys: pytest.CaptureFixture[str]
) -> None:
    results_command(None, None, None, db)
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {row["campaign"] for row in rows} == {"night", "day"}
    assert list(rows[0])[: len(COLUMNS)] == list(COLUMNS)


def test_a_file_is_written_as_it_ends(
    db: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / f"results.{format}" for format in ("csv", "jsonl", "parquet")]
    for file in files:
        results_command(["day"], None, file, db)
    with files[0].open(newline="") as opened:
        count = len(list(csv.DictReader(opened)))
    said = capsys.readouterr().out.splitlines()
    assert said == [f"wrote {file}: {count} rows" for file in files]
    lines = [json.loads(line) for line in files[1].read_text().splitlines()]
    table = parquet.read_table(files[2])
    assert [line["median_s"] for line in lines] == table["median_s"].to_pylist()
    assert set(lines[0]) == set(COLUMNS)
    assert {path.name for path in tmp_path.iterdir()} == {file.name for file in files}


def test_the_format_that_is_named_counts(db: str, tmp_path: Path) -> None:
    file = tmp_path / "results.csv"
    results_command(["day"], "jsonl", file, db)
    assert json.loads(file.read_text().splitlines()[0])["campaign"] == "day"


def test_what_fails_leaves_the_file_that_was_there(db: str, tmp_path: Path) -> None:
    file = tmp_path / "results.csv"
    file.write_text("of yesterday")
    with pytest.raises(UserError):
        results_command(["no such"], None, file, db)
    assert file.read_text() == "of yesterday"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("format", "file", "said", "hint"),
    [
        ("xlsx", None, "'xlsx' is not a known value", "csv"),
        ("parquet", None, "standard output", "--output results.parquet"),
        (None, "no/such/results.csv", "can't write", "mkdir -p"),
    ],
)
def test_what_is_not_possible_is_said(
    db: str, tmp_path: Path, format: str | None, file: str | None, said: str, hint: str
) -> None:
    with pytest.raises(UserError, match=said) as raised:
        results_command(None, format, tmp_path / file if file else None, db)
    assert hint in raised.value.hint


def test_every_column_and_no_other_is_documented() -> None:
    page = (ROOT / "docs" / "results.md").read_text()
    table = page[page.index("## Columns") : page.index("## Files")]
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == [*COLUMNS, "env_NAME"]
