"""Verifies a stored profile: measures it again against the default, and stores the runs."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from commtune.app.measure.past_verifications import measure_session_spread
from commtune.app.measure.remeasuring import rebuild_scheduler_campaign
from commtune.campaign.plan import Plan
from commtune.cluster.local.benchmark import LocalBenchmark
from commtune.db.codec import list_differences
from commtune.db.queries.description import load_own_profile
from commtune.db.queries.profiles import load_strength
from commtune.db.records import CampaignDescription, CampaignRecord, ProfileAnswer
from commtune.db.storage.store import Store
from commtune.errors import UserError
from commtune.formatting import format_count, format_ranks, format_wall_time
from commtune.model import (
    DEFAULT,
    MpiInstallation,
    Origin,
    Phase,
    Profile,
    Strength,
    Timing,
    Workload,
    content_key,
)
from commtune.spaces.space import Space
from commtune.tuner.execution.runner import Runner
from commtune.tuner.execution.session import Session
from commtune.tuner.execution.time_limits import time_limit
from commtune.tuner.ports import Batches, Benchmark, Reporter
from commtune.tuner.statistics.evidence import Evidence
from commtune.tuner.statistics.session_spread import SessionSpread
from commtune.tuner.verification.claims import OTHER_SHARES as OTHER_SHARES
from commtune.tuner.verification.claims import Claim
from commtune.tuner.verification.claims import SizeVerification as SizeVerification
from commtune.tuner.verification.phase import Verification as Verification
from commtune.tuner.verification.phase import VerifyPhase
from commtune.wiring import benchmark_setup, campaign_control, campaign_records, library_versions
from commtune.wiring.scheduler_campaign import SchedulerCampaign
from commtune.wiring.user_folders import runs_folder


@dataclass(frozen=True)
class _Task:
    """A verification to be made.

    Attributes:
        mpi: the MPI of the new runs.
        record: the campaign as it would be created here and now, with the name for the new runs.
        changes: descriptions of changes since the profile was made; with any, the new runs are a
            campaign of their own.
        on: the scheduler's part of the campaign, if its runs were jobs.
    """

    answer: ProfileAnswer
    stored: CampaignDescription
    claim: Claim
    plan: Plan
    mpi: MpiInstallation
    record: CampaignRecord
    changes: tuple[str, ...]
    on: SchedulerCampaign | None

    @property
    def profile(self) -> str:
        """CAMPAIGN/PROFILE."""
        return self.answer.reference

    @property
    def stated_at(self) -> float:
        """The creation of the profile, seconds since 1970."""
        return self.answer.created

    @property
    def campaign(self) -> str:
        """The name of the campaign that has the new runs."""
        return self.record.name


@dataclass(frozen=True)
class VerificationResult(_Task):
    """The result of a verification.

    Attributes:
        strength: what the profile rests on now; ``answer`` has what it rested on before.
        spread: how much speedups on this system differ between sessions; it widens the intervals.
        next_spread: the same for the next intervals, by this verification too.
    """

    verification: Verification
    strength: Strength
    spread: SessionSpread
    next_spread: SessionSpread


def verify_profile(
    profile: str | tuple[ProfileAnswer, CampaignDescription],
    *,
    db: str | None = None,
    time_s: float = 30.0,
    mpi: str | None = None,
    reporter: Reporter,
    take_over: bool = False,
    through: str = "",
) -> VerificationResult:
    """Measures a profile against the default in new blocks, which are stored.

    Ctrl-C ends it early; the measurements until that moment are stored and judged.

    Args:
        profile: CAMPAIGN/PROFILE, name, or number; or a modified profile with its campaign.
        time_s: wall time of the runs, seconds.
        mpi: the MPI; that of the campaign by default.
        take_over: whether to take over the lock of a controller that died.
        through: a file that applies the settings instead of variables; then the runs are a
            campaign of their own.

    Raises:
        UserError: the profile claims nothing, is simulated, or is of another system or library.
        UnknownName, NoAnswer: there is no such profile.
        CampaignLocked: another controller works on its campaign.
    """
    if isinstance(profile, str):
        profile = load_own_profile(db, profile)
    answer, stored = profile
    task = _plan_task(answer, stored, mpi, reporter, through)
    if task.changes:
        said = f"{task.profile} was measured under other conditions; changed since (then -> now):"
        own = f"so these runs are stored separately, as campaign {task.campaign}"
        for line in (said, *(f"  {change}" for change in task.changes), own):
            reporter.say(line)
    spread = measure_session_spread(stored.system.fingerprint, db)
    task = replace(task, plan=replace(task.plan, session_spread=spread.share))
    found = _measure(task, time_s, db, reporter, take_over=take_over)
    return VerificationResult(
        **vars(task),
        verification=found,
        strength=load_strength(db, answer.id),
        spread=spread,
        next_spread=measure_session_spread(stored.system.fingerprint, db),
    )


def _plan_task(
    answer: ProfileAnswer,
    stored: CampaignDescription,
    mpi_named: str | None,
    reporter: Reporter,
    through: str,
) -> _Task:
    if answer.profile.simulated or stored.simulated:
        raise UserError(
            f"profile {answer.profile.name} is simulated or replayed: there is no machine to "
            "measure it on again",
            hint="run the campaign on the machine itself",
        )
    plan = _plan_of(stored)
    plan = _add_profile_sizes(plan, answer.profile)
    claim = Claim.of_profile(answer.profile, plan.workload.sizes)
    on = rebuild_scheduler_campaign(stored, mpi_named, reporter.say)
    named = mpi_named or stored.settings.get("mpi") or "auto"
    mpi = on.mpi if on else benchmark_setup.find_named_mpi(named, plan.workload)
    _refuse_another_library(stored, mpi)
    if on:
        record = campaign_records.scheduler_campaign_record(on)
    else:
        record = campaign_records.record_of_today(
            stored, mpi, library_versions.versions_again(stored, mpi)
        )
    record = replace(record, stack=record.stack.as_known_to(stored.stack.description))
    _refuse_another_machine(answer, stored, record)
    changes = _find_changes(stored, record)
    if through:
        changes = (*changes, f"settings: variables -> {through}")
    if changes:
        record = _own_campaign(answer, record)
    return _Task(answer, stored, claim, plan, mpi, record, changes, on and _renamed(on, record))


def _plan_of(stored: CampaignDescription) -> Plan:
    """Returns a stored campaign's plan without parameters, to measure known configurations."""
    thresholds = ("minimum_gain", "tolerance", "level", "time_limit_s")
    space = stored.space
    return Plan(
        name=stored.name,
        space=Space(
            name=space.get("name", ""),
            version=str(space.get("version", "")),
            library=space.get("library", ""),
            parameters=(),
            pinned=space.get("pinned", {}),
        ),
        workload=Workload.of_plain(stored.what["workload"]),
        timing=Timing(**stored.what["timing"]),
        estimand=stored.estimand,
        seed=stored.seed,
        # A campaign of another site may lack some of these.
        **{name: stored.settings[name] for name in thresholds if name in stored.settings},
    )


def _add_profile_sizes(plan: Plan, profile: Profile) -> Plan:
    """Returns the plan with all sizes of a profile's evidence added to its own."""
    points = (point.bytes for point in profile.points if point.operation == profile.operation)
    sizes = tuple(sorted({*plan.workload.sizes, *points}))
    return replace(plan, workload=replace(plan.workload, sizes=sizes))


def _renamed(on: SchedulerCampaign, record: CampaignRecord) -> SchedulerCampaign:
    """Returns the campaign with the name of its jobs and folder changed to that of a record."""
    return replace(on, spec=on.spec.with_plan(name=record.name), folder=Path(record.folder).parent)


def _refuse_another_library(stored: CampaignDescription, mpi: MpiInstallation) -> None:
    flavour = stored.what["mpi"]["flavour"]
    if str(mpi.flavour) != flavour:
        raise UserError(
            f"{stored.name} is about {stored.stack.text}, but the MPI found is "
            f"{mpi.flavour} {mpi.version} ({mpi.compiler}), which has other variables",
            hint="name another MPI: 'commtune mpi list' shows what there is",
        )


def _refuse_another_machine(
    answer: ProfileAnswer, stored: CampaignDescription, record: CampaignRecord
) -> None:
    lines = list_differences(stored.what["machine"], record.what["machine"])
    if lines:
        raise UserError(
            f"{answer.profile.name} was measured on another system, {stored.system.name}; "
            f"this is {record.system.name} (then -> now):"
            + "".join(f"\n  {line}" for line in lines),
            hint="verify it on a machine of that kind, or tune here: commtune tune\n"
            f"its effect here: commtune compare default {answer.reference}",
        )


def _find_changes(stored: CampaignDescription, record: CampaignRecord) -> tuple[str, ...]:
    """Returns the changes since a profile was made on this machine, as ``key: then -> now``."""
    what = list_differences(stored.what, record.what)
    stack = list_differences(stored.stack.description, record.stack.description)
    # The library and its version are in ``what`` already.
    said = [*what, *(line for line in stack if not line.startswith(("mpi:", "version:")))]
    moved = stored.system.fingerprint != record.system.fingerprint
    moved |= stored.stack.fingerprint != record.stack.fingerprint
    if moved and not said:
        return ("the system's fingerprint",)
    return tuple(said)


def _own_campaign(answer: ProfileAnswer, record: CampaignRecord) -> CampaignRecord:
    """Returns a separate campaign, for runs that are not comparable with the profile's."""
    # The name has the day and a hash, so that another verification that day continues it.
    what = {**record.what, "verifies": answer.reference}
    key = content_key([what, record.system.fingerprint, record.stack.fingerprint])[:4]
    day = time.strftime("%Y-%m-%d")
    name = f"verify-{answer.campaign}-{answer.profile.name}-{day}-{key}"
    settings = {**record.settings, "verifies": answer.reference}
    folder = str(runs_folder(name))
    return replace(record, name=name, what=what, settings=settings, folder=folder)


def _measure(
    task: _Task,
    time_s: float,
    db: str | None,
    reporter: Reporter,
    *,
    take_over: bool,
) -> Verification:
    with (
        campaign_control.open_when_usable(db, reporter.say) as opened,
        campaign_control.held_campaign(opened, task.record, reporter, take_over=take_over) as held,
    ):
        store, campaign_id = held
        benchmark = _prepare_benchmark(task, store, campaign_id)
        known = Evidence.of_runs(store.runs(task.stored.id))
        by_hand = ""
        if isinstance(benchmark, LocalBenchmark):
            by_hand = benchmark_setup.command_by_hand(benchmark, task.plan)
        plan = _with_time_limit(task.plan, known)
        look_at = task.on.look_at if task.on else ""
        runner = Runner(
            plan, campaign_id, benchmark, store,
            clock=store.clock, look_at=look_at, by_hand=by_hand,
        )  # fmt: skip
        runner.recover()
        runner.load()
        runner.new_trial(DEFAULT, Origin.BASELINE)
        session = Session(runner.plan, runner, reporter)
        phase = VerifyPhase(session, task.claim, known, time_s)
        reporter.say(_outlook(task, phase))
        found = phase.run()
        if found.has_result:
            made = phase.make_record(task.answer.profile.name, found.finding, time.time())
            store.add_verification(campaign_id, made)
        if task.changes:
            store.finish_campaign(campaign_id)
        return found


def _prepare_benchmark(task: _Task, store: Store, campaign_id: int) -> Benchmark | Batches:
    if task.on is not None:
        return task.on.further_runs(store, campaign_id)
    answer = task.answer
    return benchmark_setup.prepare_benchmark(
        task.mpi,
        answer.pinned,
        (*answer.pinned, *answer.variables),
        task.plan.workload,
        Path(task.record.folder),
        tuple(task.stored.what.get("guards", {})),
    )


def _with_time_limit(plan: Plan, known: Evidence) -> Plan:
    """Returns the plan with a time limit of runs, from the campaign's runs of the default."""
    runs = known.good(Phase.SEARCH, Phase.CONFIRM)
    walls = [run.wall_s for run in runs if run.configuration.is_default]
    if plan.time_limit_s is not None or not walls:
        return plan
    return replace(plan, time_limit_s=time_limit(walls))


def _outlook(task: _Task, phase: VerifyPhase) -> str:
    workload = task.plan.workload
    expected_s = 2 * phase.planned_at_first * phase.run_s()
    return (
        f"{task.profile}: {workload.operation}, "
        f"{format_ranks(workload.ranks, workload.nodes)}, "
        f"{format_count(len(task.claim.sizes), 'size')}; {phase.planned_at_first} blocks of "
        f"2 runs, about {format_wall_time(expected_s)}, fewer if the answer is clear earlier"
    )
