"""``commtune install`` and ``uninstall``: modules and files of rules for a site."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from commtune.commands import options as flags

_Folder = Annotated[
    Path, typer.Option("--system-wide", metavar="DIR", help="folder that all users can read")
]


@flags.takes_least_strength
def install_command(
    campaign: Annotated[str, typer.Argument(help="whose profiles and rules")],
    folder: _Folder,
    allow_unguarded: flags.UnguardedOption = False,
    accept: flags.AcceptOption = "proven",
    mpi: flags.RulesMpiOption = None,
    db: flags.DbOption = None,
    **least: int | None,
) -> None:
    """Install module files and files of rules of a campaign for all users of a site."""
    from commtune.app.profiles.site_installation import install_campaign

    done = install_campaign(
        campaign, folder, db=db, mpi=mpi, allow_unguarded=allow_unguarded,
        accept_likely=accept == "likely", **least,
    )  # fmt: skip
    for name, why in done.refused.items():
        print(f"left out: {name}: {why}")
    for file in done.removed:
        print(f"removed {file}")
    print(f"module use {shlex.quote(str(done.folder))}")
    for module in done.modules:
        print(f"module load {module}")


def uninstall_command(
    folder: _Folder,
    campaign: Annotated[str | None, typer.Argument(help="of this one only [all]")] = None,
) -> None:
    """Remove what install wrote; files that were changed since are refused."""
    from commtune.app.profiles.site_files import remove_files

    for file in remove_files(folder.absolute(), campaign):
        print(f"removed {file}")
