"""``commtune submit`` and ``cancel``: campaigns on Slurm or PBS."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from commtune.app.progress import LineReporter
from commtune.commands.options import DbOption, called_as, database_flag
from commtune.errors import UserError


def submit_command(
    campaign: Annotated[Path, typer.Argument(help="campaign file that asks for Slurm or PBS")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="print the script, submit nothing")
    ] = False,
    test_only: Annotated[
        bool, typer.Option("--test-only", help="ask Slurm whether it would accept the job")
    ] = False,
    block: Annotated[
        bool, typer.Option("--block", help="with --dry-run: print the script of a one-block job")
    ] = False,
    db: DbOption = None,
) -> None:
    """Submit a job that runs the campaign; further jobs follow until it is done."""
    from commtune.app.campaigns.submitting import prepare_submission, submit_campaign
    from commtune.campaign.loading import load_campaign

    program = called_as()
    # A script on standard output is to be redirected: remarks go beside it.
    reporter = LineReporter(partial(print, file=sys.stderr))
    is_example = dry_run and not test_only
    on = prepare_submission(load_campaign(campaign), db, reporter, is_example=is_example)
    if block and not dry_run:
        raise UserError(
            "--block shows a script; it submits nothing",
            hint=f"add --dry-run; '{program} tune {campaign}' submits blocks as jobs",
        )
    if dry_run or test_only:
        script = on.example_script(db, block=block)
        if dry_run:
            print(script, end="")
        if test_only:
            print(on.test_script(script))
        return
    name, (number, output) = on.spec.plan.name, submit_campaign(on, db)
    status = f"{program} status{database_flag(db)}"
    cancel = f"{program} cancel {name}{database_flag(db)}"
    print(f"{name}: submitted job {number}; further jobs follow until it is done")
    print(f"  {status:<{len(cancel)}}   shows its state")
    print(f"  {cancel}   ends it; what was measured is kept")
    print(f"  output: {output}")


def cancel_command(
    campaign: Annotated[str, typer.Argument(help="name of a campaign")], db: DbOption = None
) -> None:
    """End a campaign's jobs, or its controller on this machine; what was measured is kept."""
    from commtune.app.campaigns.cancelling import cancel_campaign

    program, ended = called_as(), cancel_campaign(campaign, db)
    print(f"{campaign}: {ended.describe()}")
    ended.require_written(campaign)
    if not ended.scheduler:
        print(f"  the same '{program} tune' continues it")
    elif ended.numbers or ended.controller:
        print(f"  '{program} tune' or '{program} submit' with its file continues it")
