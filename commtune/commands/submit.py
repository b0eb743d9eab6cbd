"""``commtune submit``."""

from __future__ import annotations

from pathlib import Path

from commtune import wiring
from commtune.commands.campaigns import on_slurm
from commtune.errors import EnvironmentFault, MissingComponent, UserError
from commtune.slurm_wiring import OnSlurm


def run(
    campaign: Path, db: str | None, *, dry_run: bool, test_only: bool, block: bool, program: str
) -> None:
    """Submits an allocation in which the campaign runs, or shows what would be submitted.

    Args:
        dry_run: print the script.
        test_only: ask Slurm whether it would take the job.
        block: with the former, the script of a job that makes one block.
    """
    on = on_slurm(campaign)
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
    with wiring.database(db) as opened:
        job = wiring.submit(on, opened)
    name = on.spec.plan.name
    print(f"{name}: job {job.number} was submitted; it goes on in further jobs until it is done")
    print(f"  {program} status          where it stands")
    print(f"  {program} cancel {name}   ends it; what was measured is kept")


def _tested(on: OnSlurm, script: str) -> str:
    try:
        return wiring.test_script(on, script)
    except MissingComponent as error:
        raise EnvironmentFault(
            "there is no sbatch here to ask", hint="try it on a login node"
        ) from error
