"""Applies a stored profile: exports it to a file, or sets the environment of a command."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from commtune import __version__
from commtune.campaign.protected import protected_settings
from commtune.cluster.local.launch import command_path
from commtune.cluster.machine.description import describe_machine
from commtune.cluster.mpi.wheels import WHEELS
from commtune.cluster.slurm.site import cluster_name
from commtune.db.queries.description import load_own_profile
from commtune.db.queries.profiles import find_profiles
from commtune.db.records import CampaignDescription, ProfileAnswer
from commtune.documents.files import write_file
from commtune.errors import CommtuneError, ExportRefused, UserError
from commtune.export import render_profile
from commtune.export.document import ExportDocument, refuse_simulated
from commtune.export.formats import FORMATS
from commtune.model import PROTECTED_NAMES, MpiInstallation, Verdict
from commtune.paths import is_file
from commtune.wording import describe_strength


def export_profile(
    answer: ProfileAnswer,
    format: str,
    file: Path | None,
    *,
    allow_unguarded: bool = False,
    accept_likely: bool = False,
) -> str:
    """Renders the text of a file that sets a profile's variables; writes it if ``file`` is given.

    Args:
        format: a name in ``FORMATS``.
        allow_unguarded, accept_likely: as for ``render_profile``.

    Raises:
        UserError: another site measured the profile, or the file's path is wrong.
        EnvironmentFault: the file can't be written.
        UnknownName, ExportRefused: as for ``render_profile``.
    """
    answer.require_own()
    document = document_of(answer)
    rendered = render_profile(
        format, document, allow_unguarded=allow_unguarded, accept_likely=accept_likely
    )
    if file is not None:
        write_file(file, rendered)
    return rendered


def require_strength(
    answers: Iterable[ProfileAnswer], db: str | None, **least: int | None
) -> None:
    """Refuses profiles that rest on less than is asked for.

    Args:
        least: as for ``find_profiles``.

    Raises:
        ExportRefused: one does.
    """
    asked = {name: value for name, value in least.items() if value is not None}
    for answer in answers if asked else ():
        if answer.id not in {one.id for one in find_profiles(db, answer.campaign, **asked)}:
            wanted = ", ".join(f"--{name.replace('_', '-')} {n}" for name, n in asked.items())
            name, rests_on = answer.profile.name, describe_strength(answer.strength)
            raise ExportRefused(
                f"profile {name} rests on less than {wanted}: {rests_on}",
                hint=f"for more days, sessions and nodes: commtune verify {answer.reference}\n"
                "for more pairs, continue the campaign with a larger --confirm",
            )


def list_usable_formats(answer: ProfileAnswer) -> list[str]:
    """Returns the formats in which a profile can be exported, also if it is only likely."""
    usable = []
    for name in FORMATS:
        with suppress(UserError):
            export_profile(answer, name, None, accept_likely=True)
            usable.append(name)
    return usable


def document_of(answer: ProfileAnswer) -> ExportDocument:
    """Returns a stored profile in the form that exporters take."""
    return ExportDocument(
        profile=answer.profile,
        campaign=answer.campaign,
        system=answer.system.name,
        fingerprint=answer.system.fingerprint,
        stack=answer.stack.text,
        created=datetime.fromtimestamp(answer.created, UTC).isoformat(timespec="seconds"),
        commtune_version=__version__,
        strength=answer.strength,
        pinned=answer.pinned,
        level=answer.level,
        unset=tuple(v for v in answer.variables if v not in answer.profile.configuration),
    )


def apply_profile(
    profile: str,
    program: str,
    inherited: Mapping[str, str],
    db: str | None = None,
    **least: int | None,
) -> tuple[dict[str, str], list[str]]:
    """Returns the environment of a program under a profile, and remarks for the user.

    Args:
        profile: CAMPAIGN/PROFILE, name, or number.
        program: the program to be started; if not on PATH, it is searched beside the launcher of
            the MPI that the profile was measured with.
        inherited: the environment that the profile is applied to.
        least: as for ``require_strength``.

    Raises:
        ExportRefused: the profile is simulated or replayed, or rests on less than is asked for.
        UnknownName, NoAnswer: there is no such profile.
    """
    answer, stored = load_own_profile(db, profile)
    refuse_simulated(answer.profile, f"profile {answer.profile.name}")
    require_strength([answer], db, **least)
    settings = {**answer.pinned, **answer.profile.configuration}
    environment = {**inherited, **settings, **protected_settings((), inherited)}
    remarks = _list_remarks(answer, settings, inherited)
    on_path = shutil.which(program, path=inherited.get("PATH", os.defpath))
    mpi = _mpi_with(program, stored) if not on_path or program.startswith("mpi") else None
    if mpi is not None:
        own = mpi.launcher.parent
        measured = f"{mpi.flavour} {mpi.version}, which the profile was measured with"
        if not on_path:
            environment = {**mpi.environment, **environment, "PATH": command_path(inherited, mpi)}
            remarks.append(f"{program} is not on PATH; using that of {measured}: {own}")
        elif not Path(on_path).samefile(own / program):
            path = f"export PATH={shlex.quote(str(own))}:$PATH"
            remarks.append(f"using {on_path}, and not that of {measured}; for that one: {path}")
    return environment, remarks


def _mpi_with(program: str, stored: CampaignDescription) -> MpiInstallation | None:
    """Returns the profile's MPI if it has this program; that of a wheel is not on PATH."""
    if "/" in program:
        return None
    from commtune.wiring.benchmark_setup import find_named_mpi

    known = stored.what.get("mpi", {})
    named = stored.settings.get("mpi") or "auto"
    for name in (named, *(f"wheel:{wheel}" for wheel in WHEELS)):
        try:
            mpi = find_named_mpi(name)
        except CommtuneError:
            continue
        is_same = (str(mpi.flavour), mpi.version) == (known.get("flavour"), known.get("version"))
        if is_same and is_file(mpi.launcher.parent / program):
            return mpi
    return None


def _is_here(answer: ProfileAnswer, inherited: Mapping[str, str]) -> bool:
    """Whether this is the machine that the profile was measured on."""
    # On a cluster any node counts, because this may run on the login node.
    if cluster := answer.system.description.get("cluster"):
        return bool(cluster_name(inherited) == cluster)
    return describe_machine().fingerprint() == answer.system.fingerprint


def _list_remarks(
    answer: ProfileAnswer, settings: Mapping[str, str], inherited: Mapping[str, str]
) -> list[str]:
    """Returns remarks for the user on applying a profile here and now."""
    found = []
    if answer.profile.configuration.is_default:
        found.append(f"{answer.profile.name} is the default: nothing is set")
    if answer.profile.note and not answer.profile.configuration.is_default:
        was = " was withdrawn" if answer.profile.verdict is Verdict.WITHDRAWN else ""
        found.append(f"{answer.profile.name}{was}: {answer.profile.note}")
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
            "profile was measured with another value"
        )
    return found
