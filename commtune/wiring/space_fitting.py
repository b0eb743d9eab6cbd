"""Fits the space of a campaign to the libraries, versions and variables of this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from commtune.campaign.protected import check_pins, protected_settings
from commtune.errors import MissingComponent
from commtune.model import Backend, MpiFlavour, MpiInstallation
from commtune.spaces.loading import list_presets, load_space
from commtune.spaces.preset_choice import Memory, choose_preset, is_version_in
from commtune.spaces.space import Space
from commtune.spaces.version_filter import cut_space_to_versions
from commtune.wiring.gpu_toolchains import libraries_of
from commtune.wiring.job_handover import guards_here
from commtune.wiring.library_versions import begun_campaign, with_versions

if TYPE_CHECKING:  # `doctor` reads no campaign file
    from commtune.campaign.loading import CampaignSpec

#: Backends that pass pointers to GPU memory to MPI; the others copy to the host first.
_GIVEN_DEVICE_MEMORY = (Backend.MPI_DEVICE, Backend.PYTHON_DEVICE)


def preset_for(mpi: MpiInstallation, operation: str, backend: str = Backend.MPI_HOST) -> str:
    """Returns the name of the preset space for a backend, an MPI and an operation.

    Raises:
        MissingComponent: there is nothing to build the backend with.
    """
    return _fitting_presets(libraries_of(backend, mpi), operation, backend)[0]


def preset_begun_with(url: str, name: str, chosen: str) -> str:
    """Returns the preset that the stored campaign of this name began with, or else ``chosen``.

    A new version of commtune may choose another preset, but a continued campaign keeps its own.
    Campaigns with a space file, or for another library, don't count.
    """
    stored = begun_campaign(url, name)
    begun = stored.space.get("name", "") if stored else chosen
    if begun == chosen or begun not in list_presets():
        return chosen
    return begun if load_space(begun).library == load_space(chosen).library else chosen


def _fitting_presets(libraries: Mapping[str, str], operation: str, backend: str) -> list[str]:
    memory: Memory = "device" if backend in _GIVEN_DEVICE_MEMORY else "host"
    return [
        choose_preset(library, version, memory=memory, operation=operation)
        for library, version in libraries.items()
    ]


def _check_library(spec: CampaignSpec, mpi: MpiInstallation) -> None:
    """Refuses a campaign whose space was made for another library than the one found.

    ``fit_campaign`` checks the version, as that of UCX is found by a run.

    Raises:
        CampaignError: with the line of its file, and the space that would fit.
        MissingComponent: there is nothing to build the backend with.
    """
    space, backend = spec.plan.space, spec.plan.workload.backend
    if backend == Backend.COMMAND:
        return  # only its user knows which libraries it uses
    found = _find_libraries(space, backend, mpi)
    if space.library in found:
        return
    uses_mpi = (
        space.library in {flavour.library for flavour in MpiFlavour} and backend != Backend.XCCL
    )
    fitting = _fitting_presets(found, spec.plan.workload.operation, backend)
    if not uses_mpi:
        raise spec.error_at(
            "space",
            f"space {space.name} is for {space.library}, which the backend {backend} does not "
            "use: its variables would have no effect",
            hint=_suggest_spaces(spec, fitting),
        )
    raise spec.error_at(
        "space",
        f"space {space.name} is for {space.library}, but the MPI found is "
        f"{mpi.flavour} {mpi.version} ({mpi.compiler})",
        hint=f"use '{_write_key(spec, 'space')}{fitting[0]}', or name another MPI with "
        f"'{_write_key(spec, 'mpi').strip()}'",
    )


def _find_libraries(space: Space, backend: str, mpi: MpiInstallation) -> Mapping[str, str]:
    """As ``libraries_of``, but a missing toolchain is no error if the space can't fit anyway."""
    try:
        return libraries_of(backend, mpi)
    except MissingComponent:
        if backend != Backend.XCCL or space.library in ("nccl", "rccl"):
            raise
        return {"nccl": ""}


def fit_campaign(
    spec: CampaignSpec,
    mpi: MpiInstallation,
    begun: Callable[[], Mapping[str, str] | None] = lambda: None,
    protected: Mapping[str, str] | None = None,
) -> CampaignSpec:
    """Returns the campaign with its space cut to what this machine has, and remarks on that.

    The last step after ``campaign.loading``: the cut space is measured and stored.

    Args:
        begun: returns the versions that the stored campaign was cut to, if there is one.
        protected: protected variables with their values; by default those of this environment.

    Raises:
        CampaignError: it pins a variable that this environment protects; or as
            ``_check_library``.
        MissingComponent: as ``_check_library``.
        UserError: the versions that the environment gives can't be read.
    """
    spec = _fit_to_environment(spec, protected)
    _check_library(spec, mpi)
    if spec.plan.workload.backend == Backend.COMMAND:
        return spec
    spec = with_versions(spec, mpi, begun)
    versions = {**libraries_of(spec.plan.workload.backend, mpi), **(spec.versions or {})}
    space = spec.plan.space
    warning = _warn_of_version(space, versions.get(space.library, ""))
    spec = spec.with_remarks([warning] if warning else [])
    return cut_to_versions(spec, versions)


def cut_to_versions(spec: CampaignSpec, versions: Mapping[str, str]) -> CampaignSpec:
    """Returns the campaign with its space cut to versions of libraries, and remarks on that."""
    space, said = cut_space_to_versions(spec.plan.space, versions)
    return spec.with_space(space, said, "the version found does not read it")


def library_words(backend: str, mpi: MpiInstallation) -> str:
    """Returns the library that a backend communicates by: ``openmpi 4.1.6``, ``nccl 2.28.9``."""
    if backend == Backend.XCCL:
        ((name, version),) = libraries_of(backend, mpi).items()
        return f"{name} {version}"
    return f"{mpi.flavour} {mpi.version}"


def _suggest_spaces(spec: CampaignSpec, fitting: Sequence[str]) -> str:
    library, backend = spec.plan.space.library, spec.plan.workload.backend
    if library in ("nccl", "rccl"):
        xccl = "write 'backend: xccl' under 'workload'" if spec.file else "add '--backend xccl'"
        return f"{xccl}, or use the space {fitting[0]}"
    if backend == Backend.MPI_HOST:
        presets = sorted(
            choose_preset(flavour.library)
            for flavour in MpiFlavour
            if flavour is not MpiFlavour.NONE
        )
        return f"spaces for MPI over host memory: {', '.join(presets)}"
    return f"use '{_write_key(spec, 'space')}{fitting[0]}'"


def _write_key(spec: CampaignSpec, name: str) -> str:
    """Returns the prefix of a value: the key of the campaign file, or else the CLI option."""
    return f"{name}: " if spec.file is not None else f"--{name} "


def _warn_of_version(space: Space, version: str) -> str:
    if is_version_in(version, space.versions):
        return ""
    return (
        f"note: space {space.name} was made for {space.library} {space.versions}, and this is "
        f"{version};\n  names that it does not know have no effect"
    )


def _fit_to_environment(
    spec: CampaignSpec, protected: Mapping[str, str] | None = None
) -> CampaignSpec:
    """Removes protected variables from the space; a ``CampaignError`` if it pins any of them."""
    from commtune.campaign.protected_spaces import apply_protected  # as above

    if protected is None:
        # Variables that only a job's nodes protect don't cut the space, but bind its pins.
        bound = protected_settings(spec.protected_variables, os.environ)
        check_pins(spec.plan.space.pinned, bound, spec.file)
        protected = guards_here(spec.protected_variables)
    return apply_protected(spec, protected)
