"""What operations could reach on a described system, for ``commtune systems show``."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from commtune.formatting import format_count, format_table, wrap_text
from commtune.systems.nominal.collectives import Nominal
from commtune.systems.nominal.fabric import Fabric
from commtune.systems.nominal.operations import group_bandwidth, nominal_bandwidth, self_bounds
from commtune.systems.nominal.traffic import Memory, NominalQuestion
from commtune.systems.units import format_bandwidth

#: With one rank a GPU; the last is far enough for what bandwidths tend to.
_NODES = (1, 2, 256)
_OPERATIONS = ("ping-pong", "ring", "alltoall", "allreduce", "allgather", "reduce-scatter",
               "broadcast", "reduce", "incast", "one-to-many")  # fmt: skip
_Found = Mapping[tuple[str, int], Nominal]


def _nominal_bounds(fabric: Fabric) -> _Found:
    """The nominal bandwidth of the main operations, by operation and number of nodes."""
    memory = Memory.DEVICE if fabric.gpus else Memory.HOST
    each = fabric.gpus or 1
    return {
        (operation, nodes): nominal_bandwidth(
            fabric, NominalQuestion(operation, each * nodes, nodes, memory)
        )
        for operation in _OPERATIONS
        for nodes in (_NODES if fabric.links else _NODES[1:])
    }


def nominal_lines(fabric: Fabric) -> Iterator[str]:
    """For people."""
    found = _nominal_bounds(fabric)
    nodes = sorted({nodes for _, nodes in found})
    each = "all GPUs of a node, a rank each" if fabric.gpus else "a rank a node, in host memory"
    yield f"\nnominal bus bandwidth: Gb/s (GB/s); {each}"
    yield "    limit: what no way of doing it exceeds, where that is more"
    header = ["operation"]
    for count in nodes:
        header += [format_count(count, "node"), "limit"]
    rows = [
        (operation, *(cell for n in nodes for cell in _cells(found[operation, n])))
        for operation in _OPERATIONS
    ]
    yield textwrap.indent(format_table(header, rows), "    ")
    yield from _reasons(found)
    yield from _of_gpus(fabric)


def _cells(found: Nominal) -> tuple[str, str]:
    return _short(found.bytes_per_s), "" if found.limit is None else _short(found.limit)


def _short(bytes_per_s: float | None) -> str:
    if bytes_per_s is None:
        return "-"
    return f"{bytes_per_s * 8 / 1e9:.4g} ({bytes_per_s / 1e9:.3g})"


def _reasons(found: _Found) -> Iterator[str]:
    """From which links numbers are, those of the same reason together."""
    said: dict[str, list[str]] = {}
    for (operation, nodes), answer in found.items():
        if nodes > 2:
            continue
        model = f"{answer.model}: " if answer.model else "none: "
        said.setdefault(f"{format_count(nodes, 'node')}, {model}{answer.why}", []).append(
            operation
        )
    for reason, operations in sorted(said.items()):
        yield wrap_text(f"{reason} ({', '.join(operations)})")
    for assumption in dict.fromkeys(a for answer in found.values() for a in answer.assumptions):
        yield wrap_text(f"assumed: {assumption}")


def _of_gpus(fabric: Fabric) -> Iterator[str]:
    if fabric.ports and fabric.gpus:
        sent = [group_bandwidth(fabric, k) for k in range(1, fabric.gpus + 1)]
        numbers = ", ".join(_short(s) for s in sent)
        yield wrap_text(f"what the first 1 to {fabric.gpus} GPUs of a node send out: {numbers}")
    if both := self_bounds(fabric):
        yield wrap_text(
            f"a GPU's copy to itself: {format_bandwidth(both[0])} copied, which are "
            f"{format_bandwidth(both[1])} read and written"
        )


def nominal_data(fabric: Fabric) -> list[dict[str, Any]]:
    """For programs; bytes per second."""
    return [
        {
            "operation": operation,
            "nodes": nodes,
            "ranks": nodes * (fabric.gpus or 1),
            "busbw_Bps": found.bytes_per_s,
            "model": found.model,
            "why": found.why,
            "limit_Bps": found.limit,
            "limit_why": found.limit_why,
            "assumptions": list(found.assumptions),
        }
        for (operation, nodes), found in _nominal_bounds(fabric).items()
    ]
