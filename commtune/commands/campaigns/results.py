"""``commtune results`` and ``export-study``: measurements for other tools."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from commtune.app.campaigns.results import export_study, write_results
from commtune.commands.options import DbOption
from commtune.formatting import format_count


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
    count = write_results(campaigns or [], format_, output or sys.stdout, db)
    if output:
        print(f"wrote {output}: {count:,} rows")


def export_study_command(
    campaign: Annotated[str, typer.Argument(help="name of a campaign")],
    output: Annotated[Path, typer.Option("--output", "-o", help="SQLite file")],
    db: DbOption = None,
) -> None:
    """Write a campaign as studies of Optuna, for optuna-dashboard."""
    studies, trials = export_study(campaign, output, db)
    print(f"wrote {output}: {studies} studies, {format_count(trials, 'trial')}")
    print(f"Next:\n  optuna-dashboard {shlex.quote(f'sqlite:///{output}')}")
