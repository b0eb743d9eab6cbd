"""Finds the versions of libraries that MPI, NCCL and RCCL load, such as UCX and libfabric.

Only a running process knows these, so the benchmark is run briefly. With a scheduler, a single
process on the login node is asked, and jobs get the versions by their environment.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from commtune.cluster.local.launch import base_environment
from commtune.cluster.machine.description import describe_machine
from commtune.errors import CommtuneError
from commtune.kernels.library_versions import probe_library_versions, read_versions
from commtune.model import (
    DEFAULT,
    Backend,
    MpiInstallation,
    Operation,
    RunRequest,
    Timing,
    Workload,
)
from commtune.wiring.job_handover import ASKED, CUT_TO, given_versions

if TYPE_CHECKING:  # `doctor` reads no campaign file
    from commtune.campaign.loading import CampaignSpec
    from commtune.db.records import CampaignDescription

#: Time limit of that run, seconds: a library may take seconds to start on a large node.
_LIMIT_S = 60.0
_SHORT = Timing(warmup=1, min_samples=2, max_samples=2)


@dataclass(frozen=True)
class _Answer:
    versions: Mapping[str, str] = field(default_factory=dict)
    why: str = ""  # why other versions are unknown
    failed: bool = False  # whether the run failed; else the other libraries are not loaded
    given: bool = False  # whether the environment gave the versions, without a run


def begun_campaign(url: str, name: str) -> CampaignDescription | None:
    """Returns the stored campaign of this name, unless it is simulated; ``None`` for none."""
    from commtune.db.queries.description import describe_campaign  # `init` asks no database

    try:
        stored = describe_campaign(url, name)
    except CommtuneError:
        return None  # the error is reported when the database is opened for the campaign
    return None if stored.simulated else stored


def begun_with(url: str, name: str) -> Mapping[str, str] | None:
    """Returns the versions that the stored campaign's space was cut to; ``None`` if unknown.

    No versions count as known only if the campaign has a good run. If all runs failed, so did the
    one that asks for the versions, and the campaign may start afresh.
    """
    from commtune.db.queries.description import benchmark_header

    with suppress(CommtuneError):
        if stored := begun_campaign(url, name):
            cut: Mapping[str, str] | None = stored.space.get(CUT_TO)
            return cut if cut or benchmark_header(url, stored.id) is not None else None
    return None


def with_versions(
    spec: CampaignSpec,
    mpi: MpiInstallation,
    begun: Callable[[], Mapping[str, str] | None] = lambda: None,
) -> CampaignSpec:
    """Returns the campaign with the versions of the libraries whose variables its space has.

    A continued campaign keeps the versions that it began with if they can't be found now; those
    that were unknown then are not used, so that its space stays the same.

    Raises:
        UserError: the versions that the environment gives can't be read.
    """
    wanted = libraries_named(spec.plan.space.variables)
    if spec.versions is not None or not wanted or spec.plan.workload.backend == Backend.COMMAND:
        return spec
    answer = _ask_versions(spec, mpi)
    stored = None if answer.given else begun()
    versions, said = _settle_versions(wanted, answer, stored)
    return replace(spec, versions=versions, remarks=(*spec.remarks, *said))


def _settle_versions(
    wanted: Sequence[str], answer: _Answer, stored: Mapping[str, str] | None
) -> tuple[dict[str, str], list[str]]:
    """Returns the versions that a campaign uses, and remarks on them."""
    found = {name: answer.versions[name] for name in wanted if name in answer.versions}
    missing = [name for name in wanted if name not in found]
    if stored is None:
        return found, _remark_on_unknown(missing, answer.why)
    known = {name: stored[name] for name in wanted if name in stored}
    if answer.failed:
        unknown = [name for name in missing if name not in known]
        why = f"can't be asked now ({answer.why}): assumed as when the campaign was started"
        said = [f"note: {_format_versions(known)}: {why}"] if known else []
        return known, [*said, *_remark_on_unknown(unknown, answer.why)]
    new = {name: version for name, version in found.items() if name not in known}
    why = "not known when the campaign was started, so nothing is left out because of it"
    said = [f"note: {_format_versions(new)}: {why}"] if new else []
    going = {name: version for name, version in found.items() if name in known}
    return going, [*said, *_remark_on_unknown(missing, answer.why)]


def _remark_on_unknown(missing: Sequence[str], why: str) -> list[str]:
    if not missing or not why:
        return []
    names = ", ".join(missing)
    return [
        f"note: {names}: the version is not known ({why}), so nothing is left out because of it"
    ]


def _format_versions(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def versions_again(stored: CampaignDescription, mpi: MpiInstallation) -> Mapping[str, str]:
    """Returns today's versions of the libraries below MPI in a stored campaign's stack.

    Returns the stored ones if the run fails, and on another machine than the campaign's, such as a
    login node, for which the campaign's ranks may be too many.

    Raises:
        UserError: the versions that the environment gives can't be read.
    """
    from commtune.db.codec import to_json_value
    from commtune.db.records import LIBRARIES

    known: Mapping[str, str] = stored.stack.description.get(LIBRARIES, {})
    if not known:
        return {}
    told = given_versions(os.environ)
    if told is None:
        if to_json_value(describe_machine().shape()) != stored.what["machine"]:
            return dict(known)
        workload = Workload.of_plain(stored.what["workload"])
        pinned, guards = stored.space.get("pinned", {}), tuple(stored.what.get("guards", {}))
        answer = _ask_by_run(mpi, workload, pinned, guards)
        told = dict(known if answer.failed else answer.versions)
    return {name: told[name] for name in known if name in told}


def libraries_named(names: Collection[str]) -> list[str]:
    """Returns those of ``ASKED`` that read any of these variables."""
    from commtune.spaces.catalogue.loading import variable_prefixes  # reads files

    return [one for one in ASKED if any(name.startswith(variable_prefixes(one)) for name in names)]


def _ask_versions(spec: CampaignSpec, mpi: MpiInstallation) -> _Answer:
    told = given_versions(os.environ)
    if told is not None:
        return _Answer(told, given=True)
    if spec.job_request is None:
        plan = spec.plan
        return _ask_by_run(mpi, plan.workload, plan.space.pinned, spec.protected_variables)
    if spec.plan.workload.backend == Backend.XCCL:
        return _Answer(why="what NCCL and RCCL load can only be seen in a job", failed=True)
    environment = base_environment(os.environ, mpi, spec.protected_variables)
    alone = probe_library_versions(mpi, {**environment, **spec.plan.space.pinned})
    if alone is None:
        return _Answer(why=f"{mpi.flavour} does not start outside of a job", failed=True)
    return _Answer(alone, f"{mpi.flavour} does not load it here")


def _ask_by_run(
    mpi: MpiInstallation, asked: Workload, pinned: Mapping[str, str], guards: Sequence[str]
) -> _Answer:
    """Returns the versions in the header of a minimal run of the default."""
    from commtune.wiring.benchmark_setup import unstored_benchmark  # `doctor` measures nothing

    name = f"versions-{uuid.uuid4().hex[:8]}"
    workload = Workload(
        Operation.ALLREDUCE,
        (8,),
        asked.ranks,
        backend=asked.backend,
        emulated_nodes=asked.emulated_nodes,
    )
    try:
        with unstored_benchmark(mpi, pinned, workload, guards) as benchmark:
            # Repeated if it fails: without the versions the campaign's space would be another one.
            for number in (1, 2):
                request = RunRequest(f"{name}-{number}", DEFAULT, workload, _SHORT)
                result = benchmark.measure(request, _LIMIT_S)
                if result.header is not None:
                    break
    except CommtuneError as error:
        said = error.message.splitlines()[0].rstrip(":")  # without the output of tools
        return _Answer(why=said, failed=True)
    if result.header is None:
        return _Answer(why=f"a run of the default fails: {result.outcome}", failed=True)
    versions = read_versions(result.header.get("versions"))
    return _Answer(versions, "a run of the default does not load it")
