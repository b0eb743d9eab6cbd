"""``commtune tune``."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from commtune import formatting as text
from commtune.app.campaigns.tuning import (
    CampaignResult,
    prepare_campaign,
    replay_campaign,
    tune_campaign,
)
from commtune.campaign.loading import CampaignSpec, load_campaign, parse_campaign
from commtune.commands import options as flags
from commtune.commands.campaigns.progress import open_reporter
from commtune.commands.campaigns.summary import campaign_data, campaign_summary
from commtune.db.connection.location import database_url, shown_url
from commtune.documents.quantities import QuantityError, format_seconds, parse_seconds
from commtune.errors import AllocationOver, CampaignError, DatabaseFault, UserError
from commtune.interrupts import is_time_nearly_over
from commtune.model import Backend, MpiInstallation, Operation, content_key
from commtune.replay.benchmark import Grid, load_grid
from commtune.report.replicated_findings import (
    ReplicatedFinding,
    replicate_findings,
    replication_lines,
)
from commtune.wiring import benchmark_setup, campaign_control, space_fitting
from commtune.wiring.submitted_files import given_copies

#: First words of everything that a replayed campaign says.
_REPLAYED = "replayed from the recording {}: says nothing about this machine"

#: A budget that is large for a campaign of flags.
_LARGER = {"--search": "5min", "--ablate": "2min", "--confirm": "3min"}
#: Keys of a campaign file that have no flag.
_WITHOUT_FLAG = ("campaign", "workload", "budget")


def tune_command(
    campaign: Annotated[
        Path | None,
        typer.Argument(help="campaign file; without one, the options describe the campaign"),
    ] = None,
    op: flags.OpOption = None,
    ranks: flags.RanksOption = None,
    sizes: flags.SizesOption = None,
    space: Annotated[str | None, typer.Option(help="search space: a preset or a file")] = None,
    mpi: flags.MpiOption = None,
    search: Annotated[
        str | None, typer.Option(help="wall time of the search [50s or more]")
    ] = None,
    ablation: Annotated[
        str | None,
        typer.Option(
            "--ablate", help="wall time of the ablation, which removes unneeded variables [20s]"
        ),
    ] = None,
    confirmation: Annotated[
        str | None, typer.Option("--confirm", help="wall time of the confirmation [30s]")
    ] = None,
    trials: Annotated[
        int | None, typer.Option(help="maximum number of configurations to try")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="seed of the search [1]")] = None,
    minimum_gain: Annotated[
        str | None, typer.Option(help="smallest speedup worth recommending [2%]")
    ] = None,
    guard: Annotated[
        list[str] | None, typer.Option(help="another operation that profiles must not slow down")
    ] = None,
    name: Annotated[str | None, typer.Option(help="name of the campaign")] = None,
    backend: flags.BackendOption = None,
    db: flags.DbOption = None,
    json_output: flags.JsonOption = False,
    take_over: flags.TakeOverOption = False,
    replay: Annotated[
        Path | None, typer.Option(help="replay this recording instead of measuring")
    ] = None,
) -> None:
    """Tune a workload: search, ablate, confirm, store profiles. Run it again to resume."""
    document = _given_keys(
        name=name, space=space, mpi=mpi,
        workload=_given_keys(operation=op, ranks=ranks, sizes=sizes, backend=backend),
        budget=_given_keys(
            search=search, ablation=ablation, confirmation=confirmation, trials=trials
        ),
        seed=seed, minimum_gain=minimum_gain, guard_operations=guard or (),
    )  # fmt: skip
    grid = None if replay is None else load_grid(replay)
    spec, mpi_found = campaign_control.when_usable(
        partial(_campaign, campaign, document, grid, database_url(db)),
        _say_at_once,
    )
    result = _tune(spec, mpi_found, grid, db, take_over=take_over)
    replicated, where = _replicated(spec, result), flags.shown_database(db)
    if json_output:
        data = campaign_data(spec.plan, result, where)
        data["replayed"] = grid.header.name if grid else ""
        flags.print_json({**data, "findings": [one.data() for one in replicated]})
        return
    system = spec.system.name if spec.system else ""
    said = replication_lines(replicated, system, "replayed" if grid else "")
    if grid:
        print(_REPLAYED.format(grid.header.name))
    print(
        campaign_summary(
            spec.plan, result, where=where, again=_again(campaign, replay, db),
            found="\n  ".join(said), db=db,
        )
    )  # fmt: skip


def _say_at_once(words: str) -> None:
    """Says why the start takes long, if that finds room."""
    with suppress(OSError):
        print(words, file=sys.stderr, flush=True)


def _tune(
    spec: CampaignSpec,
    mpi: MpiInstallation | None,
    grid: Grid | None,
    db: str | None,
    *,
    take_over: bool,
) -> CampaignResult:
    """Runs the campaign, or plays the recording back; ``mpi`` is of no use to that."""
    with (
        _ended_cleanly(spec, db),
        open_reporter() as tell,
        campaign_control.opened_database(db, tell.say) as opened,
    ):
        if grid is not None:
            tell.say(_REPLAYED.format(grid.header.name))
        end = "" if grid is not None or spec.slurm is not None else _end(spec)
        tell.say(f"{spec.plan.name}: {_outlook(spec)}{end}")
        for warning in opened.warnings:
            tell.say(f"note: {warning}")
        if grid is not None:
            return replay_campaign(spec, grid, opened, tell, take_over=take_over)
        assert mpi is not None
        return tune_campaign(spec, mpi, opened, tell, take_over=take_over)


def _campaign(
    file: Path | None, document: Mapping[str, Any], grid: Grid | None, url: str
) -> tuple[CampaignSpec, MpiInstallation | None]:
    """The campaign of a file, else of the flags, else the recording's own; and its MPI."""
    if document and (file is not None or grid is not None):
        _refuse_flags(_first_flag(document), file)
    if grid is not None:
        if file is not None:
            return load_campaign(file), None
        # Under another name: the recorded campaign may be in the same database.
        spec = parse_campaign(grid.header.campaign, Path.cwd())
        plan = replace(spec.plan, name=f"{spec.plan.name[:55]}-replayed")
        return replace(spec, plan=plan), None
    spec = (
        load_campaign(file, given_copies(os.environ))
        if file is not None
        else _from_flags(document, url)
    )
    return prepare_campaign(spec, url)


def _refuse_flags(flag: str, file: Path | None) -> NoReturn:
    if file is not None:
        raise UserError(
            f"{flag} and a campaign file can't be combined",
            hint=f"change it in {file}, or leave the file out and describe all by flags",
        )
    raise UserError(
        f"{flag} and a recording can't be combined",
        hint="name a campaign file too; without one, the recording's own is replayed",
    )


def _given_keys(**values: Any) -> dict[str, Any]:
    """What was given: neither ``None``, nor empty."""
    return {name: value for name, value in values.items() if value not in (None, {}, ())}


def _first_flag(document: Mapping[str, Any]) -> str:
    """The first flag that was given; empty where none was."""
    for key, value in document.items():
        return _first_flag(value) if isinstance(value, dict) else flags.flag_of(key)
    return ""


def _from_flags(document: Mapping[str, Any], url: str) -> CampaignSpec:
    mpi = benchmark_setup.find_named_mpi(document.get("mpi", "auto"))
    workload = document.get("workload", {})
    backend = workload.get("backend", Backend.MPI_HOST)
    flags.word_flag("--backend", backend, list(Backend))
    known = space_fitting.library_words(backend, mpi).replace(" ", "-")
    if "space" in document:
        return quick_campaign(document, document["space"], known)
    chosen = space_fitting.preset_for(mpi, workload.get("operation", "allreduce"), backend)
    spec = quick_campaign(document, chosen, known)
    begun = space_fitting.preset_begun_with(url, spec.plan.name, chosen)
    if begun == chosen:
        return spec
    goes_on = f"note: {spec.plan.name} continues with space {begun}, which it was started with"
    again = f"a new campaign would use {chosen}"
    return quick_campaign(document, begun, known).with_remarks([f"{goes_on}; {again}"])


def quick_campaign(document: Mapping[str, Any], space: str, library: str) -> CampaignSpec:
    """The campaign that flags describe, the rest as the embedded default has it.

    Args:
        document: what was given, in the keys of a campaign file.
        space: the space to use where none was given.
        library: what is tuned, with its version, for the campaign's name.
    """
    workload = dict(document.get("workload", {}))
    if workload.get("operation") == Operation.MATRIX:
        raise UserError(
            "--op matrix needs a file of messages, which only a campaign file names",
            hint="'commtune init' writes one; add `workload: {operation: matrix, matrix: FILE}`",
        )
    sizes = workload.get("sizes")
    if sizes is not None and ".." not in sizes:
        workload["sizes"] = [part.strip() for part in sizes.split(",") if part.strip()]
    default = {"campaign": 1, "name": _name(document, workload, library), "space": space}
    whole = {**default, **document, "workload": workload}
    try:
        # JSON is YAML; so a wrong flag meets the same checks as a wrong file.
        return parse_campaign(json.dumps(whole), Path.cwd())
    except CampaignError as error:
        raise UserError(_by_flag(error), hint=error.hint) from error


def _by_flag(error: CampaignError) -> str:
    """The message with the flag's name in the place of the key's in a file."""
    keys = [step for step in error.where if isinstance(step, str)]
    is_flag = error.named and keys and keys[-1] not in _WITHOUT_FLAG
    return f"{flags.flag_of(keys[-1])}: {error.problem}" if is_flag else error.message


def _name(document: Mapping[str, Any], workload: Mapping[str, Any], library: str) -> str:
    """The same flags give the same name, so that calling again continues."""
    parts = [workload.get("operation", "allreduce"), library, f"s{document.get('seed') or 1}"]
    if extra := {**workload, **_given_keys(space=document.get("space"))}:
        parts.append(content_key(extra)[:4])
    return "-".join(parts)


def _replicated(spec: CampaignSpec, result: CampaignResult) -> tuple[ReplicatedFinding, ...]:
    """What papers found on the described system, held against what was measured now."""
    plan = spec.plan
    if spec.system is None or plan.beside or plan.emulated:
        return ()
    workload = plan.workload
    return replicate_findings(
        result.conclusion,
        system=spec.system.name,
        library=plan.space.library,
        operation=str(workload.operation),
        nodes=workload.nodes,
        pinned=plan.space.pinned,
    )


def _again(campaign: Path | None, replay: Path | None, db: str | None) -> str:
    """The command that goes on with a larger budget, with all that was asked for this time."""
    program = flags.called_as()
    if campaign is not None or replay is not None:
        from_file = ["--replay", str(replay)] if replay else []
        command = shlex.join([program, "tune", str(campaign or "CAMPAIGN.yaml"), *from_file])
        return f"{command}{flags.database_flag(db)}   (with a larger 'budget' in the file)"
    return shlex.join([program, *map(shown_url, _with_budget(sys.argv[1:]))])


def _with_budget(arguments: Sequence[str]) -> list[str]:
    """The arguments of a command line with a larger budget in the place of theirs."""
    kept: list[str] = []
    larger = dict(_LARGER)
    words = iter(arguments)
    for word in words:
        option, equals, written = word.partition("=")
        if option in _LARGER:
            larger[option] = _larger(written if equals else next(words, ""), _LARGER[option])
        else:
            kept.append(word)
    return [*kept, *(word for option in larger.items() for word in option)]


def _larger(written: str, usual: str) -> str:
    """What is larger than the time that was given: the usual one, or else twice as much."""
    try:
        doubled = 2 * parse_seconds(written)
    except QuantityError:
        return usual  # nothing was given behind the option
    if doubled < 2 * parse_seconds(usual):
        return usual
    return format_seconds(doubled).replace(" ", "")


def _outlook(spec: CampaignSpec) -> str:
    plan = spec.plan
    return (
        f"{plan.workload.operation}, "
        f"{text.format_ranks(plan.workload.ranks, plan.workload.nodes)}, "
        f"{text.format_count(len(plan.workload.sizes), 'size')}, "
        f"{text.format_many(plan.space.count())} configurations; "
        f"budget: search {plan.budget.search_s:g} s, "
        f"ablation {plan.budget.ablation_s:g} s, confirmation {plan.budget.confirmation_s:g} s"
    )


def _end(spec: CampaignSpec) -> str:
    """When it will be over, by the clock."""
    end = datetime.now().astimezone() + timedelta(seconds=spec.plan.budget.whole_s)
    return f", until about {end:%H:%M}"


@contextmanager
def _ended_cleanly(spec: CampaignSpec, db: str | None) -> Iterator[None]:
    """Says how to continue a campaign that was interrupted, or whose database went away."""
    try:
        yield
    except KeyboardInterrupt:
        if is_time_nearly_over():
            _next_job_continues("the time of this job is nearly over")
        program, name, there = flags.called_as(), spec.plan.name, flags.database_flag(db)
        jobs = (
            f"\n  jobs continue; '{program} cancel {name}{there}' ends them" if spec.slurm else ""
        )
        print(
            f"commtune: interrupted; everything measured is kept\n"
            f"  the same command continues {name}; '{program} status{there}' shows it{jobs}",
            file=sys.stderr,
        )
        sys.exit(130)
    except AllocationOver as over:
        _next_job_continues(over.message)
    except DatabaseFault as fault:
        kept = "runs keep their record files; once that is fixed, the same command continues"
        raise DatabaseFault(fault.message, hint=f"{fault.hint}\n{kept}".strip()) from fault


def _next_job_continues(why: str) -> NoReturn:
    print(f"commtune: {why}; everything measured is kept", file=sys.stderr)
    sys.exit(0)
