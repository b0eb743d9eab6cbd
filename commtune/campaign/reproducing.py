"""Writes campaign files that repeat what a paper measured on a system."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from commtune.documents.quantities import list_multiples
from commtune.errors import UserError
from commtune.formatting import format_size
from commtune.model import Backend, Operation
from commtune.systems.findings import Finding, NamedFinding
from commtune.systems.loading import load_system
from commtune.systems.schema import System

#: Operations with two ranks, whatever the number of GPUs per node.
_OF_TWO = (Operation.PING_PONG, Operation.BIDIRECTIONAL, Operation.STREAM)
#: The geometric range of sizes for findings that name none.
_SMALLEST_BYTES, _LARGEST_BYTES, _STEP = 8, 1 << 30, 4
#: A placeholder for the account, which the user must replace.
YOUR_PROJECT = "YOUR_PROJECT"
#: The budget to confirm the paper's setting against the default.
_OF_A_SETTING = {"search": "5min", "ablation": "1s", "confirmation": "15min", "trials": 1}
#: The budget to measure the default only.
_OF_THE_DEFAULT = {"search": "10min", "ablation": "1s", "confirmation": "1s", "trials": 0}
_WIDTH = 99


def write_reproduction(
    named: NamedFinding, system: str, account: str = YOUR_PROJECT
) -> tuple[str, ...]:
    """Returns the texts of campaign files that repeat a finding.

    There is one with the paper's setting against the default, or one for each time it reports.

    Args:
        system: name of a shipped description.

    Raises:
        UserError: the finding is not of this system, or can't be repeated.
    """
    found = named.finding
    if found.not_repeated:
        raise UserError(f"{named.name} is not repeated: {found.not_repeated}", hint=found.says)
    if system not in found.systems:
        raise UserError(
            f"{named.name} was not measured on {system}",
            hint=f"it was on {' and '.join(found.systems)}",
        )
    described = load_system(system)
    if described.retired:
        raise UserError(f"{system} is out of service since {described.retired}", hint=found.says)
    wanted = found.campaigns or [_of_setting(described, found)]
    reasons = [_why_not(described, Backend(one["workload"]["backend"])) for one in wanted]
    possible = [one for one, why in zip(wanted, reasons, strict=True) if not why]
    missing = list(dict.fromkeys(filter(None, reasons)))
    if not possible:
        raise UserError(
            f"{named.name} can't be measured on {system}: {' and '.join(missing)}",
            hint=f"'commtune systems show {system}' shows its description",
        )
    return tuple(
        _write(named, described, account, one, number if len(possible) > 1 else 0, missing)
        for number, one in enumerate(possible, 1)
    )


def _of_setting(described: System, found: Finding) -> dict[str, Any]:
    library = next(one.name for one in described.libraries if one.name in found.libraries)
    backend = Backend.XCCL if _is_ccl(library) else Backend.MPI_DEVICE
    protected = [f"{n}={v}" for n, v in found.setting.items() if n in described.guard]
    return {
        "workload": {"backend": str(backend)},
        **({"opt_in": protected} if protected else {}),
        "first": [found.setting],
        "budget": _OF_A_SETTING,
    }


def _is_ccl(library: str) -> bool:
    return library in ("nccl", "rccl")


def _why_not(described: System, backend: Backend) -> str:
    if backend.uses_gpu and described.gpus and described.gpus.vendor == "intel":
        return "the benchmark has no backend for GPUs by Intel"
    if not _spaces_for(described, backend):
        kind = "NCCL or RCCL" if backend is Backend.XCCL else "MPI"
        return f"its description names no {kind} with a search space"
    return ""


def _spaces_for(described: System, backend: Backend) -> list[str]:
    """Returns the spaces for a backend's library, the one for a single node first."""
    wants_ccl = backend is Backend.XCCL
    fitting = (one.spaces for one in described.libraries if _is_ccl(one.name) is wants_ccl)
    return next(filter(None, fitting), [])


def _write(
    named: NamedFinding,
    described: System,
    account: str,
    wanted: Mapping[str, Any],
    number: int,
    missing: list[str],
) -> str:
    found = named.finding
    workload = _workload(described, found, wanted["workload"])
    nodes = workload["nodes"]
    qos = _qos_of(described, nodes)
    jobs = {"account": account, **({"qos": qos} if qos else {}), **wanted.get("slurm", {})}
    spaces = _spaces_for(described, Backend(workload["backend"]))
    campaign = {
        "campaign": 1,
        "name": f"{named.name}-{described.name}{f'-{number}' if number else ''}",
        "system": described.name,
        "pbs" if described.scheduler else "slurm": jobs,
        "space": spaces[0 if nodes == 1 else -1],
        "workload": workload,
        "budget": _OF_THE_DEFAULT,
        **{key: part for key, part in wanted.items() if key not in ("workload", "slurm")},
    }
    body = yaml.safe_dump(campaign, sort_keys=False, default_flow_style=None, width=_WIDTH)
    return "\n".join([*_remarks(named, described, campaign, missing), body])


def _remarks(
    named: NamedFinding, described: System, campaign: Mapping[str, Any], missing: list[str]
) -> Iterator[str]:
    found = named.finding
    yield f"# {named.name}: {found.says}"
    yield f"# {named.source}, {found.section}"
    if found.note:
        yield f"# {' '.join(found.note.split())}"
    if found.setting:
        yield "# Only the setting of the paper is tried, and confirmed against the default."
    elif campaign["budget"] == _OF_THE_DEFAULT:
        yield "# Only the default is measured: 'commtune results' has its times."
    for why in missing:
        yield f"# A part is left out here: {why}."
    if any(word.partition("=")[0] in described.guard for word in campaign.get("opt_in", [])):
        yield f"# Protected on {described.name}: ask the site before you start it."


def _workload(described: System, found: Finding, wanted: Mapping[str, Any]) -> dict[str, Any]:
    gpus = described.gpus.count if described.gpus else 1
    operation = wanted.get("operation") or (*found.operations, str(Operation.PING_PONG))[0]
    nodes = 1 if found.most_nodes == 1 else max(2, found.least_nodes or 2)
    nodes = wanted.get("ranks", 0) // gpus or wanted.get("nodes") or nodes
    workload = {
        "operation": operation,
        "nodes": nodes,
        "ranks": 2 if operation in _OF_TWO else nodes * gpus,
        "sizes": _sizes(found),
        **wanted,
    }
    if workload.get("active") == "all":
        workload["active"] = gpus
    return workload


def _qos_of(described: System, nodes: int) -> str:
    """Returns a quality of service for more nodes than the partition allows by default."""
    slurm = described.slurm
    if slurm is None:
        return ""
    partition = slurm.partitions[slurm.partition]
    if nodes <= (partition.most_nodes or nodes):
        return ""
    fitting = (
        name
        for name, qos in partition.qos.items()
        if (qos.least_nodes or 0) <= nodes <= (qos.most_nodes or nodes)
    )
    return next(fitting, "")


def _sizes(found: Finding) -> str:
    low = max(_SMALLEST_BYTES, found.least_bytes or 0)
    most = min(_LARGEST_BYTES, found.most_bytes or _LARGEST_BYTES)
    high = list_multiples(low, max(low, most), _STEP)[-1]
    most_words = format_size(high).replace(" ", "")
    return most_words if high == low else f"{low} .. {most_words} x{_STEP}"
