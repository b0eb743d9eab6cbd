"""Where ranks are: node, local rank, processors."""

from __future__ import annotations

import os
import socket
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commtune.kernels.python_bench.world import World

#: Ranks of a machine with different values of it are on different nodes, as in src/placement.h.
NODE_VARIABLE = "NCCL_HOSTID"


@dataclass(frozen=True)
class Place:
    """What a rank says of itself.

    Attributes:
        boot: differs between machines that happen to have the same name; the same for
            containers under one kernel.
        told_node: value of NODE_VARIABLE; empty, as a rule, where it is unset.
        environment: those of --env-names that it has.
    """

    host: str
    boot: str
    told_node: str
    pid: int
    cpus: tuple[int, ...]
    environment: Mapping[str, str]


@dataclass(frozen=True)
class Placement:
    """All ranks; the same on each of them."""

    places: tuple[Place, ...]

    @classmethod
    def of(cls, world: World, env_names: Sequence[str]) -> Placement:
        return cls(tuple(world.from_first(world.gather(own_place(env_names)))))

    @property
    def machines(self) -> list[int]:
        """The machine of every rank, numbered as they come."""
        return _numbered([(p.host, p.boot) for p in self.places])

    @property
    def nodes(self) -> list[int]:
        """The node of every rank, numbered as they come."""
        return _numbered([(p.host, p.boot, p.told_node) for p in self.places])

    @property
    def machine_ranks(self) -> list[int]:
        """The place of every rank on its machine."""
        return _places_on(self.machines)

    @property
    def local_ranks(self) -> list[int]:
        """The place of every rank on its node."""
        return _places_on(self.nodes)

    @property
    def oversubscribed(self) -> bool:
        """Whether ranks of some kernel outnumber the processors they may use together."""
        cpus: dict[str, set[int]] = defaultdict(set)
        count: dict[str, int] = defaultdict(int)
        for place in self.places:
            cpus[place.boot or place.host].update(place.cpus)
            count[place.boot or place.host] += 1
        return any(count[kernel] > len(cpus[kernel]) for kernel in count)

    def rank_info(self, gpus: Sequence[Mapping[str, Any]] = ()) -> list[dict[str, Any]]:
        """As the header has it.

        Args:
            gpus: facts of every rank's; empty where none is used.
        """
        together = zip(self.places, self.nodes, self.local_ranks, strict=True)
        return [
            {
                "rank": rank,
                "node": node,
                "local_rank": local_rank,
                "host": place.host,
                "pid": place.pid,
                "cpus": cpu_list(place.cpus),
                "environment": dict(place.environment),
                **({"gpu": dict(gpus[rank])} if gpus else {}),
            }
            for rank, (place, node, local_rank) in enumerate(together)
        ]


def own_place(env_names: Sequence[str]) -> Place:
    """What this rank says of itself."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = ""
    seen = {name: os.environ[name] for name in env_names if name in os.environ}
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    told = os.environ.get(NODE_VARIABLE, "")
    return Place(socket.gethostname(), boot, told, os.getpid(), cpus, seen)


def _numbered(keys: Sequence[tuple[str, ...]]) -> list[int]:
    numbers: dict[tuple[str, ...], int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def _places_on(numbers: Sequence[int]) -> list[int]:
    taken: dict[int, int] = defaultdict(int)
    found = []
    for number in numbers:
        found.append(taken[number])
        taken[number] += 1
    return found


def cpu_list(cpus: Collection[int]) -> str:
    """0-3,8 and the like."""
    spans: list[list[int]] = []
    for cpu in sorted(cpus):
        if spans and spans[-1][1] == cpu - 1:
            spans[-1][1] = cpu
        else:
            spans.append([cpu, cpu])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
