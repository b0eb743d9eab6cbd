"""Builds the database records of campaigns: their question, machine, software and settings."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from commtune.campaign.loading import CampaignSpec
from commtune.cluster.machine.description import Machine, describe_machine
from commtune.cluster.machine.doctor import public_names
from commtune.db.codec import to_json_value
from commtune.db.records import (
    LIBRARIES,
    CampaignDescription,
    CampaignRecord,
    StackRecord,
    SystemRecord,
)
from commtune.db.settings import DESCRIBED
from commtune.formatting import describe_emulated
from commtune.kernels.programs import files_of, sources_of
from commtune.model import Backend, MpiInstallation, Workload, content_key
from commtune.replay.recording import Grid
from commtune.spaces.space import Space
from commtune.systems.nominal.fabric import fabric_of
from commtune.systems.nominal.operations import FABRIC
from commtune.wiring.gpu_toolchains import stack_of
from commtune.wiring.job_handover import CUT_TO, guards_here
from commtune.wiring.scheduler_campaign import SchedulerCampaign
from commtune.wiring.user_folders import runs_folder

#: Usual names of libraries below MPI that differ from the catalogue's.
_LIBRARY_NAMES = {"ucc": "UCC", "ucx": "UCX"}

#: The most messages of a matrix that are stored with a campaign, for its nominal bandwidth.
_MOST_FLOWS = 4000


def record_of(
    spec: CampaignSpec,
    mpi: MpiInstallation,
    machine: Machine,
    folder: Path,
) -> CampaignRecord:
    workload = spec.plan.workload
    return _record(
        spec,
        _surroundings(mpi, machine, spec.protected_variables, workload),
        system_of(machine, workload.emulated_nodes),
        _stack(mpi, machine, workload.backend, spec.versions),
        folder,
    )


def _record(
    spec: CampaignSpec,
    surroundings: Mapping[str, Any],
    system: SystemRecord,
    stack: StackRecord,
    folder: Path | str = "",
) -> CampaignRecord:
    plan = spec.plan
    return CampaignRecord(
        name=plan.name,
        what=plan.comparable(surroundings),
        settings=_settings(spec),
        space=_space_plain(plan.space, spec.versions),
        space_key=plan.space.key,
        seed=plan.seed,
        system=system,
        stack=stack,
        folder=str(folder),
    )


def _surroundings(
    mpi: MpiInstallation, machine: Machine, guards: Sequence[str], workload: Workload
) -> dict[str, Any]:
    gpu = stack_of(workload.backend)
    return {
        "machine": machine.shape(),
        **_programs(mpi, guards, workload),
        **({"gpu": gpu} if gpu else {}),
    }


def _programs(mpi: MpiInstallation, guards: Sequence[str], workload: Workload) -> dict[str, Any]:
    """Returns the MPI, the digest of the benchmark, and the protected variables."""
    files = files_of(workload)
    return {
        "mpi": {"flavour": str(mpi.flavour), "version": mpi.version},
        "benchmark": {"sources": sources_of(workload), **({"files": files} if files else {})},
        "guards": _guards(guards, workload),
    }


def _guards(names: Sequence[str], workload: Workload) -> dict[str, str | None]:
    """Returns the protected variables of a campaign, with their values.

    Only a digest is stored for variables that aren't communication libraries', such as tokens.
    Variables that keep hardware safe are included unless MPI uses host memory.
    """
    found = guards_here(names)
    asked = {name: found.get(name) for name in names}
    told = {**asked, **found} if Backend(workload.backend).memory == "device" else asked
    public = public_names(told)
    return {n: v if v is None or n in public else _digest(v) for n, v in told.items()}


def _digest(value: str) -> str:
    """Returns a digest of a value that may be secret; it only shows whether that changed."""
    return f"sha256:{hashlib.sha256(value.encode(errors='surrogateescape')).hexdigest()[:16]}"


def scheduler_campaign_record(on: SchedulerCampaign) -> CampaignRecord:
    """Returns the record of a campaign on a cluster, whichever machine of it this is."""
    spec, mpi, plan, cluster = on.spec, on.mpi, on.spec.plan, on.what()
    surroundings = {
        "machine": {**cluster, "nodes": plan.workload.nodes},
        str(on.kind): on.request.question(),
        **_programs(mpi, spec.protected_variables, plan.workload),
    }
    stack = {"mpi": str(mpi.flavour), "version": mpi.version, str(on.kind): on.site.version}
    where = f"{cluster['system'] or cluster['cluster']} {cluster['partition']}".strip()
    bare = StackRecord(content_key(stack), mpi.words, stack)
    return _record(
        spec,
        surroundings,
        SystemRecord(content_key(cluster), where, cluster),
        _with_libraries(bare, spec.versions),
        on.folder / "runs",
    )


def record_of_today(
    stored: CampaignDescription, mpi: MpiInstallation, versions: Mapping[str, str]
) -> CampaignRecord:
    """Returns a stored campaign's record as if it began here and now, with these versions."""
    machine = describe_machine()
    guards = tuple(stored.what.get("guards", {}))
    workload = Workload.of_plain(stored.what["workload"])
    return CampaignRecord(
        name=stored.name,
        what=to_json_value({**stored.what, **_surroundings(mpi, machine, guards, workload)}),
        settings=stored.settings,
        space=stored.space,
        space_key=stored.what["space"]["content"],
        seed=stored.seed,
        system=system_of(machine, workload.emulated_nodes),
        stack=_stack(mpi, machine, workload.backend, versions),
        simulated=stored.simulated,
        folder=str(runs_folder(stored.name)),
    )


def replayed_record(spec: CampaignSpec, grid: Grid) -> CampaignRecord:
    """Returns the record of a replayed campaign; its system and stack differ from real ones."""
    header = grid.header
    recording = {"name": header.name, "recorded": header.recorded, "sha256": grid.digest}
    surroundings = {
        "machine": {k: v for k, v in header.system.items() if k != "name"},
        "mpi": {k: header.stack.get(k) for k in ("flavour", "version")},
        "benchmark": {"sources": header.benchmark.get("sources")},
        "guards": {},
        "replayed": recording,
    }
    system = {**header.system, "replayed": recording}
    stack = {**header.stack, "replayed": recording}
    text = f"{header.stack.get('name')} {header.stack.get('version')} (replayed)"
    where = f"replayed: {header.system.get('name')} ({header.name})"
    record = _record(
        replace(spec, versions=None),
        surroundings,
        SystemRecord(content_key(system), where, system),
        StackRecord(content_key(stack), text, stack),
    )
    settings = {**record.settings, "replayed": header.name}
    return replace(record, settings=settings, simulated=True)


def _space_plain(space: Space, versions: Mapping[str, str] | None) -> dict[str, Any]:
    return {
        "name": space.name,
        "version": space.version,
        "library": space.library,
        "pinned": dict(space.pinned),
        "variables": [v for v in space.variables if v not in space.pinned],
        "parameters": {p.name: list(p.values) for p in space.parameters},
        # For a later session that can't ask for the versions; empty if they were unknown.
        **({CUT_TO: dict(versions)} if versions is not None else {}),
    }


def _settings(spec: CampaignSpec) -> dict[str, Any]:
    plan, system = spec.plan, spec.system
    tried = [one.plain() for one in spec.reference_settings]
    learned = [{"campaign": of, "tried": dict(one)} for one, of in spec.learned.items()]
    file = str(spec.file.resolve()) if spec.file else None
    asked = spec.job_request
    jobs = {str(asked.scheduler): {"exclude": list(asked.exclude), "file": file}} if asked else {}
    return {
        "budget": asdict(plan.budget),
        "minimum_gain": plan.minimum_gain,
        "tolerance": plan.tolerance,
        "level": plan.level,
        "first": [dict(configuration) for configuration in plan.first],
        **({"reference_settings": tried} if tried else {}),
        **({"learned": learned} if learned else {}),
        **({"timing_choice": asdict(choice)} if (choice := spec.timing_choice) else {}),
        "guard_operations": [str(guard) for guard in plan.guards],
        "messages": {str(size): count for size, count in plan.messages.items()},
        "mpi": spec.mpi,
        "time_limit_s": plan.time_limit_s,
        "node_hours": plan.budget.node_hours,
        # For lists of campaigns; constant, as it is a part of the workload.
        **({"emulated_nodes": emulated} if (emulated := plan.workload.emulated_nodes) else {}),
        **_of_shape(plan.workload),
        # The options of jobs that may change; to measure more, the others are read from the file.
        **jobs,
        **({FABRIC: asdict(fabric_of(system)), DESCRIBED: system.name} if system else {}),
    }


def _of_shape(workload: Workload) -> dict[str, Any]:
    """Returns what the nominal bandwidth of a communication pattern depends on."""
    shape, matrix = workload.shape.plain(), workload.shape.content
    known: dict[str, Any] = {"shape": shape} if shape else {}
    known |= {"window": workload.window} if workload.window else {}
    if matrix and len(matrix.flows) <= _MOST_FLOWS:
        known["flows"] = [list(flow) for flow in matrix.flows]
    return known


def system_of(machine: Machine, emulated_nodes: int = 0) -> SystemRecord:
    """Returns the record of a machine; one with emulated nodes is a different system."""
    name = f"{machine.cpu_model}, {machine.cores_usable} cores"
    for model in dict.fromkeys(gpu.model for gpu in machine.gpus):
        name += f", {sum(gpu.model == model for gpu in machine.gpus)} x {model}"
    if not emulated_nodes:
        return SystemRecord(machine.fingerprint(), name, machine.shape())
    shape = {**machine.shape(), "emulated_nodes": emulated_nodes}
    key = content_key({"machine": machine.fingerprint(), "emulated_nodes": emulated_nodes})
    return SystemRecord(key, f"{name} ({describe_emulated(emulated_nodes)})", shape)


def _stack(
    mpi: MpiInstallation, machine: Machine, backend: str, versions: Mapping[str, str] | None
) -> StackRecord:
    gpu = stack_of(backend)
    description = {"mpi": str(mpi.flavour), "version": mpi.version, **machine.stack(), **gpu}
    # For example ``NCCL 2.28.9, CUDA 13.0.88, mpich 5.0.2``.
    words = [f"{n.upper()} {gpu[n]}" for n in ("nccl", "rccl", "cuda", "hip") if n in gpu]
    text = ", ".join(filter(None, [*words, mpi.words]))
    bare = StackRecord(content_key(description), text, description)
    return _with_libraries(bare, versions)


def _with_libraries(stack: StackRecord, versions: Mapping[str, str] | None) -> StackRecord:
    """Returns a stack with the known versions of libraries below MPI whose variables are searched.

    Only these decide what is searched, and finding the versions of others would take a run.
    """
    if not versions:
        return stack
    description = {**stack.description, LIBRARIES: dict(versions)}
    words = [f"{_LIBRARY_NAMES.get(name, name)} {version}" for name, version in versions.items()]
    text = ", ".join([stack.text, *words])
    return StackRecord(content_key(description), text, description, formerly=stack)
