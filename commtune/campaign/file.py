"""The campaign file: what a user writes, checked, and turned into a plan."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from commtune.campaign import reference_settings
from commtune.campaign.benchmark import BenchmarkPart, found_words, own_benchmark, with_benchmark
from commtune.campaign.budget import BudgetPart, budget_of
from commtune.campaign.invalid_key import InvalidKey
from commtune.campaign.patterns import check_operation
from commtune.campaign.plan import Plan
from commtune.campaign.slurm import (
    AggressorPart,
    SlurmPart,
    aggressor_of,
    check_asked,
    system_of,
    wish_of,
    with_pins,
)
from commtune.campaign.timing import TimingPart, timing_of
from commtune.campaign.values import Level, Seconds, Share, require_within
from commtune.campaign.workload import WorkloadPart, parse_sizes, rounded_words, workload_of
from commtune.documents.nearest import quote_value
from commtune.errors import CampaignError, UnknownName
from commtune.model import Aggressor, Configuration, Operation
from commtune.slurm_templates import JobRequest
from commtune.spaces import (
    CustomizationDocument,
    Document,
    QuantityError,
    Space,
    Text,
    VersionOne,
    Whole,
    load_document,
    load_space,
    parse_document,
    validate_document,
)
from commtune.spaces.growing import GrownSpace
from commtune.systems import System
from commtune.systems.reference_settings import ReferenceSettings

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def _campaign_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise QuantityError(
            f"{quote_value(name)} can't name a campaign",
            hint="use letters, digits and . _ -, 64 at most; begin with a letter or digit",
        )
    return name


_Assignment = dict[str, Text]


def _messages(written: object) -> dict[int, float]:
    """A histogram of message sizes: counts by size in bytes."""
    if not isinstance(written, dict):
        raise QuantityError("no histogram", hint="write it like {64KiB: 1000, 1MiB: 20}")
    found: dict[int, float] = {}
    for size, count in written.items():
        sizes = parse_sizes(size)
        if len(sizes) != 1:
            raise QuantityError(f"{quote_value(size)} is no one size", hint="a line for each size")
        is_number = isinstance(count, int | float) and not isinstance(count, bool)
        if not (is_number and 0 < count < math.inf):
            raise QuantityError(
                f"{quote_value(count)} is no number of messages", hint="write a number above 0"
            )
        (bytes_,) = sizes
        found[bytes_] = found.get(bytes_, 0.0) + count
    return found


class CampaignFile(CustomizationDocument):
    """The whole file."""

    campaign: VersionOne
    name: Annotated[str, AfterValidator(_campaign_name)]
    space: str
    mpi: str = "auto"
    benchmark: BenchmarkPart | None = None
    workload: WorkloadPart = WorkloadPart()
    timing: TimingPart = TimingPart()
    budget: BudgetPart = BudgetPart()
    seed: Annotated[Whole, require_within(0, 2**31 - 1)] = 1
    minimum_gain: Share = 0.02
    tolerance: Share = 0.05
    confidence: Level = 0.95
    first: tuple[_Assignment, ...] = ()
    baselines: Annotated[
        tuple[str, ...] | None,
        BeforeValidator(reference_settings.as_listed),
        WithJsonSchema({"anyOf": [{"const": "auto"}, {"type": "array"}]}),
    ] = None
    guard_operations: tuple[Operation, ...] = ()
    guard_variables: tuple[str, ...] = ()
    messages: Annotated[dict[int, float], BeforeValidator(_messages)] = Field(
        default_factory=dict, description="how many messages of each size your programs send"
    )
    run_time_limit: Seconds | None = None
    system: str | None = None
    slurm: SlurmPart | None = None
    aggressor: AggressorPart | None = None


@dataclass(frozen=True)
class CampaignSpec:
    """A campaign file, read: the plan, and what wiring needs beside it.

    Attributes:
        mpi: which MPI, as ``cluster.mpi.find_mpi`` understands it.
        guard_variables: names that pass from the controller's environment to every run.
            Those that the system guards are among them.
        slurm: what is asked of Slurm; ``None`` for a campaign on this machine.
        system: the description of the system that it runs on.
        file: the file itself.
        mpi_line, space_line, slurm_line: where the file says which MPI and space, and what of
            Slurm.
        baselines: named sets, as far as they are tried first; the plan has them too.
        remarks: what is to be said of it before it runs.
        versions: of libraries that MPI loads by itself, which its space was cut to; ``None``
            where nobody asked for any.
    """

    plan: Plan
    mpi: str
    guard_variables: tuple[str, ...] = ()
    mpi_line: int | None = None
    slurm: JobRequest | None = None
    system: System | None = None
    file: Path | None = None
    space_line: int | None = None
    slurm_line: int | None = None
    baselines: tuple[reference_settings.TriedFirst, ...] = ()
    remarks: tuple[str, ...] = ()
    versions: Mapping[str, str] | None = None

    @property
    def aggressor(self) -> Aggressor | None:
        """Traffic on purpose, beside the runs."""
        return self.plan.aggressor


def load_campaign(path: Path) -> CampaignSpec:
    """Reads a campaign file.

    Raises:
        CampaignError, SpaceError, DocumentError: what is wrong, with file and line.
        UnknownName: no such space.
    """
    return _spec(load_document(path, CampaignError), path.parent)


def parse_campaign(text: str, folder: Path) -> CampaignSpec:
    """Reads a campaign from text that no file holds (the embedded default, flags)."""
    return _spec(parse_document(text, None, CampaignError), folder)


def _spec(document: Document, folder: Path) -> CampaignSpec:
    file = with_benchmark(document, validate_document(document, CampaignFile))
    part = file.workload
    system = system_of(document, file.system, folder)
    wish = wish_of(document, file.slurm, system, nodes=part.nodes, ranks=part.ranks, folder=folder)
    aggressor = aggressor_of(document, file.aggressor, wish)
    check_asked(document, file.slurm, system, wish, aggressor)
    sets, larger = _with_baselines(document, file, folder, system)
    space = with_pins(document, _space(document, file, larger.space), system)
    plan = replace(_plan(document, file, space, folder), aggressor=aggressor)
    own = own_benchmark(document, file, folder)
    plan = replace(plan, workload=replace(plan.workload, own=own))
    guards = _guard_variables(document, file, plan.space)
    tried = reference_settings.fit_sets(sets, space, system, file.guard_variables, larger)
    remarks = _of_baselines(file, sets, tried, system, space, larger)
    rounded, ran = rounded_words(plan.workload), found_words(own, on_slurm=wish is not None)
    return CampaignSpec(
        plan=replace(plan, first=_in_order(plan.first, tried)),
        mpi=file.mpi,
        guard_variables=tuple(dict.fromkeys([*guards, *(system.guard if system else ())])),
        mpi_line=document.line_of(("mpi",)),
        slurm=wish,
        system=system,
        file=document.file,
        space_line=document.line_of(("space",)),
        slurm_line=document.line_of(("slurm",)),
        baselines=tried,
        remarks=(*remarks, *(f"note: {words}" for words in (rounded, ran) if words)),
    )


def _with_baselines(
    document: Document, file: CampaignFile, folder: Path, system: System | None
) -> tuple[tuple[ReferenceSettings, ...], GrownSpace]:
    """The named sets that are tried first, and the space as extended by the file and for them."""
    space = _named_space(document, file.space, folder)
    space = space.customized(extend=file.extend, document=document)
    if file.baselines is None:
        return (), GrownSpace(space)
    sets = reference_settings.choose_sets(document, file.baselines, system, space.library)
    guards = file.guard_variables
    one_node = file.workload.nodes == 1 and not file.workload.emulate_nodes
    return sets, reference_settings.space_for(sets, space, system, guards, one_node=one_node)


def _of_baselines(
    file: CampaignFile,
    sets: tuple[ReferenceSettings, ...],
    tried: tuple[reference_settings.TriedFirst, ...],
    system: System | None,
    space: Space,
    larger: GrownSpace,
) -> tuple[str, ...]:
    """What is to be said of the named sets."""
    if file.baselines is None:
        return ()
    said = reference_settings.set_remarks(sets, tried, system, space.library)
    words = larger.words(space)
    return (*said, words) if words else said


def _in_order(
    first: tuple[Configuration, ...], tried: tuple[reference_settings.TriedFirst, ...]
) -> tuple[Configuration, ...]:
    """What the file lists itself, then what named sets come to; each once, never the default."""
    known = [one.configuration for one in tried if one.configuration]
    return (*first, *(c for c in dict.fromkeys(known) if c not in first))


def _plan(document: Document, file: CampaignFile, space: Space, folder: Path) -> Plan:
    measured = workload_of(document, file.workload, folder, on_slurm=file.slurm is not None)
    return Plan(
        name=file.name,
        space=space,
        workload=measured,
        timing=timing_of(document, file.timing, measured),
        budget=budget_of(document, file.budget, file.workload.nodes),
        seed=file.seed,
        minimum_gain=file.minimum_gain,
        tolerance=file.tolerance,
        level=file.confidence,
        first=_first(document, file, space),
        guards=_guards(document, file),
        messages=file.messages,
        time_limit_s=file.run_time_limit,
    )


def _space(document: Document, file: CampaignFile, extended: Space) -> Space:
    space = extended.customized(
        narrow=file.narrow, pin=file.pin, opt_in=file.opt_in, document=document
    )
    named = {*file.narrow, *(name for entry in file.first for name in entry)}
    idle = [n for n in space.without_effect_on(file.workload.operation) if n not in named]
    return space.customized(pin=dict.fromkeys(idle, "unset"))


def _named_space(document: Document, name: str, folder: Path) -> Space:
    if "/" in name or name.endswith((".yaml", ".yml")):
        if not (folder / name).exists():
            raise document.error(
                f"there is no space file {folder / name}",
                ("space",),
                hint="paths start at the campaign file's folder; presets: commtune spaces list",
            )
        return load_space(folder / name)
    try:
        return load_space(name)
    except UnknownName as error:
        raise document.error(error.message, ("space",), hint=error.hint) from error


def _first(document: Document, file: CampaignFile, space: Space) -> tuple[Configuration, ...]:
    configurations = tuple(Configuration(entry) for entry in file.first)
    for index, configuration in enumerate(configurations):
        problems = space.check(configuration)
        if problems:
            raise document.error(
                f"this configuration is not in the space: {problems[0]}",
                ("first", index),
                hint=f"see 'commtune spaces show {space.name}', or add the value by 'extend'",
            )
    return configurations


def _guards(document: Document, file: CampaignFile) -> tuple[Operation, ...]:
    tuned = file.workload.operation
    if tuned in file.guard_operations:
        raise document.error(
            f"{tuned} is the operation that is tuned, it can't guard itself",
            ("guard_operations", file.guard_operations.index(tuned)),
            hint=f"name other operations, such as {_other_guards(tuned)}",
        )
    for index, guard in enumerate(file.guard_operations):
        if guard.is_pattern:
            raise document.error(
                f"{guard} needs more than a size, or has no time of the whole: it can't guard",
                ("guard_operations", index),
                hint="name others, such as alltoall, or give it a campaign of its own",
            )
        try:
            check_operation(guard, file.workload.backend, "guard_operations")
        except InvalidKey as refused:
            at = ("guard_operations", index)
            raise document.error(refused.message, at, hint=refused.hint) from refused
    return tuple(dict.fromkeys(file.guard_operations))


def _other_guards(tuned: Operation) -> str:
    usual = (Operation.BROADCAST, Operation.ALLTOALL, Operation.ALLREDUCE)
    return " and ".join([one for one in usual if one != tuned][:2])


def _guard_variables(document: Document, file: CampaignFile, space: Space) -> tuple[str, ...]:
    searched: Sequence[str] = space.variables
    for index, name in enumerate(file.guard_variables):
        if name in searched:
            raise document.error(
                f"{name} is searched or pinned by the space, so it can't pass unchanged too",
                ("guard_variables", index),
                hint=f"take it out here, or pin it: 'pin: {{{name}: value}}'",
            )
    return file.guard_variables
