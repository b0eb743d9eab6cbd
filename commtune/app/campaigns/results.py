"""Every measurement of stored campaigns, as a table in a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from commtune.db.connection.location import database_url
from commtune.db.queries import results
from commtune.db.queries.results import COLUMNS, find_results
from commtune.db.records import ResultsPage
from commtune.documents.files import replaced_file
from commtune.documents.nearest import suggest
from commtune.errors import UserError
from commtune.export.tables import write_csv, write_jsonl, write_parquet

_WRITERS: dict[str, Any] = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}


def write_results(
    campaigns: Sequence[str], format: str | None, output: Path | TextIO, db: str | None = None
) -> int:
    """Writes all measurements of these campaigns, or of all; returns how many rows.

    Args:
        format: csv, jsonl or parquet; ``None`` for what the file's name ends in, else csv.
        output: the file, or an open stream for text.

    Raises:
        UserError: there is no such format, or the file can't be written.
        UnknownName, NoAnswer: there is no such campaign, or no database.
        MissingComponent: pyarrow is not installed, and the format is parquet.
    """
    file = output if isinstance(output, Path) else None
    chosen = _choose_format(format, file)
    found = find_results(database_url(db), campaigns)
    # JSON says what no variable is, so a line needs no column for each.
    nested = chosen == "jsonl"
    columns = COLUMNS if nested else found.columns
    rows = (row[: len(COLUMNS)] for row in found) if nested else found
    write = _WRITERS[chosen]
    if file is None:
        return int(write(columns, rows, output))
    mode, encoding = ("wb", None) if chosen == "parquet" else ("w", "utf-8")
    with replaced_file(file) as part, part.open(mode, encoding=encoding) as out:
        return int(write(columns, rows, out))


def read_results_page(campaign: str, db: str | None = None, **page: int) -> ResultsPage:
    """The measurements of some runs of a campaign.

    Args:
        page: which, as ``db.queries.results.read_results_page`` has it.

    Raises:
        UnknownName, NoAnswer: there is no such campaign, or no database.
    """
    return results.read_results_page(database_url(db), campaign, **page)


def _choose_format(asked: str | None, file: Path | None) -> str:
    ending = file.suffix.lower().removeprefix(".") if file else ""
    chosen = asked or (ending if ending in _WRITERS else "csv")
    if chosen not in _WRITERS:
        raise UserError(f"--format: {chosen!r} is no format", hint=suggest(chosen, list(_WRITERS)))
    if chosen == "parquet" and file is None:
        raise UserError(
            "Parquet can't be written to standard output",
            hint="name a file: --output results.parquet",
        )
    return chosen
