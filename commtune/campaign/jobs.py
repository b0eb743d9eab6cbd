"""Builds the job request of a campaign file, and checks it against the system description."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator

from commtune.campaign import value_types
from commtune.campaign.job_keys import JobsPart, PbsPart, SlurmPart, Span
from commtune.documents.files import resolve_path
from commtune.documents.quantities import parse_bytes
from commtune.documents.yaml_document import Document
from commtune.errors import DocumentError
from commtune.formatting import format_size
from commtune.model import Aggressor, AggressorPattern, JobScheduler
from commtune.paths import is_folder
from commtune.slurm_templates import job_request
from commtune.slurm_templates.launch_command import launch_words
from commtune.slurm_templates.quoting import ShellCode
from commtune.spaces.schema import Model, Whole
from commtune.spaces.space import Space
from commtune.systems.loading import load_system
from commtune.systems.schema import System

#: Fields of a job request by keys of the file with other names.
_RENAMED = {
    name: f"{name}_s" for name in ("time", "block_time", "pending_time", "poll", "late_files")
} | {"queue": "partition"}

#: A protocol of libfabric's cxi provider, and the Slurm option that its jobs need.
_PROTOCOL, _READ, _NETWORK = "FI_CXI_RDZV_PROTO", "alt_read", "disable_rdzv_get"

#: Prefixes of variables for InfiniBand transports, and a fabric that doesn't use these.
_OF_VERBS, _WITHOUT_VERBS = ("NCCL_IB_", "UCX_IB_"), "Slingshot"

#: The most bytes of messages in a rank of an aggressor (docs/benchmark.md).
_MOST_IN_A_RANK = 2**30


_Bytes = Annotated[int, BeforeValidator(parse_bytes)]


class AggressorPart(Model):
    """The section ``aggressor``: deliberate traffic on further nodes during each run."""

    pattern: AggressorPattern
    nodes: Annotated[Whole, value_types.require_within(1, 4096)]
    ranks_per_node: Annotated[Whole, value_types.require_within(1, 1024)] = 1
    message: _Bytes = 128 * 1024
    burst: Span = 0.0
    pause: Span = 0.0

    def as_aggressor(
        self, document: Document, request: job_request.JobRequest | None
    ) -> Aggressor:
        """Returns the traffic that the file describes.

        Raises:
            DocumentError: the campaign doesn't use Slurm, the aggressor has one rank only, or its
                messages are too large for the benchmark.
        """
        if request is None:
            raise document.error(
                "an aggressor needs nodes of its own, from Slurm",
                ("aggressor",),
                hint="add `slurm: {}`, with what your site requires: account, partition",
            )
        ranks = self.nodes * self.ranks_per_node
        if ranks < 2:
            raise document.error(
                "an aggressor of one rank has nobody to send to",
                ("aggressor", "nodes"),
                hint="give it 2 nodes, or 2 ranks_per_node",
            )
        if self.message * ranks > _MOST_IN_A_RANK:
            raise document.error(
                f"messages of {format_size(self.message)} for each of {ranks} ranks are more than "
                f"{format_size(_MOST_IN_A_RANK)} in one rank",
                ("aggressor", "message"),
                hint=f"at most {format_size(_MOST_IN_A_RANK // ranks)}",
            )
        return Aggressor(
            self.pattern, self.nodes, self.ranks_per_node, self.message, self.burst, self.pause
        )


def system_of(document: Document, name: str | None, folder: Path) -> System | None:
    """Loads the system description that the file names, a shipped one or a file."""
    if name is None:
        return None
    hint = "shipped: commtune systems list"
    what = ("system", "system description")
    system = value_types.load_named(document, what, name, folder, load_system, hint)
    if system.scheduler and system.scheduler.kind != "pbs":
        kind = system.scheduler.kind.upper()
        raise document.error(
            f"jobs of {system.name} are run by {kind}, and commtune supports Slurm and PBS only",
            ("system",),
            hint="inside one of your jobs, on one node, a campaign runs without 'system' and "
            "'slurm'",
        )
    return system


def without_opened_guards(system: System | None, opt_in: Sequence[str]) -> System | None:
    """Returns the system without its protection of variables that a campaign opts in to.

    Args:
        opt_in: NAME=VALUE lifts the protection; NAME alone, which means any value, does not.
    """
    opened = {name for name, _, value in (word.partition("=") for word in opt_in) if value}
    if system is None or not opened & system.guard.keys():
        return system
    guard = {name: why for name, why in system.guard.items() if name not in opened}
    return system.model_copy(update={"guard": guard})


def request_of(
    document: Document,
    part: JobsPart | None,
    system: System | None,
    *,
    nodes: int,
    ranks: int,
    folder: Path,
) -> job_request.JobRequest | None:
    """Returns the job request of a campaign; ``None`` if it doesn't use a scheduler.

    Raises:
        DocumentError: nodes don't get equal numbers of ranks, or there are several nodes but no
            scheduler.
    """
    if ranks % nodes:
        raise _uneven(document, nodes, ranks)
    if part is None and system is None:
        if nodes > 1:
            raise document.error(
                f"a campaign on {nodes} nodes needs a scheduler: 'slurm', 'pbs' or 'system'",
                ("workload", "nodes"),
                hint="add `slurm: {}`, with what your site requires: account, partition; or "
                "`pbs: {}`",
            )
        return None
    if part is None:
        # A system without a section is enough: its description has what jobs need.
        part = PbsPart() if system and system.scheduler else SlurmPart()
    scheduler = JobScheduler.PBS if isinstance(part, PbsPart) else JobScheduler.SLURM
    _check_scheduler(document, scheduler, system)
    asked = {_RENAMED.get(name, name): value for name, value in part}
    asked |= {
        "scheduler": scheduler,
        "nodes": nodes,
        "ranks_per_node": ranks // nodes,
        "before": ShellCode(part.before),
        "after": ShellCode(part.after),
        "templates": _templates(document, scheduler, part.templates, folder),
        "container": _image(part.container, folder),
    }
    return job_request.JobRequest(**asked)


def _check_scheduler(document: Document, asked: JobScheduler, system: System | None) -> None:
    if system is None:
        return
    has = JobScheduler.PBS if system.scheduler else JobScheduler.SLURM
    if asked is not has:
        raise document.error(
            f"jobs of {system.name} are run by {has.label}, not by {asked.label}",
            (asked,),
            hint=f"write '{has}' in the place of '{asked}'",
        )


def pin_by_system(document: Document, space: Space, system: System | None) -> Space:
    """Returns the space with the variables that the system pins for its library.

    Raises:
        DocumentError: the campaign searches such a variable or pins it to another value, or it
            searches or pins one that the system protects.
    """
    if system is None:
        return space
    searched = {v: p.name for p in space.parameters for v in p.variables}
    for name, guard in system.guard.items():
        if name in searched or name in space.pinned:
            raise document.error(
                f"{name} is protected on {system.name}: {guard.why.strip()}",
                ("pin", name) if name in space.pinned else ("system",),
                hint=_way_past_a_guard(space, name, searched.get(name)),
            )
    pins = job_request.pinned_variables(system, {space.library})
    for name, value in pins.items():
        _check_pin(document, space, system, name, value, searched.get(name))
    return replace(space, pinned={**space.pinned, **pins}) if pins else space


def refuse_by_system(
    space: Space, system: System | None, setting: tuple[str, str], opt_in: Sequence[str]
) -> tuple[str, str] | None:
    """Returns why a system forbids a setting that a campaign names, and what to do about it.

    ``None`` if the system doesn't forbid it, and for parameters that the space searches.
    """
    name, value = setting
    if system is None or name in space.by_name or name in space.pinned:
        return None
    opened = any(word.startswith(f"{name}=") for word in opt_in)
    if name in system.guard and name in space.left_out and not opened:
        return (
            f"{name} is protected on {system.name}: {system.guard[name].why.strip()}",
            f'if the site agrees: opt_in: ["{name}={value}"]',
        )
    fabric = system.network.fabric
    if name.startswith(_OF_VERBS) and fabric.startswith(_WITHOUT_VERBS):
        return (
            f"{name} is without effect on {system.name}: the verbs transport reads it, and the "
            f"network is {fabric}",
            "leave it out",
        )
    return None


def _way_past_a_guard(space: Space, name: str, found: str | None) -> str:
    if found is None:
        return "remove it from the pins"
    if space.by_name[found].opt_in:
        return f'name the values that the site allows: opt_in: ["{name}=VALUE"]'
    return f"leave it to the site: pin: {{{found}: unset}}"


def network_words(space: Space, request: job_request.JobRequest | None) -> str:
    """Returns a remark if settings have no effect without a Slurm option; else empty."""
    parameter = space.by_name.get(_PROTOCOL)
    values = [*(parameter.values if parameter else ()), space.pinned.get(_PROTOCOL)]
    if request is None or _READ not in values or _NETWORK in request.network:
        return ""
    return (
        f"{_PROTOCOL}={_READ} is ignored in jobs that were not started for it: "
        f"add slurm: {{network: {_NETWORK}}}"
    )


def check_asked(
    document: Document,
    part: JobsPart | None,
    system: System | None,
    request: job_request.JobRequest | None,
    aggressor: Aggressor | None,
) -> None:
    """Refuses requests that the system or the launcher doesn't allow."""
    if request is None:
        return
    if part and not request.container and "container_command" in part.model_fields_set:
        raise document.error(
            "a container command without a container",
            (request.scheduler, "container_command"),
            hint="add `container: IMAGE`",
        )
    if request.view and not request.uenv:
        raise document.error(
            "a view without a uenv", ("slurm", "view"), hint="add `uenv: NAME/VERSION:TAG`"
        )
    nodes = request.nodes + (aggressor.nodes if aggressor else 0)
    try:
        job_request.check_request(system, replace(request, nodes=nodes), request.time_s)
        launch_words(system, request, ("program",), first_node=0 if aggressor else None)
    except job_request.InvalidRequest as error:
        key = {"time_s": "time"}.get(error.key, error.key)
        where = ("workload" if key == "nodes" else request.scheduler, key)
        raise document.error(error.message, where, hint=error.hint) from error


def _check_pin(
    document: Document, space: Space, system: System, name: str, value: str, searched: str | None
) -> None:
    if searched is not None:
        raise document.error(
            f"{system.name} pins {name} to {value}, and space {space.name} searches it",
            ("system",),
            hint=f"remove it from the search: pin: {{{searched}: {value}}}",
        )
    where: tuple[str, ...] = ("pin", name)
    is_written = where in document.lines
    here = space.pinned.get(name, "be unset" if is_written else value)
    if here != value:
        raise document.error(
            f"{system.name} pins {name} to {value}, and here it is pinned to {here}",
            where if is_written else ("system",),
            hint=f"write {value}, or describe the system in a file of your own",
        )


def _uneven(document: Document, nodes: int, ranks: int) -> DocumentError:
    less = ranks // nodes * nodes
    near = f"{less} or {less + nodes}" if less else f"{nodes}"
    where = ("workload", "ranks")
    return document.error(
        f"{ranks} ranks can't be divided evenly among {nodes} nodes",
        where if where in document.lines else ("workload", "nodes"),
        hint=f"nearest: ranks: {near}",
    )


def _templates(document: Document, key: str, written: str, folder: Path) -> Path | None:
    if not written:
        return None
    with document.placing(key, "templates"):
        path = Path(os.path.realpath(resolve_path(written, folder)))
        if not is_folder(path):
            raise document.error(
                f"there is no folder of templates {path}",
                (key, "templates"),
                hint="paths start at the campaign file's folder",
            )
    return path


def _image(written: str, folder: Path) -> str:
    # A name without ./ may be anything that the container command knows, so it stays.
    return os.path.realpath(folder / written) if written.startswith(("./", "../")) else written
