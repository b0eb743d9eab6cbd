"""Versions of the libraries that MPI, NCCL and RCCL load by themselves.

Nothing on disk says them: a wheel brings a UCX of its own, a module another one. So the benchmark
is run once, for a moment, and its header tells what was loaded. On Slurm, where runs are made
elsewhere, one process of the MPI is asked here, once; jobs are handed what it said.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from commtune.cluster.launch import base_environment
from commtune.errors import CommtuneError
from commtune.kernels.asking import ask_alone, versions_in
from commtune.model import (
    DEFAULT,
    Backend,
    MpiInstallation,
    Operation,
    RunRequest,
    Timing,
    Workload,
)
from commtune.tuner.campaign_file import CampaignSpec
from commtune.wiring.given_versions import ASKED, given
from commtune.wiring.programs import prepare_pinned

#: Starting a library on a large node takes seconds; a launcher that hangs is waited for as long.
_LIMIT_S = 60.0
_SHORT = Timing(warmup=1, min_samples=2, max_samples=2)


def with_versions(spec: CampaignSpec, mpi: MpiInstallation) -> CampaignSpec:
    """The campaign with the versions of the libraries whose variables its space has.

    Nothing is asked where it has no such variable, or where that was done before.

    Raises:
        UserError: the versions that were given can't be read.
    """
    wanted = libraries_named(spec.plan.space.variables)
    if spec.versions is not None or not wanted or spec.plan.workload.backend == Backend.COMMAND:
        return spec
    found, why = _found(spec, mpi)
    versions = {name: version for name, version in found.items() if name in wanted}
    missing = ", ".join(name for name in wanted if name not in versions)
    said = f"note: {missing}: the version is not known ({why}), so that nothing is cut by it"
    remarks = (*spec.remarks, *([said] if missing and why else []))
    return replace(spec, versions=versions, remarks=remarks)


def libraries_named(names: Collection[str]) -> list[str]:
    """The libraries that can be asked which read variables of these names."""
    from commtune.spaces.catalogue import prefixes  # reads files

    return [one for one in ASKED if any(name.startswith(prefixes(one)) for name in names)]


def _found(spec: CampaignSpec, mpi: MpiInstallation) -> tuple[dict[str, str], str]:
    """All versions that can be had, and why the others can't."""
    told = given(os.environ)
    if told is not None:
        return told, ""
    if spec.slurm is None:
        return _of_a_run(spec, mpi)
    if spec.plan.workload.backend == Backend.XCCL:
        return {}, "what NCCL and RCCL load can only be seen in a job"
    environment = base_environment(os.environ, mpi, spec.guard_variables)
    alone = ask_alone(mpi, {**environment, **spec.plan.space.pinned})
    if alone is None:
        return {}, f"{mpi.flavour} does not start outside of a job"
    return alone, f"{mpi.flavour} does not load it here"


def _of_a_run(spec: CampaignSpec, mpi: MpiInstallation) -> tuple[dict[str, str], str]:
    """What the header of a run of the default tells, the shortest that there is."""
    asked, name = spec.plan.workload, f"versions-{uuid.uuid4().hex[:8]}"
    workload = Workload(
        Operation.ALLREDUCE,
        (8,),
        asked.ranks,
        backend=asked.backend,
        emulated_nodes=asked.emulated_nodes,
    )
    with tempfile.TemporaryDirectory(prefix="commtune-") as folder:
        try:
            benchmark = prepare_pinned(
                mpi, spec.plan.space.pinned, (), workload, Path(folder), spec.guard_variables
            )
            # Once more where it fails: with other versions the same campaign is another question.
            for number in (1, 2):
                request = RunRequest(f"{name}-{number}", DEFAULT, workload, _SHORT)
                result = benchmark.measure(request, _LIMIT_S)
                if result.header is not None:
                    break
        except CommtuneError as error:
            return {}, error.message.splitlines()[0]
    if result.header is None:
        return {}, f"a run of the default fails: {result.outcome}"
    return versions_in(result.header), "a run of the default does not load it"
