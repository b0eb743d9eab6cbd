"""Commands that give what was found."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from commtune.cli.app import Db, Json, app


@app.command()
def best(
    op: Annotated[str, typer.Option("--op", help="operation: allreduce, broadcast, ...")],
    bytes_: Annotated[str, typer.Option("--bytes", help="message size: 1MiB")],
    nodes: Annotated[int | None, typer.Option(help="measured on so many nodes")] = None,
    ranks: Annotated[int | None, typer.Option(help="measured with so many ranks")] = None,
    system: Annotated[
        str | None, typer.Option(help="part of a system's name, or its fingerprint")
    ] = None,
    backend: Annotated[str | None, typer.Option(help="backend, such as mpi-host")] = None,
    campaign: Annotated[str | None, typer.Option(help="only from this campaign")] = None,
    db: Db = None,
    json_output: Json = False,
) -> None:
    """The best confirmed configuration for an operation and a message size."""
    from commtune.commands.profiles import best as command

    question = command.Question(op, bytes_, nodes, ranks, system, backend, campaign)
    command.run(question, db, json_output=json_output)


@app.command()
def export(
    profile: Annotated[str, typer.Argument(help="CAMPAIGN/PROFILE, name, or number")],
    format_: Annotated[
        str, typer.Option("--format", help="env, sh, csh, fish, json, lmod or tcl")
    ] = "sh",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="file [stdout]")] = None,
    allow_unguarded: Annotated[
        bool,
        typer.Option("--allow-unguarded", help="a module file without guards"),
    ] = False,
    db: Db = None,
) -> None:
    """Write a profile as a file that shells, programs or module systems load."""
    from commtune.commands.profiles import export as command

    command.run(profile, format_, output, db, allow_unguarded=allow_unguarded)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": False})
def run(
    command_line: Annotated[list[str], typer.Argument(help="the command and its arguments")],
    profile: Annotated[str, typer.Option("--profile", "-p", help="the profile to run under")],
    db: Db = None,
) -> None:
    """Run a command under a profile: commtune run --profile P -- mpiexec -n 2 ./program."""
    from commtune.commands.profiles import run as command

    command.run(profile, command_line, db)


@app.command()
def plot(
    campaign: Annotated[str, typer.Argument(help="name of the campaign")],
    output: Annotated[Path, typer.Option("--output", "-o", help="SVG, PNG or PDF file")],
    db: Db = None,
) -> None:
    """Draw default against tuned times of a campaign's confirmation."""
    from commtune.commands.profiles import plot as command

    command.run(campaign, output, db)


@app.command()
def report(
    campaign: Annotated[str, typer.Argument(help="name of the campaign")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="HTML file, or a folder for it and pictures"),
    ] = None,
    png: Annotated[Path | None, typer.Option("--png", help="folder for the pictures")] = None,
    db: Db = None,
) -> None:
    """Write a campaign's answer, evidence and method as one page, and its pictures."""
    from commtune.commands.profiles import report as command

    command.run(campaign, output, png, db)
