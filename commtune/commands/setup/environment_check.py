"""What the catalogue says of the variables that the user has set, for ``commtune doctor``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from commtune.cluster.local.launch import base_environment
from commtune.cluster.machine.doctor import Check, Status
from commtune.kernels.library_versions import probe_library_versions
from commtune.model import MpiInstallation
from commtune.spaces.catalogue.checking import (
    EnvironmentSetting,
    SettingRemark,
    check_settings,
    misspelled_values,
)
from commtune.spaces.catalogue.settings_files import (
    differing_settings,
    module_settings,
    overridden_settings,
    read_settings,
    settings_files,
)
from commtune.wiring.handover import given_versions
from commtune.wiring.versions import libraries_named

#: Locations, labels and what containers set, which are not NCCL's.
_NOT_ASKED = frozenset({"NCCL_VERSION", "FI_PROVIDER_PATH", "I_MPI_ROOT"})


def installed_versions(
    mpi: MpiInstallation | None, xccl: tuple[str, str] | None
) -> dict[str, str]:
    """Versions of the libraries that are here, by their names in the catalogue.

    Args:
        xccl: name and version of NCCL or RCCL.
    """
    found = {mpi.flavour.library: mpi.version} if mpi else {}
    return found | ({xccl[0].lower(): xccl[1]} if xccl else {})


def versions_below(mpi: MpiInstallation | None, environment: Mapping[str, str]) -> dict[str, str]:
    """Versions of the libraries that an MPI loads by itself, of those that variables are set of.

    Asked by starting the MPI in a process of its own, as it would start in this environment.

    Raises:
        UserError: versions that the environment gives can't be read.
    """
    wanted = libraries_named(environment.keys() - _NOT_ASKED)
    if mpi is None or not wanted:
        return {}
    found = given_versions(environment)
    if found is None:
        # Where a setting keeps it from starting, or a library from being loaded: without them.
        found = probe_library_versions(mpi, environment) or probe_library_versions(
            mpi, base_environment(environment, mpi)
        )
    return {name: version for name, version in (found or {}).items() if name in wanted}


def check_environment(
    environment: Mapping[str, str], found: Mapping[str, str], etc: Path = Path("/etc")
) -> Iterator[Check]:
    """A finding for each setting that is wrong, void or dangerous.

    Args:
        found: versions of the libraries that are here, by their names in the catalogue.
        etc: the site's folder of settings files.
    """
    settings = [
        EnvironmentSetting(n, v) for n, v in sorted(environment.items()) if n not in _NOT_ASKED
    ]
    said = [*check_settings(settings, found), *misspelled_values(settings, found)]
    for library in ("nccl", "rccl"):
        files = settings_files(library, environment, etc)
        contents = tuple(read_settings(file) for file in files)
        said += overridden_settings(environment, contents)
        in_files = [*_all(contents)]
        said += [*check_settings(in_files, found), *misspelled_values(in_files, found)]
    said += differing_settings(environment, module_settings(environment))
    for remark in _once(said):
        yield Check("environment", Status.WARNING, remark.what, remark.mend)


def _all(contents: Iterable[Iterable[EnvironmentSetting]]) -> Iterator[EnvironmentSetting]:
    for settings in contents:
        yield from (s for s in settings if s.name == s.name.strip())


def _once(said: Iterable[SettingRemark]) -> Iterator[SettingRemark]:
    """Of remarks that say the same, such as two libraries on one setting, the first.

    What is mended alike may be wrong for different reasons: each of them is said.
    """
    known: dict[str, SettingRemark] = {}
    for remark in said:
        known.setdefault(remark.key, remark)
    yield from known.values()
