"""Stored campaigns and profiles as a whole: found and listed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commtune import formatting as text
from commtune.campaign.campaign_name import check_campaign_name
from commtune.cluster.job_states import PendingReason
from commtune.cluster.jobs.job_folder import read_tail
from commtune.db.codec import list_differences as list_differences
from commtune.db.connection.location import database_url
from commtune.db.queries.description import describe_campaign
from commtune.db.queries.profiles import find_profiles, load_profile
from commtune.db.queries.summaries import list_summaries
from commtune.db.records import BestGain
from commtune.db.records import CampaignDescription as CampaignDescription
from commtune.db.records import CampaignState as CampaignState
from commtune.db.records import CampaignSummary as CampaignSummary
from commtune.db.records import ProfileAnswer as ProfileAnswer
from commtune.db.records import StoredProfile as StoredProfile
from commtune.db.settings import excluded_nodes as excluded_nodes
from commtune.db.settings import node_hours_budget as node_hours_budget
from commtune.errors import NoAnswer, UnknownName
from commtune.model import Interval, JobKind, JobRecord, JobScheduler, JobStage
from commtune.wiring import submitted_files

if TYPE_CHECKING:
    from commtune.app.profiles.nominal_share import Share

#: How lines of a controller in a job begin that say why it ended, and why none follows.
_SIGNS = ("commtune: ", "no job continues: ")
#: Slurm's word for jobs that wait, and PBS's.
_PENDING = ("PENDING", "H", "Q", "T", "W")
#: What Slurm says where there is no reason.
_NO_REASON = ("", "None", "(null)")


def list_campaigns(
    db: str | None = None, *, ask_slurm: bool = True, campaign_id: int | None = None
) -> list[tuple[CampaignSummary, bool]]:
    """All campaigns, their jobs as Slurm describes them now.

    The flag says that jobs may be over by now: Slurm doesn't answer, and nobody else would know.

    Args:
        ask_slurm: ``False`` starts no program: jobs are as they are stored.
        campaign_id: only this one.
    """
    try:
        stored = list_summaries(database_url(db), campaign_id)
    except NoAnswer:  # no database yet
        return []
    now: dict[str, JobRecord] = {}
    for kind in JobScheduler if ask_slurm else ():
        mine = [one for one in stored if scheduler_of(one) is kind]
        asked = [job for one in mine for job in one.jobs if _is_asked_about(one, job)]
        if asked:
            from commtune.wiring.slurm_submission import jobs_now  # slow to import

            now |= jobs_now(kind, asked)
    described = [
        replace(one, jobs=tuple(now.get(job.key, job) for job in one.jobs)) for one in stored
    ]
    return [
        (
            _without_lost_controller(one),
            any(job.key not in now for job in one.jobs if _is_worth_asking(one, job)),
        )
        for one in described
    ]


def explain_silent_accounts(campaigns: Iterable[CampaignSummary]) -> str:
    """Why slurmdbd gives no answer, in words, if one of them has jobs with Slurm; else empty."""
    alive = [
        job
        for one in campaigns
        if scheduler_of(one) is JobScheduler.SLURM
        for job in one.jobs
        if job.stage is JobStage.SUBMITTED
    ]
    if not alive:
        return ""
    from commtune.cluster.slurm import site  # who has no jobs doesn't wait for it

    return site.explain_silent_accounts(os.environ)


def scheduler_of(campaign: CampaignSummary) -> JobScheduler:
    """Where the jobs of a campaign go; Slurm for one that has none."""
    return JobScheduler.find_in(campaign.settings) or JobScheduler.SLURM


def _is_asked_about(campaign: CampaignSummary, job: JobRecord) -> bool:
    """Whether Slurm may know more of a job: nobody watches it, or a controller runs in it."""
    return not campaign.locked_by or job.kind is JobKind.ALLOCATION


def _is_worth_asking(campaign: CampaignSummary, job: JobRecord) -> bool:
    """The same, but for what a controller that lives has yet to submit."""
    return _is_asked_about(campaign, job) and bool(job.number or not campaign.locked_by)


def _without_lost_controller(campaign: CampaignSummary) -> CampaignSummary:
    """Drops lock and unsubmitted jobs where the allocation of the lock's holder is over."""
    began = [job for job in campaign.jobs if job.kind is JobKind.ALLOCATION and job.started_at]
    if not began or any(job.stage is not JobStage.OVER for job in began):
        return campaign
    return replace(campaign, locked_by="", jobs=tuple(j for j in campaign.jobs if j.number))


def summary_data(campaign: CampaignSummary, share: Share | None) -> dict[str, Any]:
    """A campaign's state as plain data: what ``status --json`` and the HTTP API give.

    Args:
        share: of the nominal bandwidth, that its best speedup comes to.
    """
    return {
        **asdict(campaign),
        "state": campaign.state,
        "failed": campaign.failed,
        "lost": campaign.lost,
        "of_nominal": share.plain() if share else None,
        "node_hours_budget": node_hours_budget(campaign.settings),
        "excluded_nodes": list(excluded_nodes(campaign.settings)),
    }


def describe_best_gain(best: BestGain | None) -> str:
    """``1.23x to 1.62x (1.41x, 12 pairs) at 64 KiB``: the best confirmed speedup."""
    if best is None:
        return "none confirmed"
    speedup = Interval(best.ratio, best.low, best.high, best.pairs)
    return text.describe_speedup(speedup, best.bytes, best.speed)


def sort_jobs(jobs: Iterable[JobRecord]) -> list[JobRecord]:
    """Those that run first: they are first to have something to say."""
    return sorted(jobs, key=lambda job: (job.started_at is None, not job.number))


def describe_job(job: JobRecord) -> dict[str, str]:
    """What is known of a scheduler's job, in words: its state is the scheduler's own word."""
    waits = "submitted" if job.stage is JobStage.SUBMITTED else "not submitted yet"
    return {
        "job": job.number or "-",
        "for": str(job.kind) if job.block is None else f"{job.kind} {job.block}",
        "state": job.word or waits,
        "reason": "" if job.reason in _NO_REASON else job.reason,
        "nodes": job.nodes or text.format_count(job.node_count, "node"),
    }


def count_jobs(campaign: CampaignSummary) -> str:
    """``4 jobs in flight, 2 not submitted yet``."""
    alive = [job for job in campaign.jobs if job.stage is not JobStage.OVER]
    submitted = [job for job in alive if job.stage is JobStage.SUBMITTED]
    more = len(alive) - len(submitted)
    said = f"{text.format_count(len(submitted), 'job')} in flight"
    return f"{said}, {more} not submitted yet" if more else said


def count_job_states(jobs: Iterable[JobRecord]) -> str:
    """``3 RUNNING, 40 PENDING (Priority)``."""
    told = [describe_job(job) for job in jobs]
    counted = Counter((one["state"], one["reason"]) for one in told)
    return ", ".join(
        f"{count} {state}{f' ({reason})' if reason else ''}"
        for (state, reason), count in counted.most_common()
    )


def last_words(campaign: CampaignSummary) -> str:
    """Why no job goes on, as the newest one said; empty where one does, or nothing is left."""
    allocations = [job for job in campaign.jobs if job.kind is JobKind.ALLOCATION]
    goes_on = campaign.locked_by or any(job.stage is JobStage.SUBMITTED for job in allocations)
    if goes_on or campaign.finished is not None:
        return ""
    outputs = list(Path(campaign.folder).parent.glob("jobs/*/job.out"))
    newest = max(outputs, key=lambda output: output.stat().st_mtime, default=None)
    lines = read_tail(newest).splitlines() if newest else []
    said = [[line for line in lines if line.startswith(sign)][-1:] for sign in _SIGNS]
    return "; ".join(line.removeprefix("commtune: ") for found in said for line in found)


def stuck_jobs(campaign: CampaignSummary) -> list[str]:
    """Jobs that don't start unless somebody does something, and what: in words."""
    waiting = [job for job in campaign.jobs if is_pending(job)]
    if not waiting:
        return []
    scheduler = scheduler_of(campaign)
    if scheduler is JobScheduler.SLURM:
        from commtune.cluster.slurm.command_output import classify_reason  # reads Slurm's words

        release = "scontrol release"
    else:
        from commtune.cluster.pbs.command_output import classify_reason

        release = "qrls"
    kinds = [(job, classify_reason(job.reason)) for job in waiting]
    return [
        f"job {job.number} is held ({job.reason}): '{release} {job.number}'"
        if kind is PendingReason.HELD
        else f"job {job.number} will not start, {kind.value} ({job.reason}): 'commtune cancel "
        f"{campaign.name}', correct '{scheduler}:' in its file, then submit it again"
        for job, kind in kinds
        if kind.is_hopeless
    ]


def is_pending(job: JobRecord) -> bool:
    """Whether its scheduler has it and did not start it yet."""
    return job.word in _PENDING


def edited_files(campaign: CampaignSummary) -> list[str]:
    """Files of a submitted campaign that were edited since: its jobs go on with copies of them."""
    return submitted_files.edited_files(Path(campaign.folder).parent / submitted_files.COPIES)


def find_campaign(name: str, db: str | None = None) -> CampaignDescription:
    """The campaign of this name.

    Raises:
        UnknownName: there is none; the hint says what there is.
    """
    return describe_campaign(database_url(db), name)


def find_stored(name: str, db: str | None = None) -> CampaignDescription | ProfileAnswer:
    """The campaign of this name, else the profile: ``CAMPAIGN/PROFILE``, name or number.

    Raises:
        UnknownName: there is neither.
        NoAnswer: there is no database yet.
    """
    try:
        return find_campaign(name, db)
    except UnknownName as unknown:
        try:
            return load_profile(database_url(db), name)
        except UnknownName as error:
            raise error if "/" in name else unknown from None


def find_profile(reference: str, db: str | None) -> ProfileAnswer:
    """A stored profile with all its evidence.

    Args:
        reference: ``CAMPAIGN/PROFILE``, its name where only one has it, or its number.

    Raises:
        UnknownName, NoAnswer, DatabaseFault: it is not to be had.
    """
    return load_profile(database_url(db), reference, with_details=True)


def list_profiles(campaign: str | None = None, db: str | None = None) -> list[StoredProfile]:
    """All profiles, or a campaign's: newest first, then by operation and size."""
    return find_profiles(database_url(db), campaign)


def rename_campaign(name: str, new: str, db: str | None = None) -> None:
    """Gives a campaign another name; its file must be given the same.

    Raises:
        UnknownName: there is no such campaign.
        UserError: the new name can't name one, is taken, or jobs are not over.
        CampaignLocked: a controller works on it.
    """
    check_campaign_name(new)
    number = find_campaign(name, db).id
    from commtune.db.connection.opening import opened_database
    from commtune.db.storage import campaigns  # who only reads is not to wait

    with opened_database(db) as opened, opened.write() as connection:
        campaigns.rename_campaign(connection, number, new)


def delete_campaign(name: str, db: str | None = None) -> None:
    """Deletes a campaign with its runs and profiles; files that jobs wrote stay on disk.

    Raises:
        UnknownName: there is no such campaign.
        UserError: some of its jobs are not over.
        CampaignLocked: a controller works on it.
    """
    number = find_campaign(name, db).id
    from commtune.db.connection.opening import opened_database
    from commtune.db.storage import campaigns  # who only reads is not to wait

    with opened_database(db) as opened, opened.write() as connection:
        campaigns.delete_campaign(connection, number)
