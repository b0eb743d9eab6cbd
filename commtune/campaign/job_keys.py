"""Models of the sections ``slurm`` and ``pbs`` of a campaign file."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from commtune.campaign import value_types
from commtune.documents.nearest import quote_value
from commtune.documents.quantities import parse_seconds
from commtune.errors import InvalidValue, UserError
from commtune.slurm_templates import job_request
from commtune.slurm_templates.quoting import quote_directive
from commtune.spaces.schema import Model, Text, Truth, Whole
from commtune.systems.schema import SrunMpi

#: A comma outside of brackets: n[1,3],n7 has two words.
_BETWEEN_NODES = re.compile(r",(?![^\[]*\])")


def _nodes(written: Any) -> tuple[str, ...]:
    names = [
        name
        for word in value_types.parse_words(written)
        for name in _BETWEEN_NODES.split(word)
        if name
    ]
    return tuple(_option(name) for name in names)


def _option(text: str) -> str:
    try:
        return str(quote_directive(text)) if text else text
    except UserError as e:
        raise InvalidValue(e.message, hint=e.hint) from e


#: Resources of a node, as one chunk of ``-l select`` has them.
_CHUNK = re.compile(r"[A-Za-z]\w*=[^:+=]+(?::[A-Za-z]\w*=[^:+=]+)*", re.ASCII)
#: Options ``-l`` that are set by other keys, with those keys.
_OF_KEYS = {"select": "chunk", "place": "place", "walltime": "block_time"}


def _chunk(text: str) -> str:
    if text and not _CHUNK.fullmatch(text):
        raise InvalidValue(
            f"{quote_value(text)} is not a list of resources", hint="write ncpus=64:ngpus=4"
        )
    if re.search(r"(^|:)mpiprocs=", text):
        raise InvalidValue(
            "'mpiprocs' follows from the workload's nodes and ranks", hint="leave it out"
        )
    return text


def _resource(text: str) -> str:
    name, _, value = text.partition("=")
    if not name or not value:
        raise InvalidValue(f"{quote_value(text)} is not a resource", hint="write filesystems=home")
    if name in _OF_KEYS:
        raise InvalidValue(f"'{name}' has a key of its own", hint=f"use '{_OF_KEYS[name]}'")
    return text


#: A time in seconds that may be 0.
Span = Annotated[float, BeforeValidator(parse_seconds)]
#: The value of an option of sbatch or qsub.
_Option = Annotated[Text, AfterValidator(_option)]
_Chunk = Annotated[_Option, AfterValidator(_chunk)]
_Resources = Annotated[
    tuple[Annotated[_Option, AfterValidator(_resource)], ...],
    BeforeValidator(value_types.parse_words),
    value_types.WORDS_SCHEMA,
]
#: Names of nodes, or ranges of them such as n[1-3].
_Nodes = Annotated[tuple[str, ...], BeforeValidator(_nodes), value_types.WORDS_SCHEMA]


class JobsPart(Model):
    """The keys that both sections have."""

    account: _Option = ""
    launcher_options: value_types.Words = ()
    modules: value_types.Words = ()
    container: Text = ""
    container_command: value_types.Words = ("apptainer", "exec")
    prefix: value_types.Words = ()
    before: Text = ""
    after: Text = ""
    templates: Text = ""
    jobs: Annotated[Whole, value_types.require_within(1, 1000)] = 4
    block_time: value_types.Seconds | None = None
    time: value_types.Seconds | None = Field(default=None, description="length of an allocation")
    pending_time: value_types.Seconds | None = None
    poll: value_types.Seconds = 5.0
    late_files: Span = 60.0


class SlurmPart(JobsPart):
    """The section ``slurm``; empty values leave it to the system description or the site."""

    partition: _Option = ""
    qos: _Option = ""
    constraint: _Option = ""
    reservation: _Option = ""
    network: _Option = ""
    gres: _Option = ""
    gpus_per_node: Annotated[Whole, value_types.require_within(0, 1024)] = 0
    cpus_per_rank: Annotated[Whole, value_types.require_within(0, 4096)] = 0
    memory: _Option = ""
    exclusive: Truth | None = None
    launcher: job_request.Launcher = ""
    mpi: SrunMpi = ""
    cpu_bind: Text = ""
    gpu_bind: Text = ""
    uenv: _Option = ""
    view: _Option = ""
    mail_user: _Option = ""
    placement: job_request.Placement = "any"
    exclude: _Nodes = ()


class PbsPart(JobsPart):
    """The section ``pbs``; empty values leave it to the system description or the site."""

    queue: _Option = ""
    chunk: _Chunk = Field(default="", description="resources of each node: ncpus=64:ngpus=4")
    place: _Option = "scatter:excl"
    resources: _Resources = Field(
        default=(), description="options -l of the job: filesystems=home"
    )
    launcher: Literal["", "mpirun", "mpiexec"] = ""
