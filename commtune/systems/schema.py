"""Pydantic models of system descriptions, version 1; the JSON Schema is generated from them.

Parsed values are in bytes, seconds, and bytes per second (in one direction, for links).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from commtune.documents.nearest import quote_value
from commtune.documents.quantities import (
    QuantityError,
    parse_bandwidth,
    parse_bytes,
    parse_seconds,
)
from commtune.spaces import schema


def _parse_memory(value: str | int) -> int:
    """Parses a size in bytes; refuses a bare number, which is unlikely to be meant in bytes."""
    written = str(value).strip()
    if written.isdigit():
        raise QuantityError(f"{quote_value(value)} has no unit", hint=f"nearest: {written}GiB")
    return parse_bytes(value)


_AMOUNT = WithJsonSchema({"type": ["string", "number"]})
_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"

_Bandwidth = Annotated[int, BeforeValidator(parse_bandwidth), WithJsonSchema({"type": "string"})]
Size = Annotated[int, BeforeValidator(parse_bytes), _AMOUNT]
_MemorySize = Annotated[int, BeforeValidator(_parse_memory), WithJsonSchema({"type": "string"})]
_Seconds = Annotated[float, BeforeValidator(parse_seconds), _AMOUNT]
Count = Annotated[int, Field(ge=1), schema.IN_DIGITS]
_Index = Annotated[int, Field(ge=0), schema.IN_DIGITS]
Name = Annotated[str, Field(pattern=_NAME)]


#: The names of one or several entries in ``sources``.
_Sources = Annotated[
    list[Name],
    BeforeValidator(schema.as_list),
    Field(min_length=1),
    WithJsonSchema(schema.one_or_list({"type": "string"})),
]


class Sourced(schema.Model):
    """Facts, and where they are from."""

    source: _Sources
    """Names of entries in `sources` that say so."""
    note: str = ""
    """What else to know."""


class _Node(Sourced):
    """A compute node without its GPUs and NICs."""

    processor: str
    """Name of the processor."""
    sockets: Count = 1
    """Processors in a node."""
    cores: Count
    """Cores of all processors together."""
    usable_cores: Count | None = None
    """Cores that jobs get, where the site keeps some for itself."""
    numa_nodes: Count | None = None
    """NUMA nodes; left out where nobody says."""
    memory: _MemorySize
    """Main memory."""


class _Gpus(Sourced):
    """The GPUs of a node, as Slurm and the GPU runtime count them."""

    model: str
    """Name of the GPU."""
    vendor: Literal["amd", "nvidia", "intel"]
    """Who makes it."""
    count: Count
    """GPUs in a node."""
    memory: _MemorySize
    """Memory of one GPU."""
    memory_bandwidth: _Bandwidth | None = None
    """Nominal bandwidth of one GPU's memory, reads and writes together."""
    host_link: _Bandwidth | None = None
    """Nominal bandwidth between one GPU and its processor, in one direction."""
    numa: list[_Index] = []
    """NUMA node nearest to each GPU, by the GPU's index; empty where nobody says."""


class GpuLink(Sourced):
    """Links between pairs of GPUs in a node, or from each GPU to a switch."""

    pairs: Literal["all", "switch"] | Annotated[list[tuple[_Index, _Index]], Field(min_length=1)]
    """Pairs of GPU indices; `all`; or `switch`, where every GPU is joined to one that lets
    everything through."""
    links: Count
    """Links side by side between the two GPUs of a pair, or of a GPU to the switch."""
    bandwidth: _Bandwidth
    """Nominal bandwidth of one link, in one direction."""


class _Nics(Sourced):
    """The network ports of a node."""

    model: str
    """Name of the adapter."""
    count: Count
    """Ports in a node."""
    bandwidth: _Bandwidth
    """Nominal bandwidth of one port, in one direction."""
    sharing: Literal["packed", "round-robin"] | list[_Index] | None = None
    """Which port each GPU uses: neighbours share one (packed), in turn (round-robin), or the
    number of each GPU's port; left out where nobody says."""
    devices: list[schema.Text] = []
    """Names of the ports in the operating system, in order; empty where nobody says."""


class _Network(Sourced):
    """How nodes are joined."""

    fabric: str
    """Kind of network: Slingshot 11, InfiniBand HDR."""
    topology: str
    """Shape: dragonfly, dragonfly+, fat tree."""
    groups: Count | None = None
    """Groups of switches that hold GPU nodes."""


class Qos(Sourced):
    """A quality of service within a partition."""

    least_nodes: Count | None = None
    """Fewest nodes of a job."""
    most_nodes: Count | None = None
    """Most nodes of a job."""
    longest: _Seconds | None = None
    """Longest time limit."""


class Partition(Sourced):
    """A partition that campaigns may use."""

    most_nodes: Count | None = None
    """Most nodes of a job."""
    longest: _Seconds | None = None
    """Longest time limit."""
    whole_nodes: schema.Truth | None = None
    """Whether jobs get whole nodes without asking."""
    named: schema.Truth = True
    """Whether jobs name it; where not, Slurm takes it from their constraint and qos."""
    qos: dict[Name, Qos] = {}
    """Qualities of service of the partition."""


class Slurm(Sourced):
    """What a job must ask Slurm for."""

    account: Literal["required", "optional"]
    """Whether a job without an account is refused."""
    partition: Name
    """The partition that is used if a campaign names none."""
    partitions: Annotated[dict[Name, Partition], Field(min_length=1)]
    """Partitions with their limits."""
    qos: schema.Text = ""
    """Quality of service to ask for; empty for the default."""
    constraint: schema.Text = ""
    """Node features to ask for."""
    reservation: schema.Text = ""
    """Reservation to run in."""
    gpus: Literal["gpus-per-node", "gres", "none"]
    """How GPUs are asked for: --gpus-per-node=N, --gres=gpu:N, or not at all."""
    exclusive: schema.Truth
    """Whether to ask for whole nodes."""
    switches: Literal["", "switch", "group"] = ""
    """What --switches counts: leaf switches, or whole groups of them; empty where nobody says."""
    memory: schema.Text = ""
    """Memory a node, as --mem takes it; 0 is all of it; empty leaves it to the site."""


class _OtherScheduler(Sourced):
    """What runs jobs where Slurm doesn't. Campaigns use PBS; others are described only."""

    kind: Literal["pbs", "lsf", "flux"]
    """Which one."""
    queue: schema.Text = ""
    """The queue for jobs of campaigns."""


class _Recognized(Sourced):
    """By what a machine is known to be this system; one of the three is enough."""

    cluster: list[schema.Text] = []
    """Names that Slurm gives the cluster (ClusterName)."""
    environment: dict[schema.VariableName, schema.Text] = {}
    """Variables that the site sets for everybody, and their values."""
    hosts: list[schema.Text] = []
    """Names of its login or compute nodes; * stands for anything."""


class _Library(Sourced):
    """A communication library that users of the system are given."""

    name: Name
    """As search spaces call it: nccl, rccl, cray-mpich, openmpi."""
    version: schema.Text = ""
    """Version, where a source names one."""
    network: str = ""
    """What carries it between nodes: aws-ofi-nccl over cxi, InfiniBand verbs, UCX."""
    spaces: list[Name] = []
    """Shipped search spaces that are for it there: within a node, between nodes."""


class _Launcher(Sourced):
    """What starts the ranks."""

    command: Literal["srun", "mpirun", "mpiexec", "ibrun", "jsrun"]
    """The program."""
    mpi: Literal["", "none", "pmi2", "pmix", "cray_shasta"] = ""
    """What --mpi is given; empty leaves it to the site's default."""
    options: list[schema.Text] = []
    """Further options, one word each."""


class PerRank(Sourced):
    """A variable whose value differs between the ranks of a node."""

    variable: schema.VariableName
    """The environment variable."""
    value: schema.Text
    """Its value; {local_rank} stands for the number of the rank within its node."""
    library: str = ""
    """Only for runs of this library; empty for all."""


class _Binding(Sourced):
    """Which cores, GPU and NIC each rank of a node gets."""

    ranks: Count
    """Ranks a node for which `cpu` is meant: usually one a GPU."""
    cpu: schema.Text
    """What --cpu-bind is given for that many ranks a node."""
    per_rank: list[PerRank] = []
    """Variables that bind each rank to its GPU or NIC."""


class _Guard(Sourced):
    """A variable that the operators decide on."""

    why: str
    """What goes wrong otherwise."""


class _Pinned(Sourced):
    """A variable that has this value in every run, the default's too."""

    value: schema.Text
    """The value."""
    library: str = ""
    """Only for runs of this library; empty for all."""
    why: str
    """What it is needed for."""


class _ModuleLoad(Sourced):
    """A module to load before anything runs."""

    name: schema.Text
    """As `module load` takes it."""
    library: str = ""
    """Only for runs of this library; empty for all."""


class _Saying(Sourced):
    """What some sources say where others disagree."""

    says: schema.Text
    """The statement."""


class _Conflict(schema.Model):
    """Something on which sources disagree."""

    about: str
    """What they disagree on."""
    sayings: Annotated[list[_Saying], Field(min_length=2)]
    """What each says."""
    used: str
    """Which one this description follows, and why."""


class System(schema.Model):
    """A description of a machine: what is known of it, and who says so."""

    system: schema.VersionOne
    """Version of this format."""
    name: Name
    """Name of the system."""
    version: schema.Text = "1"
    """Version of the description itself; raise it when you change it."""
    summary: str
    """One sentence on what it is."""
    checked: schema.Text
    """When the facts were last compared with their sources, year-month-day."""
    measured_here: schema.Truth = False
    """Whether commtune has measured on this system; otherwise all is from reading."""
    retired: schema.Text = ""
    """When it went out of service, as exactly as is known; empty while it serves."""
    recognized: _Recognized | None = None
    """By what a machine is known to be this one."""
    sources: Annotated[dict[Name, str], Field(min_length=1)]
    """Where facts are from: a name, and what and where it is, with its date or version."""
    node: _Node
    """The compute node."""
    gpus: _Gpus | None = None
    """Its GPUs."""
    links: list[GpuLink] = []
    """Direct links between its GPUs."""
    nics: _Nics
    """Its network ports."""
    network: _Network
    """The network between nodes."""
    slurm: Slurm | None = None
    """What jobs must ask for, where Slurm runs them."""
    scheduler: _OtherScheduler | None = None
    """What runs jobs elsewhere."""
    launcher: _Launcher
    """What starts the ranks."""
    libraries: list[_Library] = []
    """Communication libraries of the system."""
    binding: _Binding | None = None
    """Cores, GPU and NIC of each rank."""
    guard: dict[schema.VariableName, _Guard] = {}
    """Variables that a configuration may set only to values that its campaign opts in to."""
    pinned: dict[schema.VariableName, _Pinned] = {}
    """Variables with one value in every run."""
    modules: list[_ModuleLoad] = []
    """Modules to load."""
    conflicts: list[_Conflict] = []
    """Where sources disagree."""
    unknown: list[str] = []
    """What no source says, and somebody on the system should find out."""

    @property
    def jobs(self) -> Slurm:
        """The options for Slurm; campaigns on systems without it are refused before."""
        assert self.slurm is not None, f"{self.name} has no Slurm"
        return self.slurm
