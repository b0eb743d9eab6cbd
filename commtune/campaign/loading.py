"""Reads a campaign file, checks it, and turns it into a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from commtune.campaign.benchmark import found_words, own_benchmark, with_benchmark
from commtune.campaign.job_keys import JobsPart
from commtune.campaign.jobs import (
    check_asked,
    network_words,
    pin_by_system,
    refuse_by_system,
    request_of,
    system_of,
    without_opened_guards,
)
from commtune.campaign.patterns import as_workload, check_operation
from commtune.campaign.plan import Plan
from commtune.campaign.reference_settings import CampaignSets, TriedFirst, first_within
from commtune.campaign.schema import CampaignFile
from commtune.campaign.timing import MODE_KEYS, TimingChoice
from commtune.campaign.value_types import load_named
from commtune.campaign.workload import DEFAULT_SIZES, check_elements, rounded_words
from commtune.documents.files import noted_reading
from commtune.documents.validation import validate_document
from commtune.documents.yaml_document import Document, is_path, load_document, parse_document
from commtune.errors import CampaignError, InvalidKey, InvalidValue
from commtune.model import Configuration, Estimand, Operation
from commtune.slurm_templates.job_request import JobRequest
from commtune.spaces.building import as_read
from commtune.spaces.catalogue_facts import list_remarks
from commtune.spaces.customizing import customize_space
from commtune.spaces.loading import load_space
from commtune.spaces.reference_additions import unread_here
from commtune.spaces.space import Space
from commtune.systems.schema import System

#: Keys whose values can only be checked where the campaign runs; errors name their lines.
_LOCATED = ("budget", "learn_from", "mpi", "space", "slurm", "pbs", "strategy")


@dataclass(frozen=True)
class CampaignSpec:
    """A campaign file that was read: the plan, and what is needed to run it.

    Attributes:
        mpi: which MPI to use, as ``cluster.mpi.find_mpi`` takes it.
        protected_variables: names of variables that pass unchanged from the controller's
            environment to every run, including those that the system protects.
        job_request: the request for Slurm or PBS; ``None`` for a campaign on this machine.
        system: the description of the system that it runs on.
        lines: line numbers of some of the keys that are in the file.
        reference_settings: the sets that are tried first; the plan has their configurations too.
        learn_from: names of earlier campaigns whose best is tried first; or ``AUTO`` for all.
        learned: the configurations that are tried first for that, each with the campaign that
            found it; the plan has them too.
        remarks: notes for the user before it runs.
        versions: versions of libraries that MPI loads, to which the space was restricted;
            ``None`` if they were not determined.
        sizes_named, budget_named, timing_named: whether the file sets sizes, any budget, and how
            operations are timed.
        timing_choice: how the timing mode was chosen; ``None`` if it was not chosen.
        texts: content of the file and of the files that it names, by absolute path.
    """

    plan: Plan
    mpi: str
    protected_variables: tuple[str, ...]
    job_request: JobRequest | None
    system: System | None
    file: Path | None
    lines: Mapping[str, int]
    reference_settings: tuple[TriedFirst, ...]
    learn_from: tuple[str, ...]
    remarks: tuple[str, ...]
    sizes_named: bool
    budget_named: bool
    timing_named: bool
    learned: Mapping[Configuration, str] = field(default_factory=dict)
    versions: Mapping[str, str] | None = None
    timing_choice: TimingChoice | None = None
    texts: Mapping[str, bytes] = field(default_factory=dict)

    def error_at(self, key: str, message: str, hint: str) -> CampaignError:
        """Returns an error about a key's value, with file and line."""
        return CampaignError(message, file=self.file, line=self.lines.get(key), hint=hint)

    def with_remarks(self, remarks: Iterable[str]) -> CampaignSpec:
        """Returns the campaign with further remarks, without duplicates."""
        return replace(self, remarks=tuple(dict.fromkeys([*self.remarks, *remarks])))

    def with_plan(self, **changes: Any) -> CampaignSpec:
        """Returns the campaign with changed fields of its plan."""
        return replace(self, plan=replace(self.plan, **changes))

    def with_space(self, space: Space, remarks: Iterable[str], why: str) -> CampaignSpec:
        """Returns the campaign with a smaller space, and with what is legal there to try first.

        Args:
            remarks: further notes for the user; duplicates are dropped.
            why: the reason why configurations to try first may have left the space.
        """
        first, gone = first_within(self.plan.first, space, why, self.reference_settings)
        return self.with_plan(space=space, first=first).with_remarks([*remarks, *gone])


def load_campaign(path: Path, copies: Mapping[str, bytes] | None = None) -> CampaignSpec:
    """Reads a campaign file.

    Args:
        copies: contents of files to use in place of those on disk, by absolute path
            (``CampaignSpec.texts``).

    Raises:
        CampaignError, SpaceError, DocumentError: a file is invalid; with file and line.
        UnknownName: there is no such space.
    """
    with noted_reading(copies) as texts:
        spec = _spec(load_document(path, CampaignError), path.parent)
    return replace(spec, texts=texts)


def parse_campaign(text: str, folder: Path) -> CampaignSpec:
    """Reads a campaign from text that is in no file (the embedded default, flags)."""
    return _spec(parse_document(text, None, CampaignError), folder)


def _spec(document: Document, folder: Path) -> CampaignSpec:
    file = with_benchmark(document, validate_document(document, CampaignFile))
    part = file.workload
    system = without_opened_guards(system_of(document, file.system, folder), file.opt_in)
    jobs = _jobs_part(document, file)
    request = request_of(document, jobs, system, nodes=part.nodes, ranks=part.ranks, folder=folder)
    aggressor = file.aggressor.as_aggressor(document, request) if file.aggressor else None
    check_asked(document, jobs, system, request, aggressor)
    built = _build_space(document, file, folder, system)
    plan = replace(_plan(document, file, built, folder), aggressor=aggressor)
    own = own_benchmark(document, file, folder)
    plan = replace(plan, workload=replace(plan.workload, own=own))
    _check_protected(document, file, plan.space)
    # The check takes a while, and shipped spaces have no misspelled names.
    is_own = bool(file.extend) or is_path(file.space)
    said = (
        *(list_remarks(plan.space) if is_own else ()),
        rounded_words(plan.workload),
        found_words(own, uses_scheduler=request is not None),
        network_words(plan.space, request),
    )
    # Variables that the site protects pass unchanged too, even if the file doesn't name them.
    guarded = system.guard if system else ()
    return CampaignSpec(
        plan=plan,
        mpi=file.mpi,
        protected_variables=tuple(dict.fromkeys([*file.protected_variables, *guarded])),
        job_request=request,
        system=system,
        file=document.file,
        lines={key: line for key in _LOCATED if (line := document.lines.get((key,)))},
        reference_settings=built.reference_settings,
        learn_from=file.learn_from,
        remarks=(*built.remarks, *(f"note: {words}" for words in said if words)),
        sizes_named=bool(part.sizes),
        budget_named=bool(file.budget.model_fields_set),
        timing_named=bool(file.timing.model_fields_set & MODE_KEYS)
        or file.estimand is Estimand.P95,
    )


def _jobs_part(document: Document, file: CampaignFile) -> JobsPart | None:
    if file.slurm is not None and file.pbs is not None:
        raise document.error(
            "a campaign has either 'slurm' or 'pbs'", ("pbs",), hint="keep the one that runs here"
        )
    return file.slurm or file.pbs


def _plan(document: Document, file: CampaignFile, built: _CampaignSpace, folder: Path) -> Plan:
    uses_scheduler = file.slurm is not None or file.pbs is not None
    part = file.workload
    try:
        check_elements(part.sizes or DEFAULT_SIZES, part.dtype, part.backend)
    except InvalidValue as error:
        at, named = ("workload", "sizes"), "workload.sizes"
        raise document.error(error.message, at, hint=error.hint, named=named) from error
    with document.placing("workload"):
        measured = as_workload(part, folder, uses_scheduler=uses_scheduler)
    with document.placing("timing"):
        timing = file.timing.as_timing(measured, is_tail=file.estimand is Estimand.P95)
    return Plan(
        name=file.name,
        space=built.space,
        workload=measured,
        timing=timing,
        budget=file.budget.as_budget(document, file.workload.nodes),
        seed=file.seed,
        strategy=file.strategy,
        minimum_gain=file.minimum_gain,
        tolerance=file.tolerance,
        level=file.confidence,
        estimand=file.estimand,
        first=built.first,
        guards=_guards(document, file),
        messages=file.messages,
        time_limit_s=file.run_time_limit,
        shares_launches=file.shared_launches,
    )


def _guards(document: Document, file: CampaignFile) -> tuple[Operation, ...]:
    tuned = file.workload.operation
    if tuned in file.guard_operations:
        usual = (Operation.BROADCAST, Operation.ALLTOALL, Operation.ALLREDUCE)
        others = " and ".join([one for one in usual if one != tuned][:2])
        raise document.error(
            f"{tuned} is the tuned operation; it can't guard itself",
            ("guard_operations", file.guard_operations.index(tuned)),
            hint=f"name other operations, such as {others}",
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
            raise document.error(refused.problem, at, hint=refused.hint) from refused
    return tuple(dict.fromkeys(file.guard_operations))


def _check_protected(document: Document, file: CampaignFile, space: Space) -> None:
    for index, name in enumerate(file.protected_variables):
        if name in space.variables:
            raise document.error(
                f"{name} is searched or pinned by the space, so it can't also pass unchanged",
                ("protected_variables", index),
                hint=f"remove it here, or pin it: 'pin: {{{name}: value}}'",
            )


@dataclass(frozen=True)
class _CampaignSpace:
    """A campaign's space and what is tried first; ``remarks`` say what was left out, and why."""

    space: Space
    first: tuple[Configuration, ...]
    reference_settings: tuple[TriedFirst, ...]
    remarks: tuple[str, ...]


def _build_space(
    document: Document, file: CampaignFile, folder: Path, system: System | None
) -> _CampaignSpace:
    """Builds the space that a file describes, with the configurations to try first.

    It is fitted to the machine later (``space_fitting.fit_campaign``), by its protected variables
    and the versions of its libraries.
    """
    hint = "presets: commtune spaces list"
    space = load_named(document, ("space", "space file"), file.space, folder, load_space, hint)
    space = customize_space(space, extend=file.extend, document=document)
    # Before the file narrows and pins, since it may name a variable that a set adds.
    sets = CampaignSets.choose(
        document, file.reference_settings or (), system, space.library, file.protected_variables
    )
    one_node = file.workload.nodes == 1 and not file.workload.emulate_nodes
    settings = _settings_of(file)
    extended = sets.extend_space(space, settings, one_node=one_node)
    for setting, where in settings.items():
        if refused := refuse_by_system(space, system, setting, file.opt_in):
            raise document.error(refused[0], where, hint=refused[1])
        reason = extended.reasons.get(setting) or unread_here(extended.space, setting[0])
        if reason is not None:
            raise document.error(
                f"{'='.join(setting)} is not in the space: {reason.words}",
                where,
                hint="your own `extend` brings in what you know to be right here",
            )
    opened = sets.list_opened(extended.space, settings, file.opt_in)
    space = customize_space(extended.space, opt_in=opened)
    space = customize_space(
        space, narrow=file.narrow, pin=file.pin, opt_in=file.opt_in, document=document
    )
    # Parameters without an effect on the operation are left unset, unless the file names them.
    named = {*file.narrow, *(name for entry in file.first for name in entry)}
    idle = [n for n in space.without_effect_on(file.workload.operation) if n not in named]
    space = customize_space(space, pin=dict.fromkeys(idle, "unset"))
    # Last, since the system's pins take precedence over the file.
    space = pin_by_system(document, space, system)
    first = _list_first(document, file, space)
    tried = sets.fit(space, extended)
    # After those that the file lists, without duplicates; the default is measured anyway.
    known = dict.fromkeys(one.configuration for one in tried if one.configuration)
    remarks = sets.list_opened_words(opened)
    if file.reference_settings is not None:
        remarks += [*sets.list_remarks(tried, space.library), extended.words(space)]
    return _CampaignSpace(
        space,
        (*first, *(configuration for configuration in known if configuration not in first)),
        tried,
        tuple(filter(None, remarks)),
    )


def _settings_of(file: CampaignFile) -> dict[tuple[str, str], tuple[str | int, ...]]:
    """Returns the settings that a file names for its runs, each with its place in the file."""
    found: dict[tuple[str, str], tuple[str | int, ...]] = {
        (name, value): ("narrow", name) for name, values in file.narrow.items() for value in values
    }
    found |= {item: ("pin", item[0]) for item in file.pin.items()}
    return found | {
        item: ("first", i) for i, entry in enumerate(file.first) for item in entry.items()
    }


def _as_read(entry: Mapping[str, str], space: Space) -> Configuration:
    """Returns a configuration in the spellings of the space, without what is pinned."""
    owners = {p.variables[0]: p for p in space.parameters if len(p.variables) == 1}
    return Configuration(
        {
            name: (as_read(owners[name], value) if name in owners else None) or value
            for name, value in entry.items()
            if space.pinned.get(name) != value
        }
    )


def _list_first(document: Document, file: CampaignFile, space: Space) -> tuple[Configuration, ...]:
    first = tuple(_as_read(entry, space) for entry in file.first)
    for index, configuration in enumerate(first):
        problems = space.check(configuration)
        if problems:
            raise document.error(
                f"this configuration is not in the space: {problems[0]}",
                ("first", index),
                hint=f"see 'commtune spaces show {space.name}', or add the value by 'extend'",
            )
    return tuple(filter(None, first))  # an entry of pinned settings only is the default
