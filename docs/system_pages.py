"""Makes a page of each shipped system, whenever MkDocs builds (a hook in mkdocs.yml).

The pages are not stored, so they can't be older than the descriptions. Their names in the
navigation are systems/NAME.md.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from catalogue_pages import plain

from commtune import formatting
from commtune.commands.reference.systems import nominal_lines, pair_lines
from commtune.documents.quantities import format_bandwidth
from commtune.spaces.catalogue.loading import list_libraries
from commtune.systems.findings import NamedFinding, all_findings
from commtune.systems.loading import list_systems, load_system
from commtune.systems.reference_settings import ReferenceSettings, all_reference_settings
from commtune.systems.schema import Partition, Qos, Slurm, Sourced, System

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

_SHARING = {
    "packed": "neighbouring GPUs share one",
    "round-robin": "GPUs take them in turn",
}
_Rows = Iterable[tuple[str, ...]]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages; MkDocs calls this."""
    from mkdocs.structure.files import File

    for name in list_systems():
        content = page(load_system(name))
        files.append(File.generated(config, f"systems/{name}.md", content=content))
    return files


def page(system: System) -> str:
    """The page of a system."""
    lines = [f"# {system.name}", "", plain(system.summary), "", *_standing(system)]
    lines += ["", *_use(system)]
    lines += _grid(
        "The node", ("what", "nominal, bandwidths in one direction", "source"), _node(system)
    )
    lines += _text("Between its GPUs", list(pair_lines(system)))
    lines += _text(
        "What operations could reach",
        list(nominal_lines(system)),
        "How this is computed, and what the words mean: [Nominal bandwidth](../nominal.md).",
    )
    lines += _jobs(system)
    lines += _libraries(system)
    header = ("variable", "value", "for", "why", "source")
    lines += _grid("Variables that the description sets or keeps", header, _variables(system))
    lines += _recommended(system) + _measured(system)
    lines += _grid(
        "Where sources disagree", ("about", "what they say", "used"), _conflicts(system)
    )
    lines += _list("Not known", map(plain, system.unknown))
    named = (f"`{key}`: {plain(what)}" for key, what in system.sources.items())
    return "\n".join([*lines, *_list("Sources", named)])


def _standing(system: System) -> Iterator[str]:
    if system.retired:
        yield f"**Out of service since {system.retired}.** "
    measured = "commtune has measured on it." if system.measured_here else (
        "Read from public documents; commtune has not measured on it."
    )  # fmt: skip
    yield f"{measured} Facts compared with their sources on {system.checked}."
    yield "[How to read this, and correct it](../systems.md)."


def _use(system: System) -> list[str]:
    if system.scheduler:
        kind = system.scheduler.kind.upper()
        use = "Campaigns use it by [`pbs`](../pbs.md); not tried on this machine."
        if system.scheduler.kind != "pbs":
            use = "It is described only: campaigns use Slurm or PBS."
        return [f"Jobs are run by {kind}. {use}", ""]
    needs_account = system.slurm is not None and system.slurm.account == "required"
    account = "{account: YOURS}" if needs_account else "{}"
    space = _space(system)
    return [
        "A [campaign file](../campaign-file.md) to begin with:", "",
        "```yaml", "campaign: 1", f"name: {system.name}-first", f"space: {space}",
        f"system: {system.name}", f"slurm: {account}", f"workload: {_workload(system, space)}",
        "```", "",
    ]  # fmt: skip


def _space(system: System) -> str:
    """The first space that the description names, else one for the GPUs of a node."""
    named = (space for library in system.libraries for space in library.spaces)
    amd = system.gpus is not None and system.gpus.vendor == "amd"
    return next(named, "rccl-node" if amd else "nccl-node")


def _workload(system: System, space: str) -> str:
    """A rank for each GPU (or core) of a node, or of two where the space is for several."""
    on_gpus = "xccl" if space.startswith(("nccl", "rccl")) else "mpi-device"
    backend = on_gpus if system.gpus else "mpi-host"
    nodes = 1 if space.endswith("-node") else 2
    ranks = nodes * (system.gpus.count if system.gpus else system.node.cores)
    return f"{{backend: {backend}, nodes: {nodes}, ranks: {ranks}}}"


def _node(system: System) -> Iterator[tuple[str, ...]]:
    node, gpus, nics, network = system.node, system.gpus, system.nics, system.network
    usable = f", {node.usable_cores} for jobs" if node.usable_cores else ""
    numa = f", {node.numa_nodes} NUMA nodes" if node.numa_nodes else ""
    yield _row(
        "processors",
        f"{node.sockets} x {node.processor}, {node.cores} cores{usable}{numa}, "
        f"{formatting.format_size(node.memory)}",
        node,
    )
    if gpus:
        wide = gpus.memory_bandwidth
        memory = f" at {format_bandwidth(wide)}" if wide else ""
        host = f", {format_bandwidth(gpus.host_link)} to the processor" if gpus.host_link else ""
        yield _row(
            "GPUs",
            f"{gpus.count} x {gpus.model}, {formatting.format_size(gpus.memory)}{memory}{host}",
            gpus,
        )
    for link in system.links:
        each = f"{link.links} x {format_bandwidth(link.bandwidth)}"
        yield _row("links", f"{each}, {_pairs(link.pairs)}", link)
    shared = f", {_SHARING[nics.sharing]}" if isinstance(nics.sharing, str) else ""
    ports = f"{nics.count} x {nics.model}, {format_bandwidth(nics.bandwidth)} each{shared}"
    yield _row("network ports", ports, nics)
    yield _row("network", f"{network.fabric}, {network.topology}", network)


def _pairs(pairs: object) -> str:
    if isinstance(pairs, list):
        return "GPUs " + ", ".join(f"{a}-{b}" for a, b in pairs)
    return "each GPU to a switch" if pairs == "switch" else "between all pairs"


def _jobs(system: System) -> list[str]:
    if system.slurm is None:
        return []
    rows = [_row(*row) for row in _partitions(system.slurm)]
    launcher, binding = system.launcher, system.binding
    how = f"{launcher.command} {' '.join(launcher.options)}".strip()
    rows.append(
        _row("launcher", f"{how}{f', --mpi={launcher.mpi}' if launcher.mpi else ''}", launcher)
    )
    if binding:
        rows.append(_row("binding", f"{binding.ranks} ranks a node: {binding.cpu}", binding))
        own = [(b.variable, f"{b.value}{_for(b.library)}", b) for b in binding.per_rank]
        rows += [_row(f"{name} of each rank", value, b) for name, value, b in own]
    rows += [_row("module", f"{m.name}{_for(m.library)}", m) for m in system.modules]
    return _grid("Jobs", ("what", "is", "source"), rows)


def _partitions(slurm: Slurm) -> Iterator[tuple[str, str, Sourced]]:
    whole = ", whole nodes" if slurm.exclusive else ""
    gpus = "no GPUs" if slurm.gpus == "none" else f"GPUs by {slurm.gpus}"
    asked = f"account {slurm.account}, partition {slurm.partition}, {gpus}{whole}"
    yield "asked for", asked, slurm
    for name, partition in slurm.partitions.items():
        yield f"partition {name}", _limits(partition), partition
        for qos, limits in partition.qos.items():
            yield f"{name}, qos {qos}", _limits(limits), limits


def _limits(limits: Partition | Qos) -> str:
    least = limits.least_nodes if isinstance(limits, Qos) else None
    words = [f"from {least} nodes"] if least else []
    words += [f"to {limits.most_nodes} nodes"] if limits.most_nodes else []
    words += [f"to {formatting.format_wall_time(limits.longest)}"] if limits.longest else []
    return ", ".join(words) or "limits unknown"


def _libraries(system: System) -> list[str]:
    rows = []
    for library in system.libraries:
        known = library.name in list_libraries()
        name = f"[{library.name}](../catalogue/{library.name}.md)" if known else library.name
        spaces = ", ".join(f"`{space}`" for space in library.spaces)
        source = _cited(library)
        rows.append((f"{name} {library.version}", plain(library.network), spaces, source))
    header = ("library", "between nodes by", "search spaces", "source")
    return _grid("Libraries", header, rows, raw=True)


def _variables(system: System) -> Iterator[tuple[str, ...]]:
    for name, pinned in system.pinned.items():
        library = pinned.library or "all"
        yield name, pinned.value, library, pinned.why, ", ".join(pinned.source)
    for name, guard in system.guard.items():
        yield name, "as the site sets it", "all", guard.why, ", ".join(guard.source)


def _recommended(system: System) -> list[str]:
    rows = [
        _baseline(one)
        for one in all_reference_settings().values()
        if system.name in one.entry.systems
    ]
    said = (
        "`commtune compare default reference:NAME` measures one: "
        "[Reference settings](../reference-settings.md)."
    )
    header = ("name", "for", "what it is", "sets", "fit to try", "from")
    return _grid("What sites and studies set here", header, rows, said, raw=True)


def _baseline(one: ReferenceSettings) -> tuple[str, ...]:
    known = one.entry
    settings = "<br>".join(_code(known.environment))
    fit = plain(known.unfit) if known.unfit else "yes"
    source = f"{plain(one.source)} ({known.kind})"
    return one.name, ", ".join(known.libraries), plain(known.summary), settings, fit, source


def _code(settings: Mapping[str, str]) -> Iterator[str]:
    """Settings as they are typed; what ends a cell of a table is escaped."""
    for name, value in settings.items():
        yield f"`{name}={value}`".replace("|", "\\|")


def _measured(system: System) -> list[str]:
    here = [one for one in all_findings() if system.name in one.finding.systems]
    sources = list(dict.fromkeys(one.source for one in here))
    rows = [
        _finding(one, sources) for one in sorted(here, key=lambda one: not one.finding.setting)
    ]
    said = (
        "Of those with a setting, a campaign here says whether it "
        "[sees them again](../findings.md). The number is that of a source below the table."
    )
    header = ("what", "for", "setting", "source, section")
    table = _grid("What papers found here", header, rows, said, raw=True)
    return [*table, *(f"{i}. {plain(source)}" for i, source in enumerate(sources, 1)), ""]


def _finding(one: NamedFinding, sources: Sequence[str]) -> tuple[str, ...]:
    found = one.finding
    where = f"{sources.index(one.source) + 1}, {plain(found.section)}"
    libraries = ", ".join(found.libraries)
    return plain(found.says), libraries, "<br>".join(_code(found.setting)), where


def _conflicts(system: System) -> Iterator[tuple[str, ...]]:
    for conflict in system.conflicts:
        said = "; ".join(f"{s.says} ({', '.join(s.source)})" for s in conflict.sayings)
        yield conflict.about, said, conflict.used


def _row(what: str, fact: str, facts: Sourced) -> tuple[str, ...]:
    return what, f"{fact}. {facts.note}" if facts.note else fact, ", ".join(facts.source)


def _cited(facts: Sourced) -> str:
    return ", ".join(f"`{name}`" for name in facts.source)


def _for(library: str) -> str:
    return f" (for {library})" if library else ""


def _grid(
    title: str, header: tuple[str, ...], rows: _Rows, said: str = "", *, raw: bool = False
) -> list[str]:
    """A section with a table; nothing where there are no rows."""
    made = [f"| {' | '.join(row if raw else map(plain, row))} |" for row in rows]
    if not made:
        return []
    before = [said, ""] if said else []
    head = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    return [f"## {title}", "", *before, *head, *made, ""]


def _text(title: str, lines: list[str], more: str = "") -> list[str]:
    """A section with what the command line prints; its first line says what it is."""
    if not lines:
        return []
    said = plain(lines[0])
    body = textwrap.dedent("\n".join(lines[1:]))
    first = f"{said[0].upper()}{said[1:]}. {more}".strip()
    return [f"## {title}", "", first, "", "```text", body, "```", ""]


def _list(title: str, entries: Iterable[str]) -> list[str]:
    made = [f"- {entry}" for entry in entries]
    return [f"## {title}", "", *made, ""] if made else []
