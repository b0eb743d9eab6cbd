"""A first description of a system, written from what a node of it shows.

What nobody can see is named under `unknown`; what a description can't be without has a
placeholder, whose source says so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from commtune.documents.nearest import quote_value, suggest
from commtune.errors import UserError
from commtune.systems.detection.part_names import gpu_names, is_trade_name
from commtune.systems.detection.seen import SeenMachine, SeenPartition, SeenSlurm
from commtune.systems.drafting.jobs import draft_jobs, draft_launch
from commtune.systems.drafting.yaml_lines import Page, yaml_size, yaml_text
from commtune.systems.drafting.yaml_lines import yaml_bandwidth as gbits
from commtune.systems.nominal.fabric import Fabric

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_PLACEHOLDER = "not found; a description needs something here, so correct it"


@dataclass(frozen=True)
class Draft:
    """A description's text, and what in it its author must look at first.

    Attributes:
        placeholders: keys whose value was not found.
    """

    text: str
    placeholders: tuple[str, ...]
    unknown: tuple[str, ...]


def check_name(name: str) -> None:
    """Whether a system can be called so.

    Raises:
        UserError: it can't.
    """
    if not _NAME.fullmatch(name):
        raise UserError(
            f"a system can't be called {quote_value(name)}",
            hint="use letters, digits, '-', '_' and '.', without blanks; not '-' or '.' first",
        )


def draft_description(name: str, seen: SeenMachine, day: date, partition: str = "") -> Draft:
    """Writes what was seen as a description.

    Args:
        day: when it was seen.
        partition: the one that campaigns shall use; Slurm's default without it.

    Raises:
        UserError: no system can be called so; Slurm lists no such partition.
    """
    check_name(name)
    own = _partition(seen.slurm, partition)
    page = Page()
    _node(page, seen, own)
    _gpus(page, seen)
    _nics(page, seen)
    draft_jobs(page, seen, own)
    draft_launch(page, seen)
    _missing(page, seen, own)
    head = list(_head(name, seen, day, bool(page.placeholders)))
    unknown = ["unknown:", *(f"  - {yaml_text(question)}" for question in page.unknown)]
    lines = [*head, *page.lines, "", *unknown]
    return Draft("\n".join(lines) + "\n", tuple(page.placeholders), tuple(page.unknown))


def _partition(slurm: SeenSlurm | None, wanted: str) -> SeenPartition | None:
    if slurm is None or not slurm.partitions:
        if wanted:
            raise UserError(
                f"--partition {quote_value(wanted)}: no Slurm lists partitions here",
                hint="leave it out, or try it where 'sinfo' works",
            )
        return None
    if not wanted:
        return next((p for p in slurm.partitions if p.is_default), slurm.partitions[0])
    if found := slurm.partition(wanted):
        return found
    raise UserError(
        f"--partition: sinfo lists no partition {quote_value(wanted)}",
        hint=suggest(wanted, [p.name for p in slurm.partitions]),
    )


def _head(name: str, seen: SeenMachine, day: date, placeholders: bool) -> Iterator[str]:
    yield "# A first description, written by 'commtune systems new' from what one node shows."
    yield "# Correct it with what your operators and the machine's documents say, name them under"
    yield "# sources, and raise version. 'commtune systems validate FILE' checks it,"
    yield "# 'commtune systems detect FILE' holds it against a node."
    yield "system: 1"
    yield f"name: {yaml_text(name)}"
    yield "version: 1"
    yield f"summary: {yaml_text(_summary(seen))}  # say whose it is, and how many nodes"
    yield f"checked: {day.isoformat()}"
    yield from _recognized(seen)
    yield "sources:"
    yield f"  seen: {yaml_text(_asked(seen, day))}"
    if placeholders:
        yield f"  placeholder: {yaml_text(_PLACEHOLDER)}"


def _summary(seen: SeenMachine) -> str:
    gpus = f"{seen.gpus.count} x {seen.gpus.model}" if seen.gpus else "no GPUs"
    return f"Nodes with {gpus}, {seen.cores} cores of {seen.processor}."


def _recognized(seen: SeenMachine) -> Iterator[str]:
    cluster = seen.slurm.cluster if seen.slurm else seen.clues.cluster
    if cluster:
        yield "recognized:"
        yield f"  cluster: [{yaml_text(cluster)}]  # as Slurm calls it (ClusterName)"
        yield "  source: seen"
        return
    yield "# By what a machine is known to be this one: names of hosts, and variables that the"
    yield "# site sets for everybody. Fill in what holds on all of its nodes:"
    yield "# recognized:"
    yield "#   hosts: ['login*.example.org', 'node*']"
    yield "#   environment: {SITE_NAME: example}"
    yield "#   source: seen"


def _asked(seen: SeenMachine, day: date) -> str:
    asked = ["/proc", "/sys"]
    asked += seen.gpus.asked if seen.gpus else ()
    if seen.slurm:
        asked += ["sinfo", "scontrol show config", "srun --mpi=list"]
    asked += ["mpicxx and mpiexec on PATH"] if seen.mpi else []
    host = seen.clues.host or "a recorded node"
    return f"seen on {host}, {day.isoformat()}: " + ", ".join(dict.fromkeys(asked))


def _node(page: Page, seen: SeenMachine, own: SeenPartition | None) -> None:
    page.add()
    page.add("node:")
    if own is not None and own.cores and seen.slurm and not seen.slurm.is_node:
        page.placeholder(
            f"  processor: {yaml_text(seen.processor)}", "node.processor", "the one here"
        )
        page.add(f"  sockets: {max(1, own.sockets)}", "sockets, cores, memory: by sinfo")
        page.add(f"  cores: {own.cores}")
        page.add(f"  memory: {_memory(own.memory)}", "as Slurm has it")
        page.add("  source: [seen, placeholder]")
        return
    page.add(f"  processor: {yaml_text(seen.processor)}")
    page.add(f"  sockets: {max(1, seen.sockets)}")
    page.add(f"  cores: {max(1, seen.cores)}", "add usable_cores if jobs get fewer")
    page.add(f"  numa_nodes: {max(1, seen.numa_nodes)}")
    page.add(
        f"  memory: {_memory(seen.memory)}",
        "as the kernel counts it: a little less than is built in",
    )
    page.add("  source: seen")
    if seen.virtual:
        page.add(f"  note: {yaml_text(f'This node is a {seen.virtual}.')}")
        page.unknown.append("what of the machine below the virtual one matters: it was not seen")


def _memory(amount: int) -> str:
    gib = amount / 2**30
    return f"{gib:.0f}GiB" if gib >= 2 else f"{max(1, amount // 2**20)}MiB"


def _gpus(page: Page, seen: SeenMachine) -> None:
    gpus = seen.gpus
    page.add()
    if gpus is None:
        page.comment("No GPU was found here. If nodes have some, write this on such a node.", "")
        return
    page.add("gpus:")
    kinds = " or ".join(gpu_names(gpus.model)) if gpus.model.startswith("gfx") else ""
    page.add(f"  model: {yaml_text(gpus.model)}", f"{kinds}: write which" if kinds else "")
    page.add(f"  vendor: {gpus.vendor}")
    page.add(f"  count: {gpus.count}")
    if gpus.memory:
        page.add(f"  memory: {yaml_size(gpus.memory)}", "of one, as its driver counts it")
        page.add("  source: seen")
    else:
        page.placeholder("  memory: 1GiB", "gpus.memory", "memory of one GPU")
        page.add("  source: [seen, placeholder]")
    if gpus.numa and max(gpus.numa) < seen.numa_nodes:
        page.add(f"  numa: [{', '.join(map(str, gpus.numa))}]", "nearest to each GPU")
    else:
        page.unknown.append("which NUMA node is nearest to which GPU: the kernel doesn't say")
    page.unknown.append("gpus.memory_bandwidth and gpus.host_link: the data sheet says them")
    if gpus.fabric and gpus.fabric.links:
        _links(page, gpus.fabric)
    elif gpus.visible:
        page.unknown.append(
            f"links between the GPUs: this job has {gpus.visible} of {gpus.count}; ask for all"
        )
    elif gpus.count > 1:
        page.unknown.append("links between the GPUs: no driver named any here")


def _links(page: Page, fabric: Fabric) -> None:
    kinds: dict[tuple[bool, int, float], list[tuple[int, int]]] = {}
    for link in fabric.links:
        kind = (max(link.a, link.b) >= fabric.gpus, link.count, link.bandwidth)
        kinds.setdefault(kind, []).append((link.a, link.b))
    page.add("links:", "bandwidth is of one link, in one direction; hold it against a data sheet")
    for (is_switch, count, bandwidth), pairs in kinds.items():
        page.add(f"  - pairs: {_ends(is_switch, pairs, fabric.gpus)}")
        page.add(f"    links: {count}")
        page.add(f"    bandwidth: {gbits(bandwidth)}")
        page.add("    source: seen")


def _ends(is_switch: bool, pairs: list[tuple[int, int]], gpus: int) -> str:
    if is_switch:
        return "switch"
    if len(pairs) == gpus * (gpus - 1) // 2:
        return "all"
    return "[" + ", ".join(f"[{a}, {b}]" for a, b in pairs) + "]"


def _nics(page: Page, seen: SeenMachine) -> None:
    ports = seen.network_ports
    page.add()
    page.add("nics:", "the ports that messages between nodes take")
    if not ports:
        page.placeholder("  model: unknown", "nics.model", "name of the adapter")
        page.placeholder("  count: 1", "nics.count", "ports of a node")
    else:
        comment = "" if is_trade_name(ports[0].model) else "the driver's word; write the adapter's"
        page.add(f"  model: {yaml_text(ports[0].model)}", comment)
        page.add(f"  count: {len(ports)}")
    if ports and ports[0].bandwidth:
        page.add(f"  bandwidth: {gbits(ports[0].bandwidth)}")
        page.add("  source: seen")
    else:
        page.placeholder("  bandwidth: 1 Gb/s", "nics.bandwidth", "of one port, one direction")
        page.add(f"  source: {'[seen, placeholder]' if ports else 'placeholder'}")
    if ports:
        names = ", ".join(yaml_text(port.name) for port in ports)
        page.add(f"  devices: [{names}]", "leave out those for storage and administration")
    others = Counter(
        _words(port.model, port.bandwidth) for port in seen.ports if port not in ports
    )
    if others:
        told = "; ".join(f"{count} x {words}" for words, count in others.items())
        page.comment(f"Not taken for ports of that network: {told}.")
    if seen.gpus and seen.gpus.count > 1:
        page.unknown.append("which port each GPU uses (nics.sharing)")
    _network(page, ports[0].network if ports else "")


def _words(model: str, bandwidth: float | None) -> str:
    return f"{model}, {gbits(bandwidth) if bandwidth else 'speed unknown'}"


def _network(page: Page, fabric: str) -> None:
    page.add("network:")
    if fabric:
        page.add(f"  fabric: {yaml_text(fabric)}")
    else:
        page.placeholder("  fabric: unknown", "network.fabric", "InfiniBand NDR, Slingshot 11")
    page.placeholder("  topology: unknown", "network.topology", "fat tree, dragonfly, torus")
    page.add(f"  source: {'[seen, placeholder]' if fabric else 'placeholder'}")


def _missing(page: Page, seen: SeenMachine, own: SeenPartition | None) -> None:
    """What nothing on a node says."""
    if seen.slurm is not None and not seen.slurm.is_node:
        where = f"srun --partition={own.name} --nodes=1 " if own else "srun "
        page.unknown.insert(
            0,
            f"whether compute nodes are like {seen.clues.host}, where this was seen and which is "
            f"none of Slurm's nodes; on one of them: {where}commtune systems new NAME -o FILE",
        )
    if seen.gpus:
        page.unknown.append("binding of ranks to cores, GPUs and ports (binding)")
    page.unknown.append("variables that nobody may set, or everybody needs (guard, pinned)")
    page.unknown.append("modules that jobs load (modules)")
