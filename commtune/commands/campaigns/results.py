"""``commtune results``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from commtune.app.results import write_results
from commtune.commands.options import DbOption


def results_command(
    campaigns: Annotated[
        list[str] | None, typer.Argument(help="names of campaigns [all of them]")
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option("--format", help="csv, jsonl or parquet [as the file's name ends, else csv]"),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="file [stdout]")] = None,
    db: DbOption = None,
) -> None:
    """Write every measurement as a table: CSV, JSON Lines or Parquet."""
    count = write_results(campaigns or [], format_, output, db)
    if output:
        print(f"wrote {output}: {count:,} rows")
