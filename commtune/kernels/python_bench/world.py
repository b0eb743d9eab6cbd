"""All ranks of the run: what the launcher says of them, where they are, how they agree."""

from __future__ import annotations

import os
import re
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from commtune.kernels.python_bench.faults import UsageFault, Waived

if TYPE_CHECKING:
    from mpi4py import MPI

_SLURM_LOCAL_RANK = "SLURM_LOCALID"
#: Slurm's come last: in a job's script, and so in what another launcher starts from there, they
#: speak of the script.
_LOCAL_RANK = (
    "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK",
    "MVP_COMM_WORLD_LOCAL_RANK", "PALS_LOCAL_RANKID", "PMI_LOCAL_RANK", "FLUX_TASK_LOCAL_ID",
    _SLURM_LOCAL_RANK,
)  # fmt: skip
_LOCAL_RANKS = (
    "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE",
    "MVP_COMM_WORLD_LOCAL_SIZE", "PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE",
)  # fmt: skip
_RANKS = (
    "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "MVP_COMM_WORLD_SIZE",
    "FLUX_JOB_SIZE", "SLURM_STEP_NUM_TASKS",
)  # fmt: skip


def launched_ranks() -> tuple[int | None, int, int]:
    """What the launcher says: this rank's place on its node, ranks on the node, and all ranks.

    ``None`` or 0 where it doesn't say it; of srun, the most ranks on any node.
    """
    name = _first_set(_LOCAL_RANK)
    place = _number(os.environ[name]) if name else None
    ranks = max(_number(os.environ.get(one, "")) or 0 for one in _RANKS)
    if said := _first_set(_LOCAL_RANKS):
        return place, _number(os.environ[said]) or 0, ranks
    # "4(x2),1" are four tasks on each of two nodes, and one.
    tasks = os.environ.get("SLURM_STEP_TASKS_PER_NODE", "") if name == _SLURM_LOCAL_RANK else ""
    return place, max(_number(part) or 0 for part in tasks.split(",")), ranks


def _first_set(names: Sequence[str]) -> str:
    return next((name for name in names if name in os.environ), "")


def _number(text: str) -> int | None:
    found = re.match(r"\d+", text)
    return int(found[0]) if found else None


_TAG = 7
_Value = TypeVar("_Value")


class World:
    """MPI, begun.

    Attributes:
        init_s: what MPI_Init took, seconds.
        began_it: whether MPI was not up before.
        comm: all ranks; errors of MPI calls are exceptions.

    Args:
        libmpi: as MPI4PY_LIBMPI; empty leaves it to mpi4py.

    Raises:
        UsageFault: there is no mpi4py, or no MPI library that it can load.
    """

    def __init__(self, libmpi: str = "") -> None:
        if libmpi:
            os.environ["MPI4PY_LIBMPI"] = libmpi
        _load()
        from mpi4py import MPI

        self.mpi = MPI
        began = time.perf_counter()
        self.began_it = not MPI.Is_initialized()
        if self.began_it:
            MPI.Init()
        self.init_s = time.perf_counter() - began
        self.comm: MPI.Intracomm = MPI.COMM_WORLD
        self.rank = self.comm.Get_rank()
        self.size = self.comm.Get_size()

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def to_first(
        self, values: Sequence[_Value], combine: Callable[[_Value, _Value], _Value]
    ) -> list[_Value]:
        """Reduces each value over all ranks to rank 0; others get what their branch came to."""
        # Point-to-point messages along a binomial tree, as in src/ranks/world.cpp: a configuration
        # that breaks a collective operation must not hide that from its own check.
        combined, step = list(values), 1
        while step < self.size:
            if self.rank % (2 * step):
                self.comm.send(combined, dest=self.rank - step, tag=_TAG)
                return combined
            if self.rank + step < self.size:
                other = self.comm.recv(source=self.rank + step, tag=_TAG)
                combined = [combine(a, b) for a, b in zip(combined, other, strict=True)]
            step *= 2
        return combined

    def from_first(self, value: _Value) -> _Value:
        """Broadcasts rank 0's value."""
        step = 1
        while step < self.size:
            step *= 2
        step //= 2
        while step > 0:
            if self.rank % (2 * step) == 0 and self.rank + step < self.size:
                self.comm.send(value, dest=self.rank + step, tag=_TAG)
            elif self.rank % (2 * step) == step:
                value = self.comm.recv(source=self.rank - step, tag=_TAG)
            step //= 2
        return value

    def gather(self, value: _Value) -> list[_Value]:
        """Gathers the values of all ranks, in their order, on rank 0; others get nothing."""
        if not self.is_first:
            self.comm.send(value, dest=0, tag=_TAG)
            return []
        # One by one: a rank that is lost is then the one that is waited for.
        others = [self.comm.recv(source=rank, tag=_TAG) for rank in range(1, self.size)]
        return [value, *others]

    def library(self) -> str:
        """The library's description of itself, first line."""
        return " ".join(self.mpi.Get_library_version().partition("\n")[0].strip("\0").split())

    def standard(self) -> str:
        """The MPI standard that the library follows."""
        version, subversion = self.mpi.Get_version()
        return f"{version}.{subversion}"


def _load() -> None:
    """Loads mpi4py and its MPI library, without initializing MPI."""
    try:
        import mpi4py
    except ImportError as error:
        raise Waived("this needs mpi4py: in the checkout, pip install '.[python]'") from error
    mpi4py.rc.initialize = False
    mpi4py.rc.finalize = False
    mpi4py.rc.threads = False  # MPI_Init, as the native benchmark; threads cost time
    try:
        from mpi4py import MPI  # noqa: F401  # that it can be loaded is all that counts
    except (ImportError, RuntimeError) as error:
        said = "; ".join(str(error).splitlines())
        raise UsageFault(
            f"mpi4py: {said}. Name the MPI library, or its folder, with --libmpi or MPI4PY_LIBMPI"
        ) from None


#: Ranks of a machine with different values of it are on different nodes: src/ranks/placement.h.
_NODE_VARIABLE = "NCCL_HOSTID"


@dataclass(frozen=True)
class _Place:
    """What a rank says of itself."""

    host: str
    #: Differs between machines that happen to have the same name; the same for containers under
    #: one kernel.
    boot: str
    told_node: str  # value of _NODE_VARIABLE; empty, as a rule, where it is unset
    pid: int
    cpus: tuple[int, ...]
    environment: Mapping[str, str]  # those of --env-names that it has


@dataclass(frozen=True)
class Placement:
    """All ranks; the same on each of them."""

    places: tuple[_Place, ...]

    @classmethod
    def of(cls, world: World, env_names: Sequence[str]) -> Placement:
        return cls(tuple(world.from_first(world.gather(_own_place(env_names)))))

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
        return _places_on(self.machines)

    @property
    def local_ranks(self) -> list[int]:
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

    def facts(self, gpus: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """As the header has them; ``gpus`` are facts of every rank's, empty where none is used."""
        together = zip(self.places, self.nodes, self.local_ranks, strict=True)
        rank_info = [
            {
                "rank": rank,
                "node": node,
                "local_rank": local_rank,
                "host": place.host,
                "pid": place.pid,
                "cpus": _cpu_list(place.cpus),
                "environment": dict(place.environment),
                **({"gpu": dict(gpus[rank])} if gpus else {}),
            }
            for rank, (place, node, local_rank) in enumerate(together)
        ]
        return {
            "nodes": max(self.nodes) + 1,
            **({"nodes_by": _NODE_VARIABLE} if self.nodes != self.machines else {}),
            "oversubscribed": self.oversubscribed,
            "rank_info": rank_info,
        }


def _own_place(env_names: Sequence[str]) -> _Place:
    """What this rank says of itself."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = ""
    seen = {name: os.environ[name] for name in env_names if name in os.environ}
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    told = os.environ.get(_NODE_VARIABLE, "")
    return _Place(socket.gethostname(), boot, told, os.getpid(), cpus, seen)


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


def _cpu_list(cpus: Collection[int]) -> str:
    """Formats numbers of processors like ``0-3,8``."""
    spans: list[list[int]] = []
    for cpu in sorted(cpus):
        if spans and spans[-1][1] == cpu - 1:
            spans[-1][1] = cpu
        else:
            spans.append([cpu, cpu])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
