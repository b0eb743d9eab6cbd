"""``commtune systems``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import indent as indent_lines
from typing import Annotated, Any

import typer

from commtune.commands.options import JsonOption, print_json
from commtune.commands.reference.validation import validate_files
from commtune.documents.quantities import format_bandwidth
from commtune.formatting import format_count, format_table, wrap_text
from commtune.systems.findings import all_findings
from commtune.systems.loading import build_system, find_description, list_systems, load_system
from commtune.systems.nominal.collectives import Nominal
from commtune.systems.nominal.fabric import Fabric, fabric_of
from commtune.systems.nominal.operations import nominal_bandwidth
from commtune.systems.nominal.traffic import Memory, NominalQuestion
from commtune.systems.reference_settings import all_reference_settings
from commtune.systems.schema import GpuLink, Sourced, System

#: With one rank a GPU; the last is far enough for what bandwidths tend to.
_NODES = (1, 2, 256)
_OPERATIONS = ("ping-pong", "ring", "alltoall", "allreduce", "allgather", "reduce-scatter",
               "broadcast", "reduce", "incast", "one-to-many")  # fmt: skip
_Found = Mapping[tuple[str, int], Nominal]
_PLACEHOLDER = "placeholder"  # what a draft calls the source of what was not found


def _more(system: System) -> Iterator[str]:
    sets = sum(system.name in one.entry.systems for one in all_reference_settings().values())
    found = sum(system.name in one.finding.systems for one in all_findings())
    if sets or found:
        yield "\nmore"
    if sets:
        command = f"commtune systems reference-settings {system.name}"
        yield f"    {sets} sets of variables for it: {command}"
    if found:
        yield f"    {found} findings of papers: commtune findings list --system {system.name}"


def _placeholders(system: System) -> list[str]:
    """The keys whose facts `systems new` could not find, and nobody has corrected yet."""
    return [
        key for key, facts in system if isinstance(facts, Sourced) and _PLACEHOLDER in facts.source
    ]


def _fact(words: str, facts: Sourced) -> str:
    note = f" {' '.join(facts.note.split())}" if facts.note else ""
    return wrap_text(f"{words} [{', '.join(facts.source)}]{note}")


def pair_lines(system: System) -> Iterator[str]:
    """What the links carry between each two GPUs of a node; nothing without links."""
    if not system.links:
        return
    fabric = fabric_of(system)
    yield "\nbetween GPUs: Gb/s of the widest of the shortest paths; sent: of all links of a GPU"
    numbers = [str(gpu) for gpu in range(fabric.gpus)]
    widths = fabric.pair_bandwidths()
    rows = [
        (str(a), *(_gbits(widths.get((a, b))) for b in range(fabric.gpus)),
         _gbits(fabric.injection(a)))
        for a in range(fabric.gpus)
    ]  # fmt: skip
    table = format_table(("GPU", *numbers, "sent"), rows, right=",".join([*numbers, "sent"]))
    yield indent_lines(table, "    ")
    for link in system.links:
        yield _fact(f"{_ends(link)}: {link.links} x {format_bandwidth(link.bandwidth)}", link)


def _ends(link: GpuLink) -> str:
    if link.pairs == "switch":
        return "each to the switch"
    return "all pairs" if link.pairs == "all" else f"{len(link.pairs)} pairs"


def _gbits(bytes_per_s: float | None) -> str:
    return "-" if bytes_per_s is None else f"{bytes_per_s * 8 / 1e9:g}"


def _nominal_bounds(fabric: Fabric) -> _Found:
    memory = Memory.DEVICE if fabric.gpus else Memory.HOST
    each = fabric.gpus or 1
    return {
        (operation, nodes): nominal_bandwidth(
            fabric, NominalQuestion(operation, each * nodes, nodes, memory)
        )
        for operation in _OPERATIONS
        for nodes in (_NODES if fabric.links else _NODES[1:])
    }


def nominal_lines(system: System) -> Iterator[str]:
    """What operations could reach on a described system, for people."""
    fabric = fabric_of(system)
    found = _nominal_bounds(fabric)
    nodes = sorted({nodes for _, nodes in found})
    each = "all GPUs of a node, a rank each" if fabric.gpus else "a rank a node, in host memory"
    yield f"\nnominal bus bandwidth: Gb/s (GB/s); {each}"
    yield "    limit: upper bound for any algorithm, where that is higher"
    header = ["operation"]
    for count in nodes:
        header += [format_count(count, "node"), "limit"]
    rows = [
        (operation, *(cell for n in nodes for cell in _cells(found[operation, n])))
        for operation in _OPERATIONS
    ]
    yield indent_lines(format_table(header, rows), "    ")
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
        ports = ", ".join(map(str, fabric.ports.of_gpu))
        guess = " (a guess)" if fabric.ports.assumed else ""
        yield wrap_text(f"ports of the GPUs: {ports}{guess}")
        sent = [fabric.group_bandwidth(k) for k in range(1, fabric.gpus + 1)]
        numbers = ", ".join(_short(s) for s in sent)
        yield wrap_text(f"what the first 1 to {fabric.gpus} GPUs of a node send out: {numbers}")
    if fabric.memory is not None:
        yield wrap_text(
            f"a GPU's copy to itself: {format_bandwidth(fabric.memory / 2)} copied, which are "
            f"{format_bandwidth(fabric.memory)} read and written"
        )


def _nominal_data(fabric: Fabric) -> list[dict[str, Any]]:
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


def systems_list_command(json_output: JsonOption = False) -> None:
    """List the system descriptions that come with commtune."""
    found = [load_system(name) for name in list_systems()]
    if json_output:
        print_json([{"name": s.name, "summary": s.summary} for s in found])
        return
    rows = [
        (
            s.name,
            f"{s.gpus.count} x {s.gpus.model}" if s.gpus else "none",
            f"{s.nics.count} x {s.nics.model}",
            s.summary,
        )
        for s in found
    ]
    print(format_table(("system", "GPUs a node", "network ports a node", "what it is"), rows))
    print("\nAll that is known of one: commtune systems show NAME")


def systems_show_command(
    name: Annotated[str, typer.Argument(help="a shipped description, or a file")],
    json_output: JsonOption = False,
) -> None:
    """Show the description of a system, and what its links could carry."""
    document = find_description(name)
    system = build_system(document)
    if json_output:
        nominal = _nominal_data(fabric_of(system))
        print_json({**system.model_dump(mode="json"), "nominal": nominal})
        return
    if document.file is not None:
        print(document.file.read_text(encoding="utf-8"))
    if keys := ", ".join(_placeholders(system)):
        print(f"placeholders are in {keys}: correct them before use")
    origin = "measured" if system.measured_here else "read, not measured;"
    print(f"{origin} facts checked {system.checked}; bandwidths are nominal, one direction")
    for line in (*pair_lines(system), *nominal_lines(system), *_more(system)):
        print(line)


def systems_validate_command(
    files: Annotated[list[Path], typer.Argument(help="system descriptions")],
    json_output: JsonOption = False,
) -> None:
    """Check system descriptions."""

    def remark(file: Path) -> str:
        keys = ", ".join(_placeholders(load_system(file)))
        return f", but placeholders are in {keys}" if keys else ""

    validate_files(files, remark, json_output=json_output)
