"""``commtune submit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from commtune import wiring
from commtune.commands.campaigns.loading import on_slurm
from commtune.commands.flags import database_flag
from commtune.commands.options import DbOption, called_as
from commtune.db.codec import list_differences, to_json_value
from commtune.db.connection.location import database_url
from commtune.db.queries.description import describe_campaign
from commtune.errors import (
    EnvironmentFault,
    MissingComponent,
    NoAnswer,
    UnknownName,
    UserError,
)
from commtune.wiring import records
from commtune.wiring.on_slurm import OnSlurm

#: Of the shortest allocation: starting, a first run of unknown length, and ending cleanly.
_SHORTEST_S = 120.0


def run(
    campaign: Path, db: str | None, *, dry_run: bool, test_only: bool, block: bool, program: str
) -> None:
    """Submits an allocation in which the campaign runs, or shows what would be submitted.

    Args:
        dry_run: print the script.
        test_only: ask Slurm whether it would take the job.
        block: with the former, the script of a job that makes one block.
    """
    on = on_slurm(campaign, db)
    if block and not dry_run:
        raise UserError(
            "--block shows a script; nothing is submitted by it",
            hint=f"add --dry-run; '{program} tune {campaign}' submits blocks as jobs",
        )
    if dry_run or test_only:
        script = wiring.example_script(on, db, block=block)
        if dry_run:
            print(script, end="")
        if test_only:
            print(_tested(on, script))
        return
    _refuse_useless(on, db, campaign)
    with wiring.opened_database(db) as opened:
        job = wiring.submit_campaign(on, opened)
    name = on.spec.plan.name
    print(f"{name}: job {job.number} was submitted; it goes on in further jobs until it is done")
    first, second = (
        f"{program} status{database_flag(db)}",
        f"{program} cancel {name}{database_flag(db)}",
    )
    print(f"  {first:<{len(second)}}   where it stands")
    print(f"  {second}   ends it; what was measured is kept")
    print(f"  it prints to {Path(job.folder) / 'job.out'}")


def _refuse_useless(on: OnSlurm, db: str | None, campaign: Path) -> None:
    """A job that would measure nothing still waits in the queue, perhaps for hours."""
    time_s = on.wish.time_s
    if time_s is not None and time_s < _SHORTEST_S:
        raise UserError(
            f"slurm.time: {time_s:g} s are too short to measure anything in an allocation",
            hint=f"from {_SHORTEST_S / 60:g}min; better an hour or more",
        )
    try:
        stored = describe_campaign(database_url(db), on.spec.plan.name)
    except (UnknownName, NoAnswer):
        return
    record = records.slurm_record(on)
    if stored.finished is not None and not list_differences(
        stored.settings, to_json_value(record.settings)
    ):
        raise UserError(
            f"campaign {record.name} is finished: there is nothing left to measure",
            hint=f"give it a larger 'budget' in {campaign}, or another name",
        )


def _tested(on: OnSlurm, script: str) -> str:
    try:
        return wiring.test_script(on, script)
    except MissingComponent as error:
        raise EnvironmentFault(
            "there is no sbatch here to ask", hint="try it on a login node"
        ) from error


def submit_command(
    campaign: Annotated[Path, typer.Argument(help="campaign file that asks for Slurm")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="print the script, submit nothing")
    ] = False,
    test_only: Annotated[
        bool, typer.Option("--test-only", help="ask Slurm whether it would take the job")
    ] = False,
    block: Annotated[
        bool, typer.Option("--block", help="with --dry-run: the script of a job of one block")
    ] = False,
    db: DbOption = None,
) -> None:
    """Submit a job in which the campaign runs; further ones follow until it is done."""
    run(campaign, db, dry_run=dry_run, test_only=test_only, block=block, program=called_as())
