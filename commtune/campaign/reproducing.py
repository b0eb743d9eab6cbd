"""The campaign that repeats what a paper measured on a system."""

from __future__ import annotations

from commtune.errors import UserError
from commtune.formatting import format_size
from commtune.model import Backend
from commtune.systems.findings import Finding, NamedFinding
from commtune.systems.loading import load_system
from commtune.systems.schema import System

#: Operations of two ranks, however many GPUs a node has.
_OF_TWO = ("ping-pong", "bidirectional", "stream")
#: Sizes where a finding names none: as far as campaigns go, each so many times the last.
_SMALLEST_BYTES, _LARGEST_BYTES, _STEP = 8, 1 << 30, 4
#: Stands in the file until its user knows better.
YOUR_PROJECT = "YOUR_PROJECT"


def write_reproduction(named: NamedFinding, system: str, account: str = YOUR_PROJECT) -> str:
    """The campaign file: the paper's setting against the default, and nothing else.

    Args:
        system: name of a shipped description.
        account: for Slurm.

    Raises:
        UserError: the finding is of no setting, or not of this system.
    """
    found = named.finding
    if not found.setting:
        raise UserError(
            f"{named.name} is an observation: no setting is its cause, so there is nothing to "
            "compare",
            hint=f"'{found.says}'\n"
            "docs/findings.md, 'Figures of the papers', has the commands that measure it",
        )
    if system not in found.systems:
        raise UserError(
            f"{named.name} was not measured on {system}",
            hint=f"it was on {' and '.join(found.systems)}",
        )
    described = load_system(system)
    nodes = 1 if found.most_nodes == 1 else max(2, found.least_nodes or 2)
    operation = found.operations[0] if found.operations else "ping-pong"
    space = _space_of(described, found, within=nodes == 1)
    gpus = described.gpus.count if described.gpus else 1
    ranks = 2 if operation in _OF_TWO else nodes * gpus
    backend = Backend.XCCL if space.startswith(("nccl", "rccl")) else Backend.MPI_DEVICE
    setting = ", ".join(f'{name}: "{value}"' for name, value in found.setting.items())
    qos = _qos_of(described, nodes)
    lines = [
        f"# {named.name}: {found.says}",
        f"# {named.source}, {found.section}",
        *([f"# {' '.join(found.note.split())}"] if found.note else []),
        "campaign: 1",
        f"name: {named.name}-{system}",
        f"system: {system}",
        f"slurm: {{account: {account}{f', qos: {qos}' if qos else ''}}}",
        f"space: {space}",
        "workload:",
        f"  operation: {operation}",
        f"  backend: {backend}",
        f"  nodes: {nodes}",
        f"  ranks: {ranks}",
        f'  sizes: "{_sizes(found)}"',
        *_opt_in(described, found),
        "# Only the setting of the paper is tried, and confirmed against the default.",
        f"first: [{{{setting}}}]",
        "budget: {search: 5min, ablation: 1s, confirmation: 15min, trials: 1}",
    ]
    return "\n".join(lines) + "\n"


def _space_of(described: System, found: Finding, *, within: bool) -> str:
    """The space of the system's library: the one for a node, or the one between nodes."""
    spaces = next(
        library.spaces for library in described.libraries if library.name in found.libraries
    )
    return spaces[0 if within else -1]


def _qos_of(described: System, nodes: int) -> str:
    """The quality of service for so many nodes, where they are too many for the default's."""
    partition = described.jobs.partitions[described.jobs.partition]
    if nodes <= (partition.most_nodes or nodes):
        return ""
    fitting = (
        name
        for name, qos in partition.qos.items()
        if (qos.least_nodes or 0) <= nodes <= (qos.most_nodes or nodes)
    )
    return next(fitting, "")


def _opt_in(described: System, found: Finding) -> list[str]:
    """The lines that open what the system protects; nothing else needs them."""
    protected = [f'"{n}={v}"' for n, v in found.setting.items() if n in described.guard]
    if not protected:
        return []
    return [
        f"# Protected on {described.name}: ask the site before you start it.",
        f"opt_in: [{', '.join(protected)}]",
    ]


def _sizes(found: Finding) -> str:
    low = max(_SMALLEST_BYTES, found.least_bytes or 0)
    most = min(_LARGEST_BYTES, found.most_bytes or _LARGEST_BYTES)
    high = low
    while _STEP * high <= most:
        high *= _STEP
    most_words = format_size(high).replace(" ", "")
    return most_words if high == low else f"{low} .. {most_words} x{_STEP}"
