"""``commtune cancel``."""

from __future__ import annotations

from typing import Annotated

import typer

from commtune.app.submission import cancel_campaign
from commtune.commands.options import DbOption, called_as


def cancel_command(
    campaign: Annotated[str, typer.Argument(help="name of a campaign")], db: DbOption = None
) -> None:
    """End a campaign's Slurm jobs; what they measured is kept."""
    program, ended = called_as(), cancel_campaign(campaign, db)
    if not ended.numbers:
        print(f"{campaign}: it has no jobs in Slurm")
        return
    many = "s" if len(ended.numbers) > 1 else ""
    print(f"{campaign}: job{many} {', '.join(ended.numbers)} ended; what was measured is kept")
    print(f"  '{program} tune' or '{program} submit' with its file continues it")
