"""Checks whether this machine is ready for tuning, and suggests commands that fix problems."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeGuard

from commtune.app.setup.named_files import check_named_files
from commtune.cluster.local.launch import base_environment
from commtune.cluster.machine.description import describe_machine
from commtune.cluster.machine.doctor import Check as Check
from commtune.cluster.machine.doctor import Status as Status
from commtune.cluster.machine.doctor import collect_checks, examine_machine
from commtune.cluster.mpi.discovery import find_mpi
from commtune.db.connection.location import database_url, is_service, sqlite_path
from commtune.errors import CommtuneError
from commtune.kernels.library_versions import probe_library_versions
from commtune.kernels.toolchains import Xccl
from commtune.model import MpiInstallation
from commtune.model.configuration import Changes
from commtune.spaces.catalogue import checking
from commtune.spaces.catalogue import settings_files as files
from commtune.wiring.gpu_toolchains import check_backends, find_user_toolchain
from commtune.wiring.job_handover import given_versions
from commtune.wiring.library_versions import libraries_named


def diagnose_machine(db: str | None = None) -> tuple[list[Check], list[str]]:
    """Checks the machine, the variables that are set here, and the backends.

    Returns the results of all checks, and commands that fix the problems.
    """
    machine = describe_machine()
    mpi: MpiInstallation | None = None
    with suppress(CommtuneError, OSError):  # checks report it
        mpi = find_mpi("auto")

    def of_variables() -> Iterable[Check]:
        toolchain = find_user_toolchain("auto", ())[0] if machine.gpus else None
        found = _installed_versions(mpi, toolchain.xccl if toolchain else None)
        found |= _versions_below(mpi, os.environ)
        yield from _check_environment(os.environ, found)
        yield from check_named_files(os.environ, found)

    general = examine_machine(machine, lambda: _database_file(db))
    variables = collect_checks("environment", of_variables)
    backends = collect_checks("backend", lambda: check_backends(machine, mpi))
    fixes = _fix_commands([*general, *backends], variables, os.environ)
    return [*general, *variables, *backends], fixes


def _database_file(db: str | None) -> Path | None:
    """Returns the database's file; ``None`` for a server or a service, which is not asked."""
    url = database_url(db)
    file = sqlite_path(url)
    if file is None and not is_service(url):
        from commtune.db.connection.engine import pool_connections  # slow, and few use a server

        pool_connections(url).dispose()  # only reads the URL
    return file


def _installed_versions(mpi: MpiInstallation | None, xccl: Xccl | None) -> dict[str, str]:
    """Returns the versions of MPI, and of NCCL or RCCL, by the catalogue's names."""
    found = {mpi.flavour.library: mpi.version} if mpi else {}
    return found | ({xccl.name.lower(): xccl.version} if xccl else {})


#: Variables that are not settings of a library: locations, and labels that containers set.
_NOT_ASKED = frozenset({"NCCL_VERSION", "FI_PROVIDER_PATH", "I_MPI_ROOT"})


def _versions_below(mpi: MpiInstallation | None, environment: Mapping[str, str]) -> dict[str, str]:
    """Returns versions of the libraries that an MPI loads, for those with variables that are set.

    To find them, a process starts the MPI in this environment.

    Raises:
        UserError: versions that the environment states can't be parsed.
    """
    wanted = libraries_named(environment.keys() - _NOT_ASKED)
    if mpi is None or not wanted:
        return {}
    found = given_versions(environment)
    if found is None:
        # A setting may prevent the start, or the loading of a library; so try without settings.
        bare = base_environment(environment, mpi)
        found = probe_library_versions(mpi, environment) or probe_library_versions(mpi, bare)
    return {name: version for name, version in (found or {}).items() if name in wanted}


def _check_environment(
    environment: Mapping[str, str], found: Mapping[str, str], etc: Path = Path("/etc")
) -> Iterator[Check]:
    """Yields a finding for each setting that is invalid, without effect, or dangerous.

    Args:
        found: versions of installed libraries, by their names in the catalogue.
        etc: the site's folder of settings files.
    """
    named = sorted((n, v) for n, v in environment.items() if n not in _NOT_ASKED)
    here = [checking.EnvironmentSetting(n, v) for n, v in named]
    said = [*checking.check_settings(here, found)]
    for library in ("nccl", "rccl"):
        contents = files.read_settings_files(library, environment, etc)
        said += files.overridden_settings(environment, contents)
        in_files = [one for settings in contents for one in settings]
        said += checking.check_settings([s for s in in_files if s.name == s.name.strip()], found)
    said += files.differing_settings(environment)
    # Two libraries may have the same remark on a setting, which is shown once. Different remarks
    # are all shown, even if they have the same fix.
    known: dict[str, checking.SettingRemark] = {}
    for remark in said:
        known.setdefault(remark.key, remark)
    for remark in known.values():
        yield Check("environment", Status.WARNING, remark.what, remark.mend)


def _fix_commands(
    general: Iterable[Check], of_variables: Iterable[Check], names: Iterable[str] = ()
) -> list[str]:
    """Returns commands that fix the findings; each variable is changed by only one of them.

    Args:
        general: findings about the machine, and about the environment as a whole.
        names: names of all variables that are set.
    """
    # Several findings may be about one variable, with conflicting fixes. So the fixes of single
    # variables take precedence over the ``unset`` of all, which gets the rest. Unsetting takes
    # precedence over correcting. A misspelled variable is unset, not renamed, if the right name is
    # set, too, because programs have used that value so far.
    others, singly = _mends(general), _mends(of_variables)
    here = Changes({n: None for mend in others if _unsets(mend) for n in mend})
    changes = [mend for mend in singly if isinstance(mend, Changes)]
    decided = _decided(changes, {*here, *names})
    rest = Changes({n: None for n in here if n not in decided})
    return [
        *(str(mend) for mend in others if not _unsets(mend)),
        *(mend for mend in singly if isinstance(mend, str)),
        *_lines([*changes, rest], decided),
    ]


def _mends(findings: Iterable[Check]) -> list[str | Changes]:
    found = [f.mend for f in findings if f.mend and f.status is not Status.OK]
    return [*{str(mend): mend for mend in found}.values()]


def _unsets(mend: str | Changes) -> TypeGuard[Changes]:
    return isinstance(mend, Changes) and set(mend.values()) == {None}


def _decided(wanted: Sequence[Changes], here: Collection[str]) -> Changes:
    """Returns the final change of each variable; ``here`` are those that are set now."""
    decided = Changes()
    for changes in wanted:
        if _unsets(changes):
            decided.update(changes)
    for changes in wanted:
        is_renaming = None in changes.values()
        for name, value in changes.items():
            if value is None or not (is_renaming and name in here):
                decided.setdefault(name, value)
    return decided


def _lines(wanted: Iterable[Changes], decided: Changes) -> Iterator[str]:
    """Yields a command for each change, without variables that other commands change."""
    done: set[str] = set()
    for changes in wanted:
        kept = Changes(
            {
                name: value
                for name, value in changes.items()
                if name not in done and decided.get(name) == value
            }
        )
        done |= kept.keys()
        if kept:
            yield str(kept)
