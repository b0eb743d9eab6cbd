"""Finds and reads system descriptions: the shipped ones and users' own files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from commtune.documents.nearest import quote_value, suggest_nearest
from commtune.documents.validation import validate_document
from commtune.documents.yaml_document import (
    Document,
    Where,
    is_path,
    list_shipped,
    load_document,
    load_shipped,
    require_shipped,
)
from commtune.spaces.loading import list_presets
from commtune.systems.schema import GpuLink, Slurm, System

_FOLDER = "systems/descriptions"


def list_systems() -> list[str]:
    """Returns the sorted names of the shipped descriptions."""
    return list(list_shipped(_FOLDER))


def load_system(name: str | Path) -> System:
    """Loads a system, by the name of a shipped description or the path of a file.

    Raises:
        UnknownName: no shipped description has this name.
        DocumentError: the file can't be read or is invalid, with file, line and hint.
    """
    return build_system(find_description(name))


def find_description(name: str | Path) -> Document:
    """Returns the document that ``load_system`` reads; raises the same errors."""
    text = str(name)
    if is_path(name):
        return load_document(Path(name))
    require_shipped("system", text, list_systems())
    return load_shipped(_FOLDER, text)


def build_system(document: Document) -> System:
    """Builds the system that a document describes.

    Raises:
        DocumentError: of the document's class, with file, line and hint: a key or value is
            invalid, or it refers to a source, GPU or partition that the description lacks.
    """
    document.require_kind("system")
    system = validate_document(document, System)
    _check_sources(document, system.sources)
    _check_gpus(document, system)
    _check_scheduler(document, system)
    _check_spaces(document, system)
    return system


def _check_spaces(document: Document, system: System) -> None:
    for i, library in enumerate(system.libraries):
        for j, space in enumerate(library.spaces):
            if space not in list_presets():
                raise document.error(
                    f"no shipped space is called {quote_value(space)}",
                    ("libraries", i, "spaces", j),
                    hint=suggest_nearest(space, list_presets()),
                )


def _check_sources(document: Document, sources: Mapping[str, str]) -> None:
    """Raises a DocumentError if a source that a document names isn't listed, or never used."""
    used = set()
    for where, name in _named_sources(document.data, ()):
        used.add(name)
        if name not in sources:
            place = ".".join(map(str, where[:-1]))
            raise document.error(
                f"{place}: no source is called {quote_value(name)}",
                where,
                hint=suggest_nearest(name, sources),
            )
    for name in sources:
        if name not in used:
            raise document.error(
                f"source {quote_value(name)} is not used", ("sources", name), hint="leave it out"
            )


def _named_sources(data: Any, where: Where) -> Iterator[tuple[Where, str]]:
    if isinstance(data, dict) and "source" in data:
        names = data["source"]
        for name in names if isinstance(names, list) else [names]:
            yield (*where, "source"), str(name)
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        if isinstance(value, dict | list):
            yield from _named_sources(value, (*where, key))


def _check_gpus(document: Document, system: System) -> None:
    count = system.gpus.count if system.gpus else 0
    for i, link in enumerate(system.links):
        _check_link(document, link, ("links", i, "pairs"), count)
    _check_sharing(document, system, count)
    if system.gpus is None or not system.gpus.numa:
        return
    if len(system.gpus.numa) != count:
        raise document.error(
            f"gpus.numa has {len(system.gpus.numa)} entries for {count} GPUs",
            ("gpus", "numa"),
            hint="give one for each GPU, or leave it out",
        )
    nodes = system.node.numa_nodes
    if nodes is None or max(system.gpus.numa) >= nodes:
        raise document.error(
            f"gpus.numa names NUMA node {max(system.gpus.numa)}, but node.numa_nodes is "
            f"{nodes or 'not given'}",
            ("gpus", "numa"),
            hint="NUMA nodes are counted from 0",
        )


def _check_sharing(document: Document, system: System, count: int) -> None:
    sharing = system.nics.sharing
    if not isinstance(sharing, list):
        return
    if len(sharing) != count or max(sharing, default=0) >= system.nics.count:
        raise document.error(
            f"nics.sharing names a port for {len(sharing)} of {count} GPUs, the highest "
            f"{max(sharing, default=0)} of {system.nics.count} ports",
            ("nics", "sharing"),
            hint="give one for each GPU; ports are counted from 0",
        )


def _check_link(document: Document, link: GpuLink, where: Where, count: int) -> None:
    if count == 0:
        raise document.error("links between GPUs, but no `gpus`", where, hint="add `gpus: ...`")
    if isinstance(link.pairs, str):
        return
    for j, (a, b) in enumerate(link.pairs):
        if a == b or max(a, b) >= count:
            raise document.error(
                f"GPUs {a} and {b} are not a pair of {count} GPUs",
                (*where, j),
                hint="GPUs are counted from 0",
            )


def _check_scheduler(document: Document, system: System) -> None:
    if (system.slurm is None) == (system.scheduler is None):
        raise document.error(
            "a system has either `slurm` or another `scheduler`",
            ("scheduler",) if system.scheduler else ("name",),
            hint="keep the one that runs its jobs",
        )
    if system.slurm is not None:
        _check_slurm(document, system, system.slurm)


def _check_slurm(document: Document, system: System, slurm: Slurm) -> None:
    if slurm.partition not in slurm.partitions:
        raise document.error(
            f"slurm.partition: {quote_value(slurm.partition)} is not among the partitions",
            ("slurm", "partition"),
            hint=suggest_nearest(slurm.partition, slurm.partitions),
        )
    known = slurm.partitions[slurm.partition].qos
    if slurm.qos and slurm.qos not in known:
        raise document.error(
            f"slurm.qos: {quote_value(slurm.qos)} is not among those of {slurm.partition}",
            ("slurm", "qos"),
            hint=suggest_nearest(slurm.qos, known) or f"list it under {slurm.partition}",
        )
    if slurm.gpus != "none" and system.gpus is None:
        raise document.error(
            f"slurm.gpus is {slurm.gpus}, but there is no `gpus`", ("slurm", "gpus"),
            hint="write `gpus: none`, or describe them",
        )  # fmt: skip
