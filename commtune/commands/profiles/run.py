"""``commtune run``."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from commtune import process
from commtune.campaign.protected import protected_settings
from commtune.commands.options import DbOption
from commtune.commands.profiles.export import find_profile
from commtune.db.queries.query_results import ProfileAnswer
from commtune.errors import UserError
from commtune.model import PROTECTED_NAMES, Verdict


def run(reference: str, command: list[str], db: str | None) -> None:
    """Becomes a command under a profile's variables."""
    answer = find_profile(reference, db)
    if answer.profile.simulated:
        raise UserError(
            f"profile {answer.profile.name} is simulated or replayed: it says nothing about a "
            "real system",
            hint="run the campaign on the machine itself",
        )
    for warning in _profile_warnings(answer):
        print(f"commtune: {warning}", file=sys.stderr)
    profiles = {**answer.pinned, **answer.profile.configuration}
    process.replace_process(
        command, {**os.environ, **profiles, **protected_settings((), os.environ)}
    )


def _is_here(answer: ProfileAnswer) -> bool:
    """Whether this is the machine that the profile was measured on, or a part of that cluster."""
    from commtune.cluster.machine.description import describe_machine
    from commtune.cluster.slurm.site import cluster_name

    if cluster := answer.system.description.get("cluster"):
        return bool(cluster_name(os.environ) == cluster)
    return describe_machine().fingerprint() == answer.system.fingerprint


def _profile_warnings(answer: ProfileAnswer) -> list[str]:
    """What a user should know before a profile is applied here and now."""
    found = []
    if answer.profile.verdict is not Verdict.FASTER:
        found.append(f"{answer.profile.name} is the default: nothing is set")
    if not _is_here(answer):
        found.append(
            f"{answer.profile.name} was measured on another system ({answer.system.name}); "
            "its gain may not hold here"
        )
    profiles = {**answer.pinned, **answer.profile.configuration}
    differing = [name for name, value in profiles.items() if os.environ.get(name, value) != value]
    if overridden := [name for name in differing if name not in PROTECTED_NAMES]:
        found.append(f"the profile replaces what your environment sets: {', '.join(overridden)}")
    if kept := [f"{name}={os.environ[name]}" for name in differing if name in PROTECTED_NAMES]:
        found.append(
            f"{', '.join(kept)} stays as your environment sets it, to keep hardware safe: the "
            "profile was measured otherwise"
        )
    return found


def run_command(
    command_line: Annotated[list[str], typer.Argument(help="the command and its arguments")],
    profile: Annotated[str, typer.Option("--profile", "-p", help="the profile to run under")],
    db: DbOption = None,
) -> None:
    """Run a command under a profile: commtune run --profile P -- mpiexec -n 2 ./program."""
    run(profile, command_line, db)
