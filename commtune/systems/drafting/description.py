"""Drafts the description of a system from the detected properties of a node.

Properties that can't be detected are listed under `unknown`. Required keys among them get a
placeholder value, with the source `placeholder`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from importlib import resources
from typing import Any

import yaml
from jinja2 import Environment, StrictUndefined

from commtune.documents.nearest import quote_value, suggest_nearest
from commtune.errors import UserError
from commtune.formatting import format_size
from commtune.systems.detection.recognition import gpu_names, is_trade_name
from commtune.systems.detection.seen import SeenMachine, SeenPartition, SeenSlurm
from commtune.systems.nominal.fabric import Fabric
from commtune.systems.schema import NAME


@dataclass(frozen=True)
class Draft:
    """A description's text, its keys with placeholders, and what can't be detected."""

    text: str
    placeholders: tuple[str, ...]
    unknown: tuple[str, ...]


def check_name(name: str) -> None:
    """Raises a UserError unless a name is valid for a system."""
    if not re.fullmatch(NAME, name):
        raise UserError(
            f"a system can't be called {quote_value(name)}",
            hint="use letters, digits, '-', '_' and '.', without blanks; not '-' or '.' first",
        )


def draft_description(name: str, seen: SeenMachine, day: date, partition: str = "") -> Draft:
    """Returns a description of a machine.

    Args:
        day: the date of its sources.
        partition: the partition for campaigns; empty for Slurm's default.

    Raises:
        UserError: the name is invalid, or Slurm lists no such partition.
    """
    check_name(name)
    own = _partition(seen.slurm, partition)
    placeholders: list[str] = []

    def unsaid(key: str, value: str) -> str:
        placeholders.append(key)
        return value

    def placeholder(key: str, value: str, comment: str) -> str:
        return f"{unsaid(key, value)}  # PLACEHOLDER: {_printable(comment)}"

    unknown = tuple(_questions(seen, own))
    template = _environment().from_string(
        (resources.files("commtune.systems.drafting") / "description.yaml.j2").read_text("utf-8")
    )
    gpus = f"{seen.gpus.count} x {seen.gpus.model}" if seen.gpus else "no GPUs"
    text = template.render(
        name=name,
        seen=seen,
        own=own,
        slurm=seen.slurm,
        day=day.isoformat(),
        summary=f"Nodes with {gpus}, {seen.cores} cores of {seen.processor}.",
        cluster=seen.slurm.cluster if seen.slurm else seen.clues.cluster,
        asked=_asked(seen, day),
        unknown=unknown,
        placeholder=placeholder,
        unsaid=unsaid,
        placeholders=placeholders,
        **_facts(seen, own),
    )
    return Draft(text, tuple(placeholders), unknown)


def _environment() -> Environment:
    environment = Environment(
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "text": _yaml_text,
        "printable": _printable,
        "size": _yaml_size,
        "memory": _memory,
        "gbits": _gbits,
        "duration": _duration,
    }
    return environment


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
    by_name = {partition.name: partition for partition in slurm.partitions}
    if wanted not in by_name:
        raise UserError(
            f"--partition: sinfo lists no partition {quote_value(wanted)}",
            hint=suggest_nearest(wanted, list(by_name)),
        )
    return by_name[wanted]


def _asked(seen: SeenMachine, day: date) -> str:
    asked = ["/proc", "/sys"]
    asked += seen.gpus.asked if seen.gpus else ()
    if seen.slurm:
        asked += ["sinfo", "scontrol show config", "srun --mpi=list"]
    asked += ["mpicxx and mpiexec on PATH"] if seen.mpi else []
    host = seen.clues.host or "a recorded node"
    return f"seen on {host}, {day.isoformat()}: " + ", ".join(dict.fromkeys(asked))


def _facts(seen: SeenMachine, own: SeenPartition | None) -> dict[str, Any]:
    """Returns the template's variables that are derived from what was detected."""
    gpus, ports = seen.gpus, seen.network_ports
    others = Counter(
        f"{p.model}, {_gbits(p.bandwidth) if p.bandwidth else 'speed unknown'}"
        for p in seen.ports
        if p not in ports
    )
    by_slurm = _is_by_slurm(seen, own)
    is_chip = gpus is not None and gpus.model.startswith("gfx")
    return {
        "by_slurm": by_slurm,
        "gpus": gpus,
        "kinds": " or ".join(gpu_names(gpus.model)) if gpus and is_chip else "",
        "numa_known": _is_numa_known(seen) and not by_slurm,  # Slurm counts no NUMA nodes
        "links": _links(gpus.fabric) if gpus and gpus.fabric else [],
        "ports": ports,
        "port": ports[0] if ports else None,
        "trade_name": bool(ports) and is_trade_name(ports[0].model),
        "fabric": ports[0].network if ports else "",
        "other_ports": "; ".join(f"{count} x {words}" for words, count in others.items()),
        "other_scheduler": bool(seen.scheduler) and seen.slurm is None,
        "likely_mpi": "pmi2" if seen.mpi and seen.mpi[0] != "openmpi" else "pmix",
    }


def _is_by_slurm(seen: SeenMachine, own: SeenPartition | None) -> bool:
    """Whether Slurm describes the nodes, as this machine is none of them."""
    return bool(own and own.cores and seen.slurm and not seen.slurm.is_node)


def _is_numa_known(seen: SeenMachine) -> bool:
    gpus = seen.gpus
    return bool(gpus and gpus.numa and max(gpus.numa) < seen.numa_nodes)


def _links(fabric: Fabric) -> list[dict[str, Any]]:
    """Returns the links between GPUs, grouped by kind."""
    kinds: dict[tuple[bool, int, float], list[tuple[int, int]]] = {}
    for link in fabric.links:
        kind = (max(link.a, link.b) >= fabric.gpus, link.count, link.bandwidth)
        kinds.setdefault(kind, []).append((link.a, link.b))
    return [
        {"pairs": _ends(is_switch, pairs, fabric.gpus), "count": count, "bandwidth": bandwidth}
        for (is_switch, count, bandwidth), pairs in kinds.items()
    ]


def _ends(is_switch: bool, pairs: list[tuple[int, int]], gpus: int) -> str:
    if is_switch:
        return "switch"
    if len(pairs) == gpus * (gpus - 1) // 2:
        return "all"
    return "[" + ", ".join(f"[{a}, {b}]" for a, b in pairs) + "]"


def _questions(seen: SeenMachine, own: SeenPartition | None) -> Iterator[str]:
    """Yields what can't be detected on a node."""
    slurm = seen.slurm
    if slurm is not None and not slurm.is_node:
        where = f"srun --partition={own.name} --nodes=1 " if own else "srun "
        yield (
            f"whether compute nodes are like {seen.clues.host}, where this was seen and which is "
            f"none of Slurm's nodes; on one of them: {where}commtune systems new NAME -o FILE"
        )
    if seen.virtual and not _is_by_slurm(seen, own):
        yield "which properties of the physical machine matter: a virtual one hides them"
    yield from _questions_of_gpus(seen)
    if slurm is not None and own is not None:
        yield "qualities of service and their limits ('sacctmgr show qos')"
        yield "whether the switches that Slurm knows are switches or groups of them"
    elif seen.scheduler and slurm is None:
        yield "the queue for jobs of campaigns (scheduler.queue)"
    else:
        yield "the scheduler, and what jobs must request"
    if not seen.mpi:
        yield "the MPI of the system: none is on PATH here; a module may bring it"
    if seen.gpus:
        yield "binding of ranks to cores, GPUs and ports (binding)"
    yield "variables that nobody may set, or everybody needs (guard, pinned)"
    yield "modules that jobs load (modules)"


def _questions_of_gpus(seen: SeenMachine) -> Iterator[str]:
    gpus = seen.gpus
    if gpus is None:
        return
    if not _is_numa_known(seen):
        yield "which NUMA node is nearest to which GPU: the kernel doesn't say"
    yield "gpus.memory_bandwidth and gpus.host_link: the data sheet says them"
    if not (gpus.fabric and gpus.fabric.links):
        if gpus.visible:
            seen_of = f"this job has {gpus.visible} of {gpus.count}"
            yield f"links between the GPUs: {seen_of}; ask for all"
        elif gpus.count > 1:
            yield "links between the GPUs: no driver named any here"
    if gpus.count > 1:
        yield "which port each GPU uses (nics.sharing)"


def _memory(amount: int) -> str:
    gib = amount / 2**30
    return f"{gib:.0f}GiB" if gib >= 2 else f"{max(1, amount // 2**20)}MiB"


def _yaml_text(value: str) -> str:
    """Returns a YAML scalar, quoted where it would otherwise not be a string."""
    listed = [_printable(value)]
    said = yaml.safe_dump(listed, default_flow_style=True, allow_unicode=True, width=math.inf)
    return said[1:-2]


def _printable(value: str) -> str:
    """Replaces control characters, which YAML refuses and terminals interpret."""
    return "".join(letter if letter.isprintable() else " " for letter in value)


def _yaml_size(amount: int) -> str:
    return format_size(amount).replace(" ", "")


def _duration(seconds: float) -> str:
    """Formats seconds in the largest unit that divides them."""
    for unit, factor in (("h", 3600), ("min", 60)):
        if seconds % factor == 0:
            return f"{seconds / factor:.0f}{unit}"
    return f"{seconds:g}s"


def _gbits(bytes_per_s: float) -> str:
    """Formats bytes per second in Gb/s, as networks are specified."""
    return f"{bytes_per_s * 8 / 1e9:.10g} Gb/s"
