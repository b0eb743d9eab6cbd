"""Submits, continues, inspects and cancels campaigns on Slurm or PBS."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from commtune.campaign.loading import CampaignSpec
from commtune.cluster.jobs.cancel_request import CancelRequest
from commtune.cluster.jobs.cancellation import Cancelled, FolderBook, cancel_all
from commtune.cluster.jobs.job_folder import read_start
from commtune.cluster.jobs.monitor import refresh_jobs
from commtune.cluster.jobs.steps import Steps
from commtune.cluster.machine.inventory import collect_clues
from commtune.cluster.placement import expand_hosts
from commtune.cluster.scheduler import AFTER_VARIABLE, KEY_VARIABLE, SchedulerFault, Site
from commtune.cluster.slurm.client import clean_environment
from commtune.cluster.slurm.node_kinds import choose_nodes
from commtune.db.connection.engine import Database
from commtune.db.lock_owner import LockOwner
from commtune.db.storage.store import Store
from commtune.errors import (
    AllocationOver,
    CampaignLocked,
    DatabaseFault,
    EnvironmentFault,
    MissingComponent,
    UserError,
)
from commtune.formatting import format_duration
from commtune.interrupts import ignore_interrupts, is_time_nearly_over
from commtune.model import (
    FEWEST_BLOCKS,
    JobKind,
    JobRecord,
    JobScheduler,
    JobStage,
    MpiInstallation,
)
from commtune.systems.detection.recognition import recognize_system
from commtune.systems.loading import list_systems, load_system
from commtune.tuner.ports import JobBook
from commtune.wiring.benchmark_setup import program_for
from commtune.wiring.campaign_records import scheduler_campaign_record
from commtune.wiring.job_handover import COPIES, store_copies
from commtune.wiring.scheduler_campaign import SchedulerCampaign
from commtune.wiring.schedulers import allocation_here, describe_site, scheduler_of
from commtune.wiring.user_folders import campaign_folder, data_folder

#: Seconds by which the clocks of a cluster's machines may differ.
_CLOCKS_S = 60.0
#: Time limit of a scheduler's optional answers, seconds.
_ANSWER_S = 10.0
#: The shortest wall time of a run, seconds: to start a step and an MPI.
_SHORTEST_RUN_S = 0.05


def prepare_scheduler_campaign(
    spec: CampaignSpec,
    mpi: MpiInstallation,
    say: Callable[[str], None],
    *,
    again: bool = False,
    is_example: bool = False,
) -> SchedulerCampaign:
    """Prepares a campaign from this login node or allocation; builds its benchmark.

    Args:
        again: whether stored results are only measured again; then hints to change the campaign
            file are left out.
        is_example: whether its scripts are only shown, so that no scheduler needs to answer.

    Raises:
        UserError: its file asks for no scheduler.
        CampaignError: its node-hours are too few to decide anything.
        EnvironmentFault: the scheduler isn't here, or doesn't answer.
    """
    request = spec.job_request
    if request is None:
        raise UserError(
            f"campaign {spec.plan.name} is for this machine: its file asks for no scheduler",
            hint="add `slurm: {}`, with what your site requires: account, partition; or `pbs: {}`",
        )
    on = SchedulerCampaign(
        spec=spec,
        request=request,
        mpi=mpi,
        program=program_for(mpi, spec.plan.workload, spec.plan.space.variables),
        site=_describe_site(spec, request.scheduler, say, again=again, is_example=is_example),
        folder=campaign_folder(spec.plan.name),
        allocation=allocation_here(request.scheduler),
        key=os.environ.get(KEY_VARIABLE, ""),
        say=say,
    )
    if on.kind is JobScheduler.SLURM:
        on = _with_nodes_of_one_kind(on)
    if not on.key:  # else ``submit`` has said it
        _say_what_node_hours_decide(on)
        if not again:
            _say_which_system_it_is(on)
    return on


def _with_nodes_of_one_kind(on: SchedulerCampaign) -> SchedulerCampaign:
    """Restricts jobs to nodes of one kind, unless the user chose nodes; says which."""
    what = on.what()
    if what["constraint"] or on.request.reservation:
        return on
    choice = choose_nodes(
        clean_environment(os.environ),
        what["partition"],
        on.nodes,
        data_folder(),
        exclude=on.request.exclude,
        allocated=on.allocation.nodes if on.allocation else (),
    )
    if choice.remark:
        on.say(choice.remark)
    return replace(on, request=replace(on.request, exclude=(*on.request.exclude, *choice.exclude)))


def _say_what_node_hours_decide(on: SchedulerCampaign) -> None:
    """Says how long a run may take for the node-hours to suffice for the smallest confirmation.

    Raises:
        CampaignError: no run is that short.
    """
    budget, runs = on.spec.plan.budget, 2 * FEWEST_BLOCKS
    given = budget.node_hours
    if given is None or budget.whole_s * on.nodes < 0.99 * 3600 * given:
        return  # the budget's times are the tighter limit
    longest_s = budget.confirmation_s / runs
    if longest_s < _SHORTEST_RUN_S:
        needed = given * _SHORTEST_RUN_S / longest_s
        raise on.spec.error_at(
            "budget",
            f"budget: {given:g} node-hours decide nothing: of the time that {on.nodes} nodes have "
            f"then, {format_duration(budget.confirmation_s)} are for the confirmation, which is "
            f"{runs} runs at least",
            hint=f"more than {needed:.2g} node-hours, even if a run takes {_SHORTEST_RUN_S:g} s",
        )
    on.say(
        f"{given:g} node-hours can decide something if a run takes {format_duration(longest_s)} "
        f"at most: the confirmation is {runs} runs at least"
    )


def _say_which_system_it_is(on: SchedulerCampaign) -> None:
    """Says if commtune has a description of this system and the campaign file names none."""
    if on.spec.system is not None:
        return
    known = [load_system(name) for name in list_systems()]
    found = recognize_system(collect_clues(os.environ, on.site.name), known)
    if len(found) == 1 and not found[0].system.retired:
        name, why = found[0].system.name, found[0].by[0]
        on.say(f"note: this is {name} ({why}); 'system: {name}' requests what fits it")


def _describe_site(
    spec: CampaignSpec,
    kind: JobScheduler,
    say: Callable[[str], None],
    *,
    again: bool,
    is_example: bool,
) -> Site:
    """Describes the site by its scheduler; explains a missing answer in a campaign's terms."""
    try:
        return describe_site(kind, data_folder())
    except (MissingComponent, SchedulerFault) as error:
        if is_example:
            say(f"note: kinds of nodes and topology are not checked: {error.message}")
            return Site("", "", {}, keeps_accounts=False)
        is_there = isinstance(error, SchedulerFault)
        if spec.system is None and (is_there or not again):
            raise
        state = "does not answer here" if is_there else "is not on this machine"
        ping = "scontrol ping" if kind is JobScheduler.SLURM else "qstat -B"
        ask = f" ('{ping}' asks whether it is there)" if is_there else ""
        # A system alone brings its scheduler as well, without a key of its own in the file.
        keys = "'system'" if kind not in spec.lines else f"'system' and '{kind}'"
        whose = f"s on {spec.system.name} go" if spec.system else f" {spec.plan.name} goes"
        place = f" of {spec.system.name}" if spec.system else ""
        here = f";\nto measure on this machine instead, leave {keys} out of the campaign file"
        raise EnvironmentFault(
            f"campaign{whose} through {kind.label}, and {kind.label} {state}",
            hint=f"start it on a login node{place}{ask}{'' if again else here}",
            transient=error.transient,
        ) from error


def submit_campaign(on: SchedulerCampaign, opened: Database) -> JobRecord:
    """Submits an allocation in which the campaign runs; returns its record, with its number.

    Raises:
        UserError: the campaign has one in the queue already.
        CampaignChanged: the stored campaign of this name asks another question.
        CampaignLocked: a controller outside of jobs of ``submit`` works on it.
        EnvironmentFault: the scheduler accepts no job.
    """
    store = Store(opened, say=on.say)
    campaign_id = store.open_campaign(scheduler_campaign_record(on)).id
    book = store.job_book(campaign_id)
    chain = on.chain(book, opened.whole_url)
    if there := chain.alive():
        raise UserError(
            f"campaign {on.spec.plan.name} already has a {on.kind.label} job: "
            f"{there[0].job.number}",
            hint="'commtune status' shows it; 'commtune cancel' ends it",
        )
    store_copies(on.folder / COPIES, on.spec.texts)
    on.cancel_request.withdraw()
    dead = _dead_holder(store, campaign_id, book.all_jobs())
    return chain.submit(after=dead, is_over=True).job


def _dead_holder(store: Store, campaign_id: int, jobs: Sequence[JobRecord]) -> str:
    """Returns the number of a finished allocation whose controller still holds the lock.

    It died on another machine, so that only the scheduler knows. Empty if nobody holds the lock;
    raises ``CampaignLocked`` if another controller does, which may live.
    """
    owner = LockOwner.current()
    try:
        store.lock(campaign_id, owner)
    except CampaignLocked:
        holder, since = store.holder(campaign_id) or (owner, 0.0)
        for job in reversed(jobs):
            ended = job.kind is JobKind.ALLOCATION and job.stage is JobStage.OVER and job.ended_at
            if ended and since <= ended + _CLOCKS_S and _is_on(holder.host, job.nodes):
                return job.number
        raise
    finally:
        store.unlock_all()
    return ""


def _is_on(host: str, nodes: str) -> bool:
    return host.partition(".")[0] in {node.partition(".")[0] for node in expand_hosts(nodes)}


@contextmanager
def in_allocation(
    on: SchedulerCampaign,
    book: JobBook,
    database: str,
    finish: Callable[[], None],
    at_last: Callable[[Callable[[], None]], object],
) -> Iterator[Steps]:
    """Yields the steps of this allocation; submits its successor in time.

    Args:
        finish: records the end of the campaign.
        at_last: registers a function to call once everything is stored and unlocked.
    """
    if on.allocation is None or not on.key:
        yield on.steps(None)
        return
    on.cancel_request.check()
    chain = on.chain(book, database)
    chain.began(on.key, on.allocation, os.environ.get(AFTER_VARIABLE, ""))
    goes_on = interrupted = False
    try:
        yield on.steps(chain)
    except (AllocationOver, KeyboardInterrupt) as end:
        goes_on = isinstance(end, AllocationOver) or is_time_nearly_over()
        interrupted = not goes_on
        raise
    finally:
        chain.ended(is_done=not goes_on, interrupted=interrupted)
        if goes_on:
            at_last(chain.go_on)
            # Registered last and so called first: Slurm signals the process that it requeues.
            at_last(ignore_interrupts)
    # In this order: if we are killed in between, the successor does the rest.
    finish()
    chain.take_back()


def cancel_jobs(campaign_id: int, kind: JobScheduler, folder: Path, opened: Database) -> Cancelled:
    """Cancels a campaign's jobs; raises a ``SchedulerFault`` if the scheduler doesn't answer.

    Its controller is told first, by a file in the campaign's folder: it might submit another job.
    """
    scheduler = scheduler_of(kind)
    store, request = Store(opened), CancelRequest.of(folder)
    held = store.holder(campaign_id)
    told = held[0].describe() if held is not None and held[0].lives_here else ""
    untold = request.make()
    cancelled = cancel_all(
        store.job_book(campaign_id),
        scheduler,
        lambda: not untold and store.holder(campaign_id) is not None,
    )
    return replace(cancelled, problem=cancelled.problem or untold, controller=told)


def cancel_by_folder(folder: Path, fault: DatabaseFault) -> Cancelled:
    """Cancels the jobs in a campaign's folder; ``fault``: why the database can't be read."""
    untold = CancelRequest.of(folder).make()
    cancelled = cancel_all(
        FolderBook(folder / "jobs", fault), scheduler_of(_kind_of_scripts(folder / "jobs"))
    )
    return replace(cancelled, problem=untold or fault.message)


def _kind_of_scripts(jobs: Path) -> JobScheduler:
    """Returns the scheduler of the jobs in a campaign's folder, by their scripts."""
    is_pbs = any("\n#PBS " in read_start(script) for script in jobs.glob("*/script.sh"))
    return JobScheduler.PBS if is_pbs else JobScheduler.SLURM


def jobs_now(kind: JobScheduler, jobs: Collection[JobRecord]) -> dict[str, JobRecord]:
    """Returns jobs as the scheduler describes them now, by key; none if it gives no answer."""
    return refresh_jobs(jobs, scheduler_of(kind, timeout_s=_ANSWER_S))
