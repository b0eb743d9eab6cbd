"""Partitions with nodes of several kinds: a job gets one of them, or its user is told."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from commtune.cluster.placement import expand_readable_hosts
from commtune.cluster.slurm.client import ask_slurm
from commtune.cluster.slurm.command_output import FIELD
from commtune.cluster.slurm.faults import SlurmFault
from commtune.cluster.slurm.shared_answer import ask_of_site

_COLUMNS = ("%P", "%X", "%Y", "%G", "%N")
#: Otherwise sinfo puts nodes of 2 and of 4 cores together, as 2+.
_QUESTION = ("sinfo", "--exact", "--noheader", f"--format={FIELD.join(_COLUMNS)}")
_TIMEOUT_S = 60.0


@dataclass
class _Kind:
    words: str  # sockets and cores, and GPUs and the like
    lists: list[str] = field(default_factory=list)  # of names, in short form
    names: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        return f"{', '.join(self.lists)} ({self.words})"


@dataclass(frozen=True)
class NodeChoice:
    exclude: tuple[str, ...] = ()  # lists of names that jobs do without
    remark: str = ""  # for a person; empty where all nodes are alike


def choose_nodes(
    environment: Mapping[str, str],
    partition: str,
    count: int,
    *,
    exclude: Collection[str] = (),
    allocated: Collection[str] = (),
    folder: Path | None = None,
) -> NodeChoice:
    """Chooses nodes of one kind: of the kind that the partition has most of.

    Where Slurm does not answer, all are taken.

    Args:
        partition: empty for the default.
        count: nodes of a job.
        exclude: nodes that the user leaves out.
        allocated: the nodes that a job has already.
        folder: for files of all campaigns; ``None`` asks anew.
    """
    try:
        ask = partial(ask_slurm, _QUESTION, environment, _TIMEOUT_S)
        listed = ask_of_site(ask, "sinfo", folder)
    except SlurmFault:
        return NodeChoice()
    return _choose(_read_kinds(listed, partition, exclude), count, allocated)


def _read_kinds(listed: str, partition: str, exclude: Collection[str]) -> list[_Kind]:
    """Kinds of a partition's nodes, the most frequent first."""
    left_out = {name for one in exclude for name in expand_readable_hosts(one)}
    found: dict[str, _Kind] = {}
    for line in listed.splitlines():
        fields = line.split(FIELD)
        if len(fields) != len(_COLUMNS):
            continue
        name, sockets, cores, resources, nodes = fields
        is_asked = name.rstrip("*") == partition if partition else name.endswith("*")
        if not is_asked:
            continue
        words = f"{sockets} x {cores} cores"
        if resources != "(null)":
            words += f", {resources.partition('(')[0]}"
        names = set(expand_readable_hosts(nodes)) - left_out
        if names:
            kind = found.setdefault(words, _Kind(words))
            kind.lists.append(nodes)
            kind.names |= names
    return sorted(found.values(), key=lambda kind: (-len(kind.names), kind.words))


def _choose(kinds: list[_Kind], count: int, allocated: Collection[str]) -> NodeChoice:
    if count < 2 or len(kinds) < 2:
        return NodeChoice()
    chosen = next((kind for kind in kinds if len(kind.names) >= count), None)
    others = [kind for kind in kinds if chosen and kind is not chosen]
    exclude = tuple(one for kind in others for one in kind.lists)
    there = [kind for kind in kinds if kind.names & set(allocated)] if allocated else kinds
    if allocated and len(there) < 2:
        return NodeChoice(exclude)
    differ = f"nodes differ: {'; '.join(map(str, there))}"
    if allocated or chosen is None:
        return NodeChoice(exclude, f"{differ}; results hold for jobs that mix them")
    return NodeChoice(
        exclude,
        f"{differ}\n  jobs use {', '.join(chosen.lists)} only; "
        "to choose others: 'exclude' or 'constraint' below 'slurm' in the campaign file",
    )
