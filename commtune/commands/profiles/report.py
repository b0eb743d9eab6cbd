"""``commtune report`` and ``plot``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from commtune.commands.options import DbOption

_Campaign = Annotated[
    str | None, typer.Argument(help="name of the campaign [the only one there is]")
]


def report_command(
    campaign: _Campaign = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="HTML file, or a folder for the page and its pictures"
        ),
    ] = None,
    png: Annotated[Path | None, typer.Option("--png", help="folder for the pictures")] = None,
    db: DbOption = None,
) -> None:
    """Write a report of a campaign: answer, evidence and method on one page, with figures."""
    from commtune.app.profiles.reporting import write_campaign_report

    for file in write_campaign_report(campaign, output, png, db):
        print(f"wrote {file}")


def plot_command(
    output: Annotated[Path, typer.Option("--output", "-o", help="SVG, PNG or PDF file")],
    campaign: _Campaign = None,
    db: DbOption = None,
) -> None:
    """Plot default and tuned times of a campaign's confirmation."""
    from commtune.app.profiles.plotting import write_plot

    write_plot(campaign, output, db)
    print(f"wrote {output}")
