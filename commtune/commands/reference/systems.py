"""``commtune systems``."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from commtune.commands import text
from commtune.commands.options import JsonOption
from commtune.commands.reference import system_nominal
from commtune.errors import CommtuneError
from commtune.systems import (
    System,
    fabric_of,
    format_bandwidth,
    list_systems,
    load_system,
    node_bandwidth,
    pair_bandwidths,
)
from commtune.systems.findings import all_findings
from commtune.systems.reference_settings import all_reference_settings
from commtune.systems.schema import GpuLink, Partition, Qos, Slurm, Sourced

_WIDTH = 96
_PLACEHOLDER = "placeholder"  # what a draft calls the source of what was not found


def show_systems(*, json_output: bool) -> None:
    """Prints the shipped descriptions."""
    found = [load_system(name) for name in list_systems()]
    if json_output:
        print(json.dumps([{"name": s.name, "summary": s.summary} for s in found], indent=2))
        return
    rows = [(s.name, _gpus(s), f"{s.nics.count} x {s.nics.model}", s.summary) for s in found]
    print(text.format_table(("system", "GPUs a node", "network ports a node", "what it is"), rows))
    print("\nAll that is known of one: commtune systems show NAME")


def show_system(name: str, *, json_output: bool) -> None:
    """Prints a system, by name or path."""
    system = load_system(name)
    if json_output:
        nominal = system_nominal.nominal_data(fabric_of(system))
        print(json.dumps({**system.model_dump(mode="json"), "nominal": nominal}, indent=2))
        return
    print(f"{system.name} {system.version}: {system.summary}")
    if keys := ", ".join(_placeholders(system)):
        print(f"placeholders stand in {keys}: to be corrected, and worth nothing before")
    if system.retired:
        print(f"out of service since {system.retired}")
    origin = "measured" if system.measured_here else "read, not measured;"
    print(f"{origin} facts checked {system.checked}; bandwidths are nominal, one direction")
    for part in (_node, pair_lines, _nominal, _jobs, _libraries, _launch, _variables, _disputes):
        for line in part(system):
            print(line)
    print("\nsources")
    for key, what in system.sources.items():
        print(_wrapped(f"[{key}] {what}"))
    for line in _more(system):
        print(line)


def _more(system: System) -> Iterator[str]:
    """The commands that say more of a system, where there is more."""
    sets = sum(system.name in one.baseline.systems for one in all_reference_settings().values())
    found = sum(system.name in one.finding.systems for one in all_findings())
    if sets or found:
        yield "\nmore"
    if sets:
        yield f"    {sets} sets of variables for it: commtune systems baselines {system.name}"
    if found:
        yield f"    {found} findings of papers: commtune findings --system {system.name}"


def validate_systems(files: list[Path], *, json_output: bool) -> None:
    """Checks files; exits with 2 if one is wrong."""
    results = [(file, _problem(file)) for file in files]
    if json_output:
        print(json.dumps([_result(file, error) for file, error in results], indent=2))
    else:
        for file, error in results:
            if error is None:
                print(f"{file}: ok{_to_correct(load_system(file))}")
            else:
                hint = "".join(f"\n  {line}" for line in error.hint.splitlines())
                print(f"{error.message}{hint}", file=sys.stderr)
    if any(error for _, error in results):
        sys.exit(2)


def _problem(file: Path) -> CommtuneError | None:
    try:
        load_system(file)
    except CommtuneError as error:
        return error
    return None


def _placeholders(system: System) -> list[str]:
    """The keys whose facts `systems new` could not find, and nobody has corrected yet."""
    return [
        key for key, facts in system if isinstance(facts, Sourced) and _PLACEHOLDER in facts.source
    ]


def _to_correct(system: System) -> str:
    keys = ", ".join(_placeholders(system))
    return f", but placeholders stand in {keys}" if keys else ""


def _result(file: Path, error: CommtuneError | None) -> dict[str, Any]:
    said = {"message": error.message, "hint": error.hint} if error else {}
    return {"file": str(file), "ok": error is None, **said}


def _gpus(system: System) -> str:
    return f"{system.gpus.count} x {system.gpus.model}" if system.gpus else "none"


def _wrapped(line: str, indent: str = "    ") -> str:
    inner = indent + "    "
    return textwrap.fill(line, _WIDTH, initial_indent=indent, subsequent_indent=inner)


def _fact(words: str, facts: Sourced) -> str:
    note = f" {' '.join(facts.note.split())}" if facts.note else ""
    return _wrapped(f"{words} [{', '.join(facts.source)}]{note}")


def _node(system: System) -> Iterator[str]:
    node, gpus, nics = system.node, system.gpus, system.nics
    usable = f", {node.usable_cores} for jobs" if node.usable_cores else ""
    numa = f"{node.numa_nodes} NUMA nodes" if node.numa_nodes else "NUMA nodes unknown"
    if node.numa_nodes == 1:
        numa = "1 NUMA node"
    yield "\nnode"
    yield _fact(
        f"{node.sockets} x {node.processor}: {node.cores} cores{usable}; {numa}; "
        f"{text.format_size(node.memory)}",
        node,
    )
    if gpus:
        near = f"; NUMA nodes {', '.join(map(str, gpus.numa))}" if gpus.numa else ""
        if gpus.host_link:
            near += f"; {format_bandwidth(gpus.host_link)} to the processor"
        yield _fact(
            f"{gpus.count} x {gpus.model}, {text.format_size(gpus.memory)} each{near}", gpus
        )
    total = format_bandwidth(node_bandwidth(system))
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
    widths = pair_bandwidths(fabric)
    rows = [
        (str(a), *(_gbits(widths.get((a, b))) for b in range(fabric.gpus)),
         _gbits(fabric.injection(a)))
        for a in range(fabric.gpus)
    ]  # fmt: skip
    table = text.format_table(("GPU", *numbers, "sent"), rows, right=",".join([*numbers, "sent"]))
    yield textwrap.indent(table, "    ")
    for link in system.links:
        yield _fact(f"{_ends(link)}: {link.links} x {format_bandwidth(link.bandwidth)}", link)


def _ends(link: GpuLink) -> str:
    if link.pairs == "switch":
        return "each to the switch"
    return "all pairs" if link.pairs == "all" else f"{len(link.pairs)} pairs"


def _gbits(bytes_per_s: float | None) -> str:
    return "-" if bytes_per_s is None else f"{bytes_per_s * 8 / 1e9:g}"


def _nominal(system: System) -> Iterator[str]:
    yield from system_nominal.nominal_lines(fabric_of(system))


def _jobs(system: System) -> Iterator[str]:
    if other := system.scheduler:
        queue = f"; queue {other.queue}" if other.queue else ""
        yield f"\n{other.kind.upper()}: described only, commtune submits to Slurm"
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
    words += [f"to {text.format_wall_time(limits.longest)}"] if limits.longest else []
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
        yield "\nguarded: no configuration may set them"
    for name, guard in system.guard.items():
        yield _fact(f"{name}: {guard.why}", guard)


def _disputes(system: System) -> Iterator[str]:
    if system.conflicts:
        yield "\nsources disagree"
    for conflict in system.conflicts:
        yield _wrapped(f"{conflict.about}:")
        for saying in conflict.sayings:
            yield textwrap.indent(_fact(saying.says, saying), "    ")
        yield _wrapped(f"used: {conflict.used}", " " * 8)
    if system.unknown:
        yield "\nnot known"
    for question in system.unknown:
        yield _wrapped(question)


def systems_list_command(json_output: JsonOption = False) -> None:
    """The system descriptions that come with commtune."""
    show_systems(json_output=json_output)


def systems_show_command(name: str, json_output: JsonOption = False) -> None:
    """What is known of a system, with sources, conflicts and what nobody says."""
    show_system(name, json_output=json_output)


def systems_validate_command(files: list[Path], json_output: JsonOption = False) -> None:
    """Check system descriptions."""
    validate_systems(files, json_output=json_output)
