"""``commtune export`` and ``run``: a stored profile in files, or around a command."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from commtune import process
from commtune.app.campaigns import stored
from commtune.app.profiles.use import apply_profile, export_profile, require_strength
from commtune.commands import options as flags
from commtune.export.rules import RULE_FORMATS


@flags.takes_least_strength
def export_command(
    profile: Annotated[
        str, typer.Argument(help="CAMPAIGN/PROFILE, name, or number; for rules: CAMPAIGN")
    ],
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            help="env, sh, csh, fish, json, task-prolog, lmod or tcl; a library's file: "
            "nccl-conf, rccl-conf, ucx-conf, mca-params; rules by size: openmpi-rules, "
            "openmpi-json, mpich-json, intel-json, nccl-tuner, rccl-tuner",
        ),
    ] = "sh",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="file [stdout]")] = None,
    allow_unguarded: flags.UnguardedOption = False,
    accept: flags.AcceptOption = "proven",
    mpi: flags.RulesMpiOption = None,
    library_rules: Annotated[
        Path | None, typer.Option(help="rccl-tuner: RCCL's own table, whose rows are copied")
    ] = None,
    db: flags.DbOption = None,
    **least: int | None,
) -> None:
    """Write a profile, or a campaign's rules by size, as a file to load."""
    if format_ in RULE_FORMATS:
        from commtune.app.profiles.rule_files import prepare_rules, write_rules

        rules = prepare_rules(
            profile,
            format_,
            db=db,
            mpi=mpi,
            accept_likely=accept == "likely",
            library_rules=library_rules,
        )
        require_strength(rules.answers, db, **least)
        print(write_rules(rules, output), end="")
        return
    answer = stored.load_profile(db, profile)
    require_strength([answer], db, **least)
    rendered = export_profile(
        answer,
        format_,
        output,
        allow_unguarded=allow_unguarded,
        accept_likely=accept == "likely",
    )
    print(f"wrote {output}\n" if output else rendered, end="")


@flags.takes_least_strength
def run_command(
    command_line: Annotated[list[str], typer.Argument(help="the command and its arguments")],
    profile: Annotated[str, typer.Option("--profile", "-p", help="the profile to run under")],
    db: flags.DbOption = None,
    **least: int | None,
) -> None:
    """Run a command under a profile: commtune run --profile P -- mpiexec -n 2 ./program."""
    environment, remarks = apply_profile(profile, command_line[0], os.environ, db, **least)
    for remark in remarks:
        print(f"commtune: {remark}", file=sys.stderr)
    process.replace_process(command_line, environment)
