"""Runs campaigns from their file to their result: on this machine, on a scheduler, or replayed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from math import fsum
from typing import Any

from commtune.app.campaigns.preparing import check_strategy_of
from commtune.app.measure.past_verifications import measure_session_spread
from commtune.campaign.loading import CampaignSpec
from commtune.campaign.plan import Plan
from commtune.cluster.local.shared_launch import SharedLaunch, can_share_launches
from commtune.cluster.machine.description import describe_machine
from commtune.db.codec import dump_model
from commtune.db.connection.engine import Database
from commtune.db.connection.location import shown_url
from commtune.db.queries.description import describe_campaign
from commtune.db.queries.profiles import load_profiles
from commtune.db.records import CampaignRecord
from commtune.errors import EnvironmentFault, NoAnswer, UnknownName
from commtune.formatting import list_first
from commtune.kernels.library_versions import read_versions
from commtune.model import MpiFlavour, MpiInstallation, Profile
from commtune.replay.benchmark import ReplayBenchmark, check_plan
from commtune.replay.recording import Grid
from commtune.tuner.campaign import Campaign
from commtune.tuner.campaign import CampaignResult as CampaignResult
from commtune.tuner.execution.runner import Runner
from commtune.tuner.ports import Reporter
from commtune.wiring import job_submission
from commtune.wiring.benchmark_setup import command_by_hand, prepare_benchmark
from commtune.wiring.campaign_control import controlled_campaign
from commtune.wiring.campaign_records import record_of, replayed_record, scheduler_campaign_record
from commtune.wiring.job_submission import prepare_scheduler_campaign
from commtune.wiring.scheduler_campaign import SchedulerCampaign
from commtune.wiring.space_fitting import cut_to_versions
from commtune.wiring.user_folders import runs_folder


def tune_campaign(
    spec: CampaignSpec,
    mpi: MpiInstallation,
    opened: Database,
    reporter: Reporter,
    *,
    take_over: bool,
) -> CampaignResult:
    """Runs or resumes a campaign, and returns its result.

    Args:
        spec: from ``prepare_campaign``.

    Raises:
        CampaignChanged: the stored campaign of this name is not comparable.
        CampaignLocked: another controller works on it.
    """
    tune = _tune_here if spec.job_request is None else _tune_on_scheduler
    result = tune(spec, mpi, opened, reporter, take_over=take_over)
    stored = load_profiles(opened.whole_url, spec.plan.name, with_details=False)
    return _apply_findings(result, stored)


def _apply_findings(result: CampaignResult, stored: Sequence[Profile]) -> CampaignResult:
    """Returns a result whose profiles say what verifications found of them."""
    known = {profile.name: profile for profile in stored}
    profiles = tuple(
        replace(one, verdict=known[one.name].verdict, note=known[one.name].note)
        if one.name in known
        else one
        for one in result.profiles
    )
    return replace(result, profiles=profiles)


def _tune_here(
    spec: CampaignSpec,
    mpi: MpiInstallation,
    opened: Database,
    reporter: Reporter,
    *,
    take_over: bool,
) -> CampaignResult:
    """Runs or resumes a campaign on this machine."""
    folder = runs_folder(spec.plan.name)
    record = record_of(spec, mpi, describe_machine(), folder)
    plan = _allow_for_sessions(spec.plan, record, opened, reporter)
    space, protected = plan.space, spec.protected_variables
    benchmark = prepare_benchmark(
        mpi, space.pinned, space.variables, plan.workload, folder, protected
    )
    shared = SharedLaunch(reporter.say)
    if can_share_launches(plan):
        benchmark = replace(benchmark, shared=shared)
    hand = command_by_hand(benchmark, plan)
    with (
        closing(shared),
        controlled_campaign(
            opened, record, reporter, take_over=take_over, remarks=spec.remarks
        ) as (store, number),
    ):
        runner = Runner(plan, number, benchmark, store, clock=store.clock, by_hand=hand)
        return Campaign(plan, runner, reporter).run()


def _tune_on_scheduler(
    spec: CampaignSpec,
    mpi: MpiInstallation,
    opened: Database,
    reporter: Reporter,
    *,
    take_over: bool,
) -> CampaignResult:
    """Runs or resumes a campaign on a scheduler: in an allocation by steps, otherwise by jobs."""
    on = prepare_scheduler_campaign(spec, mpi, reporter.say)
    record = scheduler_campaign_record(on)
    if on.key:
        _check_stored(record.name, opened)
    plan = _allow_for_sessions(spec.plan, record, opened, reporter)
    take_over = take_over or on.follows_allocation
    with (
        ExitStack() as at_last,
        controlled_campaign(
            opened, record, reporter, take_over=take_over, remarks=spec.remarks
        ) as (store, number),
    ):
        book = store.job_book(number)
        if not on.key:  # the user started it, not a submitted job
            on.cancel_request.withdraw()
        reporter.say(_whereabouts(on))
        if on.allocation is None:
            jobs = on.batches(book, alive=partial(store.touch, number))
            runner = Runner(plan, number, jobs, store, look_at=on.look_at)
            return Campaign(plan, runner, reporter).run()
        finish = partial(store.finish_campaign, number)
        with (
            job_submission.in_allocation(
                on, book, opened.whole_url, finish, at_last.callback
            ) as steps,
            closing(steps),
        ):
            runner = Runner(
                plan, number, steps, store,
                clock=partial(store.clock, steps.used_s),
                most_left_s=partial(on.left_s, book), look_at=on.look_at,
            )  # fmt: skip
            return Campaign(plan, runner, reporter).run()


def _allow_for_sessions(
    plan: Plan, record: CampaignRecord, opened: Database, reporter: Reporter
) -> Plan:
    """Returns a plan whose intervals allow for the variation between sessions on its system."""
    spread = measure_session_spread(record.system.fingerprint, opened.whole_url)
    if spread.sessions:
        reporter.say(spread.allowance)
    return replace(plan, session_spread=spread.share)


def _check_stored(campaign: str, opened: Database) -> None:
    """Refuses another database on the compute node than ``submit`` stored the campaign in."""
    try:
        describe_campaign(opened.whole_url, campaign)
    except (UnknownName, NoAnswer) as error:
        raise EnvironmentFault(
            f"on this node, {shown_url(opened.whole_url)} is not the database that the job was "
            "submitted with: the campaign is not in it",
            hint="put it where login and compute nodes see it: --db FILE, or XDG_DATA_HOME; "
            "or use PostgreSQL",
        ) from error


def _whereabouts(on: SchedulerCampaign) -> str:
    """Describes where the runs of a campaign on a scheduler take place."""
    if on.allocation is None:
        return (
            f"on cluster {on.site.name}: each block is a job, up to {on.request.jobs} in flight; "
            "'commtune status' lists them"
        )
    job, named = on.allocation.number, list_first(on.allocation.nodes)
    return f"on cluster {on.site.name}: runs are steps of job {job}, on {named}"


def replay_campaign(
    spec: CampaignSpec, grid: Grid, opened: Database, reporter: Reporter, *, take_over: bool
) -> CampaignResult:
    """Runs or resumes a campaign on a recording; its results are marked as such.

    Budgets count recorded time; the actual time is far shorter.

    Raises:
        CampaignError: the recording lacks configurations or sizes of the campaign.
        CampaignChanged, CampaignLocked: as for ``tune_campaign``.
    """
    check_strategy_of(spec)
    spec = _as_recorded(spec, grid)
    plan = spec.plan
    check_plan(grid, plan)
    benchmark = ReplayBenchmark(grid, plan.seed)
    record = replayed_record(spec, grid)
    with controlled_campaign(
        opened, record, reporter, take_over=take_over, remarks=spec.remarks
    ) as (store, number):
        # The clock of the recording continues from the end of the earlier session.
        benchmark.clock.now = fsum(run.wall_s for run in store.runs(number))
        runner = Runner(plan, number, benchmark, store, clock=benchmark.clock)
        return Campaign(plan, runner, reporter, replayed=benchmark.replayed).run()


def _as_recorded(spec: CampaignSpec, grid: Grid) -> CampaignSpec:
    """Returns the campaign with its space cut to the versions of a recording's libraries."""
    stack = grid.header.stack
    try:
        library = MpiFlavour(stack.get("flavour", "")).library
    except (KeyError, ValueError):
        return spec
    loaded = read_versions(stack.get("loaded"))
    on_gpus = {name: str(stack[name]) for name in ("nccl", "rccl") if name in stack}
    return cut_to_versions(spec, {library: str(stack.get("version", "")), **on_gpus, **loaded})


def conclusion_data(result: CampaignResult) -> dict[str, Any]:
    """Returns the conclusion of a campaign as JSON data, as it is stored."""
    return dump_model(result.conclusion)
