"""``commtune cancel``."""

from __future__ import annotations

from typing import Annotated

import typer

from commtune import wiring
from commtune.commands.options import DbOption, called_as
from commtune.db.connection.location import database_url
from commtune.db.queries.description import describe_campaign


def run(name: str, db: str | None, *, program: str) -> None:
    """Ends the jobs of a campaign."""
    with wiring.opened_database(db) as opened:
        ended = wiring.cancel_campaign(describe_campaign(database_url(db), name).id, opened)
    if not ended.numbers:
        print(f"{name}: none of its jobs is with Slurm")
        return
    many = "s" if len(ended.numbers) > 1 else ""
    print(f"{name}: job{many} {', '.join(ended.numbers)} ended; what was measured is kept")
    print(f"  '{program} tune' or '{program} submit' with its file goes on with it")


def cancel_command(
    campaign: Annotated[str, typer.Argument(help="name of a campaign")], db: DbOption = None
) -> None:
    """End a campaign's jobs on Slurm, and nothing else."""
    run(campaign, db, program=called_as())
