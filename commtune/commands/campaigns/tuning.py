"""A campaign of ``commtune tune``: made from a file or from flags, run, and told of."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

from commtune import formatting as text
from commtune.app.campaigns.preparing import prepare_campaign
from commtune.app.campaigns.stored import is_unfinished
from commtune.app.campaigns.tuning import CampaignResult, replay_campaign, tune_campaign
from commtune.campaign.loading import CampaignSpec, load_campaign, parse_campaign
from commtune.commands import options as flags
from commtune.commands.campaigns.progress import open_reporter
from commtune.commands.campaigns.summary import campaign_data, campaign_summary
from commtune.db.connection.location import database_url
from commtune.documents.nearest import require_known
from commtune.errors import AllocationOver, DatabaseFault, UserError
from commtune.interrupts import is_time_nearly_over
from commtune.model import Backend, MpiInstallation, Operation, content_key
from commtune.replay.recording import Grid, load_grid
from commtune.report.earlier_campaigns import describe_learned
from commtune.report.replicated_findings import (
    ReplicatedFinding,
    replicate_findings,
    replication_lines,
)
from commtune.wiring import benchmark_setup, campaign_control, space_fitting
from commtune.wiring.job_handover import given_copies

#: First words of everything that a replayed campaign says.
_REPLAYED = "replayed from the recording {}: says nothing about this machine"


def run_campaign(
    campaign: Path | None,
    document: Mapping[str, Any],
    replay: Path | None,
    db: str | None,
    *,
    again: str,
    json_output: bool,
    take_over: bool,
) -> None:
    """Runs a campaign, or plays a recording back, and prints what came of it.

    Args:
        campaign: its file; without one, the document or the recording describes it.
        document: what was given by flags, in the keys of a campaign file.
        again: the command that continues it; if it was given by flags, its budget is doubled here.
    """
    grid = None if replay is None else load_grid(replay)
    spec, mpi_found = campaign_control.when_usable(
        lambda _: _campaign(campaign, document, grid, database_url(db)),
        _say_at_once,
    )
    result = _tune(spec, mpi_found, grid, db, take_over=take_over)
    replicated, where = _replicated(spec, result), flags.shown_database(db)
    learned = describe_learned(spec.learned, result.profiles)
    if json_output:
        data = campaign_data(spec.plan, result, where)
        data["replayed"] = grid.header.name if grid else ""
        findings = [one.data() for one in replicated]
        flags.print_json({**data, "findings": findings, "learned": learned})
        return
    system = spec.system.name if spec.system else ""
    if campaign is None and grid is None:  # of a repeated option, the last one counts
        more = spec.plan.budget
        again += f" --search {2 * more.search_s:.0f}s --confirm {2 * more.confirmation_s:.0f}s"
    said = replication_lines(replicated, system, "replayed" if grid else "")
    if grid:
        print(_REPLAYED.format(grid.header.name))
    print(
        campaign_summary(
            spec.plan, result, where=where, again=again,
            found="\n\n".join(filter(None, ["\n  ".join(said), learned])), db=db,
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
        campaign_control.open_when_usable(db, tell.say) as opened,
    ):
        if grid is not None:
            tell.say(_REPLAYED.format(grid.header.name))
        end = "" if grid is not None or spec.job_request is not None else _end(spec)
        outlook = f"{spec.plan.name}: {_outlook(spec)}{end}"
        spec = replace(spec, remarks=(outlook, *spec.remarks))
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
        what = "a recording"
        hint = "name a campaign file too; without one, the recording's own is replayed"
        if file is not None:
            what = "a campaign file"
            hint = f"change it in {file}, or leave the file out and describe all by flags"
        raise UserError(f"{_first_flag(document)} and {what} can't be combined", hint=hint)
    if grid is not None:
        if file is not None:
            return load_campaign(file), None
        # Under another name: the recorded campaign may be in the same database.
        spec = parse_campaign(grid.header.campaign, Path.cwd())
        return spec.with_plan(name=f"{spec.plan.name[:55]}-replayed"), None
    spec = (
        load_campaign(file, given_copies(os.environ))
        if file is not None
        else _from_flags(document, url)
    )
    return prepare_campaign(spec, url, _say_at_once)


def given_keys(**values: Any) -> dict[str, Any]:
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
    require_known("--backend", backend, list(Backend))
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
    with flags.documents_are_flags():
        # JSON is YAML; so a wrong flag meets the same checks as a wrong file.
        return parse_campaign(json.dumps(whole), Path.cwd())


def _name(document: Mapping[str, Any], workload: Mapping[str, Any], library: str) -> str:
    """The same flags give the same name, so that calling again continues."""
    parts = [workload.get("operation", "allreduce"), library, f"s{document.get('seed') or 1}"]
    named = given_keys(space=document.get("space"), timing=document.get("timing"))
    if extra := {**workload, **named}:
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
        jobs = f"\n  jobs continue; '{program} cancel {name}{there}' ends them"
        jobs = jobs if spec.job_request else ""
        kept = (
            f"everything measured is kept\n"
            f"  the same command continues {name}; '{program} status{there}' shows it{jobs}"
        )
        with suppress(DatabaseFault):
            kept = kept if is_unfinished(name, db) else "nothing was measured"
        print(f"commtune: interrupted; {kept}", file=sys.stderr)
        sys.exit(130)
    except AllocationOver as over:
        _next_job_continues(over.message)
    except DatabaseFault as fault:
        kept = "runs keep their record files; once that is fixed, the same command continues"
        raise DatabaseFault(fault.message, hint=f"{fault.hint}\n{kept}".strip()) from fault


def _next_job_continues(why: str) -> NoReturn:
    print(f"commtune: {why}; everything measured is kept", file=sys.stderr)
    sys.exit(0)
