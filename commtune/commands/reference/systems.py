"""``commtune systems``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import indent as indent_lines
from typing import Annotated, Any

import typer

from commtune.commands.options import JsonOption
from commtune.commands.reference.validation import validate_files
from commtune.documents.quantities import format_bandwidth
from commtune.formatting import (
    format_count,
    format_size,
    format_table,
    format_wall_time,
    wrap_text,
)
from commtune.systems.findings import all_findings
from commtune.systems.loading import list_systems, load_system
from commtune.systems.nominal.collectives import Nominal
from commtune.systems.nominal.fabric import Fabric, fabric_of
from commtune.systems.nominal.operations import nominal_bandwidth
from commtune.systems.nominal.traffic import Memory, NominalQuestion
from commtune.systems.reference_settings import all_reference_settings
from commtune.systems.schema import GpuLink, Partition, Qos, Slurm, Sourced, System

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
        yield f"    {found} findings of papers: commtune findings --system {system.name}"


def _placeholders(system: System) -> list[str]:
    """The keys whose facts `systems new` could not find, and nobody has corrected yet."""
    return [
        key for key, facts in system if isinstance(facts, Sourced) and _PLACEHOLDER in facts.source
    ]


def _fact(words: str, facts: Sourced) -> str:
    note = f" {' '.join(facts.note.split())}" if facts.note else ""
    return wrap_text(f"{words} [{', '.join(facts.source)}]{note}")


def _node(system: System) -> Iterator[str]:
    node, gpus, nics = system.node, system.gpus, system.nics
    usable = f", {node.usable_cores} for jobs" if node.usable_cores else ""
    numa = format_count(node.numa_nodes, "NUMA node") if node.numa_nodes else "NUMA nodes unknown"
    yield "\nnode"
    yield _fact(
        f"{node.sockets} x {node.processor}: {node.cores} cores{usable}; {numa}; "
        f"{format_size(node.memory)}",
        node,
    )
    if gpus:
        near = f"; NUMA nodes {', '.join(map(str, gpus.numa))}" if gpus.numa else ""
        if gpus.host_link:
            near += f"; {format_bandwidth(gpus.host_link)} to the processor"
        yield _fact(f"{gpus.count} x {gpus.model}, {format_size(gpus.memory)} each{near}", gpus)
    total = format_bandwidth(nics.count * nics.bandwidth)
    port = format_bandwidth(nics.bandwidth)
    shared = f"; {_sharing(system)}" if gpus else ""
    yield _fact(f"{nics.count} x {nics.model}, {port} each, {total} together{shared}", nics)
    yield _fact(f"network: {system.network.fabric}, {system.network.topology}", system.network)


def _sharing(system: System) -> str:
    ports = fabric_of(system).ports
    numbers = ", ".join(str(port) for port in ports.of_gpu) if ports else ""
    return f"ports of the GPUs {numbers}{' (a guess)' if ports and ports.assumed else ''}"


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
        sent = [fabric.group_bandwidth(k) for k in range(1, fabric.gpus + 1)]
        numbers = ", ".join(_short(s) for s in sent)
        yield wrap_text(f"what the first 1 to {fabric.gpus} GPUs of a node send out: {numbers}")
    if both := fabric.self_bounds():
        yield wrap_text(
            f"a GPU's copy to itself: {format_bandwidth(both[0])} copied, which are "
            f"{format_bandwidth(both[1])} read and written"
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


def _jobs(system: System) -> Iterator[str]:
    if other := system.scheduler:
        queue = f"; queue {other.queue}" if other.queue else ""
        used = "campaigns: 'pbs'" if other.kind == "pbs" else "described only"
        yield f"\n{other.kind.upper()} ({used})"
        yield _fact(f"jobs are run by {other.kind.upper()}{queue}", other)
    if system.slurm is not None:
        yield from _slurm(system.slurm)


def _slurm(slurm: Slurm) -> Iterator[str]:
    nodes = ", whole nodes" if slurm.exclusive else ""
    gpus = "no GPUs" if slurm.gpus == "none" else f"GPUs by {slurm.gpus}"
    yield "\nSlurm"
    yield _fact(f"account {slurm.account}; partition {slurm.partition}; {gpus}{nodes}", slurm)
    for name, partition in slurm.partitions.items():
        yield _fact(f"partition {name}: {_limits(partition)}", partition)
        for qos_name, qos in partition.qos.items():
            yield _fact(f"{name} with qos {qos_name}: {_limits(qos)}", qos)


def _limits(limits: Partition | Qos) -> str:
    least = limits.least_nodes if isinstance(limits, Qos) else None
    words = [f"from {least} nodes"] if least else []
    words += [f"to {limits.most_nodes} nodes"] if limits.most_nodes else []
    words += [f"to {format_wall_time(limits.longest)}"] if limits.longest else []
    return ", ".join(words) or "limits unknown"


def _launch(system: System) -> Iterator[str]:
    mpi = f" --mpi={system.launcher.mpi}" if system.launcher.mpi else ""
    yield "\nlaunch"
    options = " ".join(system.launcher.options)
    yield _fact(f"{system.launcher.command}{mpi} {options}".strip(), system.launcher)
    for module in system.modules:
        yield _fact(f"module {module.name}{_for(module.library)}", module)
    if binding := system.binding:
        yield _fact(f"{binding.ranks} ranks a node: --cpu-bind={binding.cpu}", binding)
        for own in binding.per_rank:
            yield _fact(f"each rank: {own.variable}={own.value}{_for(own.library)}", own)


def _for(library: str) -> str:
    return f" (for {library})" if library else ""


def _libraries(system: System) -> Iterator[str]:
    if system.libraries:
        yield "\nlibraries"
    for library in system.libraries:
        network = f", between nodes by {library.network}" if library.network else ""
        spaces = f"; spaces {', '.join(library.spaces)}" if library.spaces else ""
        yield _fact(f"{library.name} {library.version}".strip() + network + spaces, library)


def _variables(system: System) -> Iterator[str]:
    if system.pinned:
        yield "\npinned: set in every run"
    for name, pinned in system.pinned.items():
        yield _fact(f"{name}={pinned.value}{_for(pinned.library)}: {pinned.why}", pinned)
    if system.guard:
        yield "\nprotected: no configuration may set them"
    for name, guard in system.guard.items():
        yield _fact(f"{name}: {guard.why}", guard)


def _disputes(system: System) -> Iterator[str]:
    if system.conflicts:
        yield "\nsources disagree"
    for conflict in system.conflicts:
        yield wrap_text(f"{conflict.about}:")
        for saying in conflict.sayings:
            yield indent_lines(_fact(saying.says, saying), "    ")
        yield wrap_text(f"used: {conflict.used}", first=" " * 8, indent=" " * 12)
    if system.unknown:
        yield "\nnot known"
    for question in system.unknown:
        yield wrap_text(question)


def systems_list_command(json_output: JsonOption = False) -> None:
    """List the system descriptions that come with commtune."""
    found = [load_system(name) for name in list_systems()]
    if json_output:
        print(json.dumps([{"name": s.name, "summary": s.summary} for s in found], indent=2))
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
    """Show what is known about a system: sources, conflicts, gaps."""
    system = load_system(name)
    if json_output:
        nominal = _nominal_data(fabric_of(system))
        print(json.dumps({**system.model_dump(mode="json"), "nominal": nominal}, indent=2))
        return
    print(f"{system.name} {system.version}: {system.summary}")
    if keys := ", ".join(_placeholders(system)):
        print(f"placeholders are in {keys}: correct them before use")
    if system.retired:
        print(f"out of service since {system.retired}")
    origin = "measured" if system.measured_here else "read, not measured;"
    print(f"{origin} facts checked {system.checked}; bandwidths are nominal, one direction")
    for part in (
        _node,
        pair_lines,
        nominal_lines,
        _jobs,
        _libraries,
        _launch,
        _variables,
        _disputes,
    ):
        for line in part(system):
            print(line)
    print("\nsources")
    for key, what in system.sources.items():
        print(wrap_text(f"[{key}] {what}"))
    for line in _more(system):
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
