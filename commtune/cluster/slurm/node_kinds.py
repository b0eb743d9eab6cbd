"""Chooses nodes of one kind in heterogeneous partitions, or warns that a job's nodes differ."""

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
from commtune.errors import MissingComponent

_COLUMNS = ("%P", "%X", "%Y", "%G", "%N")
#: Without --exact, sinfo merges nodes of 2 and of 4 cores into one line, as 2+.
_QUESTION = ("sinfo", "--exact", "--noheader", f"--format={FIELD.join(_COLUMNS)}")


@dataclass
class _Kind:
    words: str  # sockets, cores and generic resources such as GPUs
    lists: list[str] = field(default_factory=list)  # node lists in short form
    names: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        return f"{', '.join(self.lists)} ({self.words})"


@dataclass(frozen=True)
class NodeChoice:
    exclude: tuple[str, ...] = ()  # node lists for --exclude
    remark: str = ""  # for the user; empty if all nodes are of one kind


def choose_nodes(
    environment: Mapping[str, str],
    partition: str,
    count: int,
    folder: Path,
    *,
    exclude: Collection[str] = (),
    allocated: Collection[str] = (),
) -> NodeChoice:
    """Chooses the most frequent kind of node in a partition; all kinds if Slurm doesn't answer.

    Args:
        partition: its name; empty for the default partition.
        folder: where campaigns share Slurm's answers.
        exclude: node lists that the user excludes.
        allocated: names of the nodes that the job has already, if it runs.
    """
    try:
        ask = partial(ask_slurm, _QUESTION, environment)
        listed = ask_of_site(ask, "sinfo", folder)
    except (SlurmFault, MissingComponent):
        return NodeChoice()
    return _choose(_read_kinds(listed, partition, exclude), count, allocated)


def _read_kinds(listed: str, partition: str, exclude: Collection[str]) -> list[_Kind]:
    """Returns the kinds of a partition's nodes, the most frequent first."""
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
