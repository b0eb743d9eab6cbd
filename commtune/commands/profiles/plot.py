"""``commtune plot``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from commtune.app.reporting import write_plot
from commtune.commands.options import DbOption


def plot_command(
    output: Annotated[Path, typer.Option("--output", "-o", help="SVG, PNG or PDF file")],
    campaign: Annotated[
        str | None, typer.Argument(help="name of the campaign [the only one there is]")
    ] = None,
    db: DbOption = None,
) -> None:
    """Plot default and tuned times of a campaign's confirmation."""
    write_plot(campaign, output, db)
    print(f"wrote {output}")
