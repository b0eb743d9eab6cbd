"""Writes tables of any length as CSV, JSON Lines or Parquet, row by row.

Columns are given by name with the type of their values; rows have values in this order. A
``datetime`` is given as text (ISO 8601, UTC), a ``dict`` as JSON; ``None`` is a missing value.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import Any, BinaryIO, TextIO

from commtune.errors import MissingComponent, install_command
from commtune.formatting import without_infinities

_Columns = Mapping[str, type]
_Rows = Iterable[Sequence[Any]]

#: Characters that begin a formula in a spreadsheet; the last four are full-width forms.
_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
#: Rows in a row group of a Parquet file, which is the most that are in memory.
_GROUP_ROWS = 50_000


def in_groups(rows: _Rows) -> Iterator[list[Sequence[Any]]]:
    """Yields the rows in lists of the length of a row group; the last may be shorter."""
    remaining = iter(rows)
    while group := list(islice(remaining, _GROUP_ROWS)):
        yield group


def write_csv(columns: _Columns, rows: _Rows, out: TextIO) -> int:
    r"""Writes a line for each row; returns the number of rows.

    Text that a spreadsheet would evaluate as a formula gets an apostrophe in front. Control
    characters are escaped as in Python (``\n``), so that a line is always a whole row.
    """
    kinds = list(columns.values())
    texts = [place for place, kind in enumerate(kinds) if kind is str]
    flags = [place for place, kind in enumerate(kinds) if kind is bool]
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([_safe(name) for name in columns])
    count = 0
    for count, row in enumerate(rows, start=1):  # noqa: B007  # of the last one
        cells = list(row)
        for place in texts:
            if cells[place]:
                cells[place] = _safe(cells[place])
        for place in flags:
            cells[place] = "true" if cells[place] else "false"
        writer.writerow(cells)
    return count


@lru_cache(maxsize=10_000)
def _safe(text: str) -> str:
    seen = _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
    runs = seen.startswith(_FORMULA) and not _NUMBER.fullmatch(seen)
    return f"'{seen}" if runs else seen


def write_jsonl(columns: _Columns, rows: _Rows, out: TextIO) -> int:
    """Writes an object on each line; returns the number of rows. JSON values are nested."""
    nested = [name for name, kind in columns.items() if kind is dict]
    count = 0
    for count, row in enumerate(rows, start=1):  # noqa: B007  # of the last one
        values = dict(zip(columns, row, strict=True))
        for name in nested:
            values[name] = json.loads(values[name])
        try:
            line = json.dumps(values, allow_nan=False)
        except ValueError:
            line = json.dumps(without_infinities(values), allow_nan=False)
        out.write(f"{line}\n")
    return count


def write_parquet(columns: _Columns, rows: _Rows, out: BinaryIO) -> int:
    """Writes row groups with typed columns; returns the number of rows.

    Raises:
        MissingComponent: pyarrow is not installed.
    """
    pyarrow, parquet = _pyarrow()
    types = {
        bool: pyarrow.bool_(),
        datetime: pyarrow.timestamp("ms", tz="UTC"),
        float: pyarrow.float64(),
        int: pyarrow.int64(),
    }
    schema = pyarrow.schema(
        [(name, types.get(kind, pyarrow.string())) for name, kind in columns.items()]
    )
    count = 0
    with parquet.ParquetWriter(out, schema, compression="zstd") as writer:
        for group in in_groups(rows):
            count += len(group)
            cells = zip(columns.values(), zip(*group, strict=True), schema, strict=True)
            arrays = [
                pyarrow.array(map(_moment, column) if kind is datetime else column, field.type)
                for kind, column, field in cells
            ]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))
    return count


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow  # type: ignore[import-untyped,import-not-found,unused-ignore]
        from pyarrow import parquet  # type: ignore[import-untyped,unused-ignore]
    except ImportError as error:
        raise MissingComponent(
            "pyarrow is not installed, and it writes Parquet files",
            hint=f"{install_command('.[parquet]')}\ncsv and jsonl need nothing",
        ) from error
    return pyarrow, parquet
