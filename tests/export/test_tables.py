"""Tables as files: what programs read is what was written, and spreadsheets run nothing."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from pyarrow import parquet  # type: ignore[import-untyped,unused-ignore]

from commtune.errors import MissingComponent
from commtune.export import tables

COLUMNS = {
    "run": str, "started": datetime, "ok": bool, "bytes": int, "median_s": float,
    "configuration": dict, "env_A": str,
}  # fmt: skip
MOMENT = "2026-11-23T16:06:54.123Z"


def row(run: str = "r1", **changes: Any) -> tuple[Any, ...]:
    values = dict(zip(COLUMNS, (run, MOMENT, True, 8, 1.25e-6, '{"A":"1"}', "1"), strict=True))
    return tuple({**values, **changes}.values())


def as_csv(*rows: tuple[Any, ...]) -> str:
    out = io.StringIO()
    assert tables.write_csv(COLUMNS, rows, out) == len(rows)
    return out.getvalue()


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\uff1d1", '=HYPERLINK("http://a",1)'],
)
def test_no_text_is_a_formula(text: str) -> None:
    (_, line) = csv.reader(io.StringIO(as_csv(row(text, env_A=text))))
    assert line[0] == line[-1] == f"'{text}"


@pytest.mark.parametrize("text", ["-1", "+1.5", "-1e-3", "a=b", "'", 'say "a,b"', "Ü", "1-2"])
def test_other_text_stays_as_it_is(text: str) -> None:
    (_, line) = csv.reader(io.StringIO(as_csv(row(text))))
    assert line[0] == text


@pytest.mark.parametrize("text", ["a\nb", "\r=1+1", "\x1b]0;title\x07", "\t=1", "a\u2028b", "\0"])
def test_a_line_is_a_whole_row_without_control_characters(text: str) -> None:
    written = as_csv(row(text))
    assert len(written.splitlines()) == 2
    assert written.replace("\n", "").isprintable()


def test_pandas_reads_what_was_written() -> None:
    import pandas  # type: ignore[import-untyped,unused-ignore]  # slow

    rows = [row(), row("r2", bytes=None, median_s=None, ok=False, env_A=None)]
    frame = pandas.read_csv(io.StringIO(as_csv(*rows)), parse_dates=["started"])
    assert list(frame.columns) == list(COLUMNS)
    assert frame["ok"].tolist() == [True, False]
    assert frame["median_s"].tolist()[0] == 1.25e-6
    assert frame["median_s"].isna().tolist() == [False, True]
    assert frame["started"][0] == pandas.Timestamp(MOMENT)


def test_json_lines_are_exact_and_nest_configurations() -> None:
    out = io.StringIO()
    odd = row("=1\n\x1b", median_s=math.inf, configuration='{"A":"","B":"=1"}')
    assert tables.write_jsonl(COLUMNS, [row(), odd], out) == 2
    first, second = map(json.loads, out.getvalue().splitlines())
    assert first == dict(zip(COLUMNS, row(), strict=True)) | {"configuration": {"A": "1"}}
    assert (second["run"], second["median_s"]) == ("=1\n\x1b", None)
    assert second["configuration"] == {"A": "", "B": "=1"}


def test_parquet_has_typed_columns_in_groups_of_50_000_rows() -> None:
    out = io.BytesIO()
    rows = [row("=1\n", bytes=None, started=None), row("r2", env_A=None), *[row("r3")] * 49_999]
    assert tables.write_parquet(COLUMNS, iter(rows), out) == 50_001
    file = parquet.ParquetFile(out)
    assert [file.metadata.row_group(n).num_rows for n in range(2)] == [50_000, 1]
    read = file.read().to_pylist()
    assert [one["run"] for one in read] == ["=1\n", "r2", *["r3"] * 49_999]
    assert [one["bytes"] for one in read[:3]] == [None, 8, 8]
    assert [one["env_A"] for one in read[:3]] == ["1", None, "1"]
    assert read[1]["started"] == datetime(2026, 11, 23, 16, 6, 54, 123000, UTC)
    assert all(one["ok"] is True for one in read)


def test_a_table_without_rows_has_its_columns() -> None:
    out = io.BytesIO()
    assert tables.write_parquet(COLUMNS, [], out) == 0
    assert parquet.read_table(out).column_names == list(COLUMNS)
    assert as_csv().splitlines() == [",".join(COLUMNS)]


def test_parquet_without_pyarrow_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingComponent) as raised:
        tables.write_parquet(COLUMNS, [], io.BytesIO())
    assert "'.[parquet]'" in raised.value.hint
