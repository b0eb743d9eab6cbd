"""A stored profile around a command: the environment, and what its user should know."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from commtune.app.stored import find_profile
from commtune.campaign.protected import protected_settings
from commtune.cluster.local.launch import command_path
from commtune.cluster.machine.description import describe_machine
from commtune.cluster.mpi.wheels import WHEELS
from commtune.cluster.slurm.site import cluster_name
from commtune.db.records import CampaignDescription, ProfileAnswer
from commtune.errors import CommtuneError, UserError
from commtune.model import PROTECTED_NAMES, MpiInstallation, Verdict
from commtune.wiring import benchmark_setup


@dataclass(frozen=True)
class AppliedProfile:
    """What a command is started with.

    Attributes:
        remarks: what a user should know before, a line each.
    """

    environment: Mapping[str, str]
    remarks: tuple[str, ...]


def apply_profile(
    profile: str, program: str, inherited: Mapping[str, str], db: str | None = None
) -> AppliedProfile:
    """The environment of a program under a profile.

    Args:
        profile: CAMPAIGN/PROFILE, name, or number.
        program: what is to be started; one that is not on PATH is looked for beside the launcher
            of the MPI that the profile was measured with.
        inherited: the environment that the profile is applied to.

    Raises:
        UserError: the profile is simulated or replayed.
        UnknownName, NoAnswer: there is no such profile.
    """
    answer, stored = find_profile(profile, db)
    if answer.profile.simulated:
        raise UserError(
            f"profile {answer.profile.name} is simulated or replayed: it says nothing about a "
            "real system",
            hint="run the campaign on the machine itself",
        )
    settings = {**answer.pinned, **answer.profile.configuration}
    environment = {**inherited, **settings, **protected_settings((), inherited)}
    remarks = _list_remarks(answer, settings, inherited)
    mpi = _mpi_with(program, stored, inherited)
    if mpi is not None:
        environment = {**mpi.environment, **environment, "PATH": command_path(inherited, mpi)}
        measured = f"{mpi.flavour} {mpi.version}, which the profile was measured with"
        remarks.append(
            f"{program} is not on PATH: that of {measured}, is used: {mpi.launcher.parent}"
        )
    return AppliedProfile(environment, tuple(remarks))


def _mpi_with(
    program: str, stored: CampaignDescription, inherited: Mapping[str, str]
) -> MpiInstallation | None:
    """The profile's MPI, where it has a program that PATH lacks: wheels are on nobody's PATH."""
    if "/" in program or shutil.which(program, path=inherited.get("PATH", os.defpath)):
        return None
    known = stored.what.get("mpi", {})
    named = stored.settings.get("mpi") or "auto"
    for name in (named, *(f"wheel:{wheel}" for wheel in WHEELS)):
        try:
            mpi = benchmark_setup.find_named_mpi(name)
        except CommtuneError:
            continue
        is_same = (str(mpi.flavour), mpi.version) == (known.get("flavour"), known.get("version"))
        if is_same and (mpi.launcher.parent / program).is_file():
            return mpi
    return None


def _is_here(answer: ProfileAnswer, inherited: Mapping[str, str]) -> bool:
    """Whether this is the machine that the profile was measured on, or a part of that cluster."""
    if cluster := answer.system.description.get("cluster"):
        return bool(cluster_name(inherited) == cluster)
    return describe_machine().fingerprint() == answer.system.fingerprint


def _list_remarks(
    answer: ProfileAnswer, settings: Mapping[str, str], inherited: Mapping[str, str]
) -> list[str]:
    """What a user should know before a profile is applied here and now."""
    found = []
    if answer.profile.verdict is not Verdict.FASTER:
        found.append(f"{answer.profile.name} is the default: nothing is set")
    if not _is_here(answer, inherited):
        found.append(
            f"{answer.profile.name} was measured on another system ({answer.system.name}); "
            "its speedup may not hold here"
        )
    differing = [name for name, value in settings.items() if inherited.get(name, value) != value]
    if overridden := [name for name in differing if name not in PROTECTED_NAMES]:
        found.append(f"the profile replaces what your environment sets: {', '.join(overridden)}")
    if kept := [f"{name}={inherited[name]}" for name in differing if name in PROTECTED_NAMES]:
        found.append(
            f"{', '.join(kept)} stays as your environment sets it, to keep hardware safe: the "
            "profile was measured otherwise"
        )
    return found
