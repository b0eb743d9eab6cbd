"""Pydantic models of system descriptions, version 1; the JSON Schema is generated from them.

Parsed values are in bytes, seconds, and bytes per second (in one direction, for links).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from commtune.documents.nearest import quote_value
from commtune.documents.quantities import parse_bandwidth, parse_bytes, parse_seconds
from commtune.errors import InvalidValue
from commtune.spaces import schema


def _parse_memory(value: str | int) -> int:
    """Parses a size in bytes; refuses a bare number, which is unlikely to be meant in bytes."""
    written = str(value).strip()
    if written.isdigit():
        raise InvalidValue(f"{quote_value(value)} has no unit", hint=f"nearest: {written}GiB")
    return parse_bytes(value)


_AMOUNT = WithJsonSchema({"type": ["string", "number"]})
#: Names of systems, sources, partitions and libraries.
NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"

_Bandwidth = Annotated[int, BeforeValidator(parse_bandwidth), WithJsonSchema({"type": "string"})]
Size = Annotated[int, BeforeValidator(parse_bytes), _AMOUNT]
_MemorySize = Annotated[int, BeforeValidator(_parse_memory), WithJsonSchema({"type": "string"})]
_Seconds = Annotated[float, BeforeValidator(parse_seconds), _AMOUNT]
Count = Annotated[int, Field(ge=1), schema.IN_DIGITS]
_Index = Annotated[int, Field(ge=0), schema.IN_DIGITS]
Name = Annotated[str, Field(pattern=NAME)]
#: The values of srun's ``--mpi``.
SrunMpi = Literal["", "none", "pmi2", "pmix", "cray_shasta"]

#: The names of one or several entries in ``sources``.
_Sources = Annotated[
    list[Name],
    BeforeValidator(schema.as_list),
    Field(min_length=1),
    WithJsonSchema(schema.one_or_list({"type": "string"})),
]


class Sourced(schema.Model):
    """Facts with their sources."""

    source: _Sources
    """Names of entries in `sources` for these facts."""
    note: str = ""
    """Remarks."""


class _Node(Sourced):
    """A compute node without its GPUs and NICs."""

    processor: str
    """Name of the processor."""
    sockets: Count = 1
    """Processors in a node."""
    cores: Count
    """Cores of all processors together."""
    usable_cores: Count | None = None
    """Cores for jobs, if the site reserves some."""
    numa_nodes: Count | None = None
    """NUMA nodes; omitted if unknown."""
    memory: _MemorySize
    """Main memory."""


class _Gpus(Sourced):
    """The GPUs of a node, as Slurm and the GPU runtime count them."""

    model: str
    """Name of the GPU."""
    vendor: Literal["amd", "nvidia", "intel"]
    """Its vendor."""
    count: Count
    """GPUs in a node."""
    memory: _MemorySize
    """Memory of one GPU."""
    memory_bandwidth: _Bandwidth | None = None
    """Nominal bandwidth of one GPU's memory, reads and writes together."""
    host_link: _Bandwidth | None = None
    """Nominal bandwidth between one GPU and its processor, in one direction."""
    numa: list[_Index] = []
    """NUMA node nearest to each GPU, by the GPU's index; empty if unknown."""


class GpuLink(Sourced):
    """Links between pairs of GPUs in a node, or from each GPU to a switch."""

    pairs: Literal["all", "switch"] | Annotated[list[tuple[_Index, _Index]], Field(min_length=1)]
    """Pairs of GPU indices; `all`; or `switch`, if every GPU is connected to a non-blocking
    switch."""
    links: Count
    """Parallel links between the GPUs of a pair, or from a GPU to the switch."""
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
    number of each GPU's port; omitted if unknown."""
    devices: list[schema.Text] = []
    """Names of the ports in the operating system, in order; empty if unknown."""


class _Network(Sourced):
    """The network between nodes."""

    fabric: str
    """Type of network: Slingshot 11, InfiniBand HDR."""
    topology: str
    """Topology: dragonfly, dragonfly+, fat tree."""
    groups: Count | None = None
    """Groups of switches with GPU nodes."""


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
    """Whether jobs get whole nodes by default."""
    named: schema.Truth = True
    """Whether jobs name it; if not, Slurm derives it from their constraint and qos."""
    qos: dict[Name, Qos] = {}
    """Qualities of service of the partition."""


class Slurm(Sourced):
    """Options of jobs with Slurm."""

    account: Literal["required", "optional"]
    """Whether a job without an account is refused."""
    partition: Name
    """The partition that is used if a campaign names none."""
    partitions: Annotated[dict[Name, Partition], Field(min_length=1)]
    """Partitions with their limits."""
    qos: schema.Text = ""
    """Requested quality of service; empty for the default."""
    constraint: schema.Text = ""
    """Requested node features."""
    reservation: schema.Text = ""
    """Requested reservation."""
    gpus: Literal["gpus-per-node", "gres", "none"]
    """How GPUs are requested: --gpus-per-node=N, --gres=gpu:N, or not at all."""
    exclusive: schema.Truth
    """Whether whole nodes are requested."""
    switches: Literal["", "switch", "group"] = ""
    """What --switches counts: leaf switches, or whole groups of them; empty if unknown."""
    memory: schema.Text = ""
    """Memory per node, as for --mem; 0 is all of it; empty for the site's default."""


class _OtherScheduler(Sourced):
    """A scheduler other than Slurm. Campaigns support PBS only."""

    kind: Literal["pbs", "lsf", "flux"]
    """The scheduler."""
    queue: schema.Text = ""
    """The queue for jobs of campaigns."""


class _Recognized(Sourced):
    """What identifies a machine as this system; one of the three is enough."""

    cluster: list[schema.Text] = []
    """Slurm's names of the cluster (ClusterName)."""
    environment: dict[schema.VariableName, schema.Text] = {}
    """Variables that the site sets for all users, with their values."""
    hosts: list[schema.Text] = []
    """Host names of its login or compute nodes; * matches anything."""


class _Library(Sourced):
    """A communication library that the system provides."""

    name: Name
    """Its name in search spaces: nccl, rccl, cray-mpich, openmpi."""
    version: schema.Text = ""
    """Version; empty if no source names one."""
    network: str = ""
    """Its transport between nodes: aws-ofi-nccl over cxi, InfiniBand verbs, UCX."""
    spaces: list[Name] = []
    """Shipped search spaces for it: within a node, between nodes."""


class _Launcher(Sourced):
    """The launcher of ranks."""

    command: Literal["srun", "mpirun", "mpiexec", "ibrun", "jsrun"]
    """The program."""
    mpi: SrunMpi = ""
    """The value of --mpi; empty for the site's default."""
    options: list[schema.Text] = []
    """Further options, one word each."""


class PerRank(Sourced):
    """A variable whose value differs between the ranks of a node."""

    variable: schema.VariableName
    """The environment variable."""
    value: schema.Text
    """Its value; {local_rank} is replaced by the rank's number within its node."""
    library: str = ""
    """Only for runs of this library; empty for all."""


class _Binding(Sourced):
    """Binding of the ranks of a node to cores, GPUs and NICs."""

    ranks: Count
    """Ranks per node to which `cpu` applies: usually one per GPU."""
    cpu: schema.Text
    """The value of --cpu-bind for that many ranks per node."""
    per_rank: list[PerRank] = []
    """Variables that bind each rank to its GPU or NIC."""


class _Guard(Sourced):
    """A variable that only the site's operators may set."""

    why: str
    """What happens otherwise."""


class _Pinned(Sourced):
    """A variable with a fixed value in all runs, also of the default."""

    value: schema.Text
    """The value."""
    library: str = ""
    """Only for runs of this library; empty for all."""
    why: str
    """Why it is needed."""


class _ModuleLoad(Sourced):
    """An environment module that jobs load."""

    name: schema.Text
    """Its name, as for `module load`."""
    library: str = ""
    """Only for runs of this library; empty for all."""


class _Saying(Sourced):
    """The statement of some sources in a conflict."""

    says: schema.Text
    """The statement."""


class _Conflict(schema.Model):
    """A disagreement between sources."""

    about: str
    """The subject."""
    sayings: Annotated[list[_Saying], Field(min_length=2)]
    """The statements."""
    used: str
    """The statement that this description follows, and why."""


class System(schema.Model):
    """A description of a machine: facts with their sources."""

    system: schema.VersionOne
    """Version of this format."""
    name: Name
    """Name of the system."""
    version: schema.Text = "1"
    """Version of the description itself; raise it when you change it."""
    summary: str
    """One sentence."""
    checked: schema.Text
    """When the facts were last compared with their sources, year-month-day."""
    measured_here: schema.Truth = False
    """Whether commtune has measured on this system; otherwise all facts are from documents."""
    retired: schema.Text = ""
    """When it went out of service, as precisely as is known; empty while in service."""
    recognized: _Recognized | None = None
    """What identifies a machine as this system."""
    sources: Annotated[dict[Name, str], Field(min_length=1)]
    """Citations with date or version, by name."""
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
    """Options of jobs, if Slurm runs them."""
    scheduler: _OtherScheduler | None = None
    """The scheduler, if it isn't Slurm."""
    launcher: _Launcher
    """The launcher of ranks."""
    libraries: list[_Library] = []
    """Communication libraries of the system."""
    binding: _Binding | None = None
    """Binding of ranks to cores, GPUs and NICs."""
    guard: dict[schema.VariableName, _Guard] = {}
    """Variables that a configuration may set only to values that its campaign opts in to."""
    pinned: dict[schema.VariableName, _Pinned] = {}
    """Variables with a fixed value in all runs."""
    modules: list[_ModuleLoad] = []
    """Modules to load."""
    conflicts: list[_Conflict] = []
    """Disagreements between sources."""
    unknown: list[str] = []
    """What no source says, to be found out on the system."""
