"""``commtune run``."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from commtune import process
from commtune.app.applying import apply_profile
from commtune.commands.options import DbOption


def run_command(
    command_line: Annotated[list[str], typer.Argument(help="the command and its arguments")],
    profile: Annotated[str, typer.Option("--profile", "-p", help="the profile to run under")],
    db: DbOption = None,
) -> None:
    """Run a command under a profile: commtune run --profile P -- mpiexec -n 2 ./program."""
    applied = apply_profile(profile, command_line[0], os.environ, db)
    for remark in applied.remarks:
        print(f"commtune: {remark}", file=sys.stderr)
    process.replace_process(command_line, applied.environment)
