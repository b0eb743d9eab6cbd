"""Finds, lists, describes, renames and deletes stored campaigns, their runs and profiles."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from commtune import formatting as text
from commtune.campaign.campaign_name import check_campaign_name
from commtune.cluster.job_states import PendingReason
from commtune.cluster.jobs.job_folder import read_tail
from commtune.db.codec import list_differences as list_differences
from commtune.db.queries.description import describe_campaign as describe_campaign
from commtune.db.queries.listing import RunLine as RunLine
from commtune.db.queries.listing import list_runs as list_runs
from commtune.db.queries.listing import list_stacks as list_stacks
from commtune.db.queries.listing import list_systems as list_systems
from commtune.db.queries.listing import list_trials as list_trials
from commtune.db.queries.profiles import find_profiles as find_profiles
from commtune.db.queries.profiles import load_profile as load_profile
from commtune.db.queries.summaries import list_summaries
from commtune.db.records import CampaignDescription as CampaignDescription
from commtune.db.records import CampaignState as CampaignState
from commtune.db.records import CampaignSummary as CampaignSummary
from commtune.db.records import ProfileAnswer as ProfileAnswer
from commtune.db.records import StoredProfile as StoredProfile
from commtune.db.settings import excluded_nodes, node_hours_budget
from commtune.errors import NoAnswer, UnknownName
from commtune.model import Interval, JobKind, JobRecord, JobScheduler, JobStage
from commtune.wiring import job_handover

#: Prefixes of a job's output lines that say why its controller ended, and why no job follows.
_SIGNS = ("commtune: ", "no job continues: ")
#: States of waiting jobs in Slurm and PBS.
_PENDING = ("PENDING", "H", "Q", "T", "W")
#: Slurm's values for no reason.
_NO_REASON = ("", "None", "(null)")


def list_campaigns(db: str | None) -> list[CampaignSummary]:
    """Returns all campaigns, newest first, with their jobs as stored; none without a database."""
    try:
        return list_summaries(db)
    except NoAnswer:
        return []


def ask_schedulers(stored: Iterable[CampaignSummary]) -> list[tuple[CampaignSummary, bool]]:
    """Returns campaigns with their jobs as the schedulers describe them now.

    The flag is true if jobs may be over by now: the scheduler doesn't answer, and no controller
    watches them.
    """
    now: dict[str, JobRecord] = {}
    for kind in JobScheduler:
        mine = [one for one in stored if scheduler_of(one) is kind]
        asked = [job for one in mine for job in one.jobs if _is_asked_about(one, job)]
        if asked:
            from commtune.wiring.job_submission import jobs_now  # slow to import

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
    """Returns why slurmdbd doesn't answer, if a campaign has jobs in Slurm; empty otherwise."""
    alive = [
        job
        for one in campaigns
        if scheduler_of(one) is JobScheduler.SLURM
        for job in one.jobs
        if job.stage is JobStage.SUBMITTED
    ]
    if not alive:
        return ""
    from commtune.cluster.slurm import site  # imported here, because only jobs need it

    return site.explain_silent_accounts(os.environ)


def scheduler_of(campaign: CampaignSummary) -> JobScheduler:
    """Returns the scheduler of a campaign; Slurm for one without jobs."""
    return JobScheduler.find_in(campaign.settings) or JobScheduler.SLURM


def _is_asked_about(campaign: CampaignSummary, job: JobRecord) -> bool:
    """Whether to ask the scheduler about a job: no controller watches it, or one runs in it."""
    return not campaign.locked_by or job.kind is JobKind.ALLOCATION


def _is_worth_asking(campaign: CampaignSummary, job: JobRecord) -> bool:
    """Whether to ask about a job, except for those that a living controller has yet to submit."""
    return _is_asked_about(campaign, job) and bool(job.number or not campaign.locked_by)


def _without_lost_controller(campaign: CampaignSummary) -> CampaignSummary:
    """Drops the lock and unsubmitted jobs if the allocation of the lock's holder is over."""
    began = [job for job in campaign.jobs if job.kind is JobKind.ALLOCATION and job.started_at]
    if not began or any(job.stage is not JobStage.OVER for job in began):
        return campaign
    return replace(campaign, locked_by="", jobs=tuple(j for j in campaign.jobs if j.number))


def summary_data(campaign: CampaignSummary, db: str | None) -> dict[str, Any]:
    """Returns a campaign's state as plain data, for ``status --json`` and the HTTP API."""
    from commtune.app.profiles.nominal_share import Share  # slow to import

    share = Share.of_best(campaign, db)
    return {
        **asdict(campaign),
        "state": campaign.state,
        "failed": campaign.failed,
        "lost": campaign.lost,
        "of_nominal": share.plain() if share else None,
        "node_hours_budget": node_hours_budget(campaign.settings),
        "excluded_nodes": list(excluded_nodes(campaign.settings)),
    }


def describe_best_gain(campaign: CampaignSummary, share: str = "") -> str:
    """Formats the best confirmed speedup: ``1.23x to 1.62x (1.41x, 12 pairs) at 64 KiB``.

    A profile with a note is marked, as slow runs are no part of the speedup.

    Args:
        share: what follows of its share of the nominal bandwidth.
    """
    best = campaign.best
    if best is None:
        return "none confirmed"
    speedup = Interval(best.ratio, best.low, best.high, best.pairs)
    said = text.describe_speedup(speedup, best.bytes, best.speed)
    of = best.estimand and f"of {text.describe_estimand(best.estimand)}"
    note = "see its note" if best.profile in campaign.notes else ""
    return ", ".join(filter(None, [said, of, share, note]))


def sort_jobs(jobs: Iterable[JobRecord]) -> list[JobRecord]:
    """Returns jobs in the order running, submitted, not submitted."""
    return sorted(jobs, key=lambda job: (job.started_at is None, not job.number))


def describe_job(job: JobRecord) -> dict[str, str]:
    """Returns texts about a job; its state is the scheduler's own word."""
    waits = "submitted" if job.stage is JobStage.SUBMITTED else "not submitted yet"
    return {
        "job": job.number or "-",
        "for": str(job.kind) if job.block is None else f"{job.kind} {job.block}",
        "state": job.word or waits,
        "reason": "" if job.reason in _NO_REASON else job.reason,
        "nodes": job.nodes or text.format_count(job.node_count, "node"),
    }


def count_job_states(jobs: Iterable[JobRecord]) -> str:
    """Formats the numbers of jobs by state: ``3 RUNNING, 40 PENDING (Priority)``."""
    told = [describe_job(job) for job in jobs]
    counted = Counter((one["state"], one["reason"]) for one in told)
    return ", ".join(
        f"{count} {state}{f' ({reason})' if reason else ''}"
        for (state, reason), count in counted.most_common()
    )


def last_words(campaign: CampaignSummary) -> str:
    """Returns why no job continues, from the newest job's output; empty if one does."""
    allocations = [job for job in campaign.jobs if job.kind is JobKind.ALLOCATION]
    goes_on = campaign.locked_by or any(job.stage is JobStage.SUBMITTED for job in allocations)
    if goes_on or campaign.finished is not None or not campaign.folder:
        return ""
    lines: list[str] = []
    with suppress(OSError, ValueError):  # another user's, there are none, or they go meanwhile
        outputs = Path(campaign.folder).parent.glob("jobs/*/job.out")
        lines = read_tail(max(outputs, key=lambda output: output.stat().st_mtime)).splitlines()
    said = [[line for line in lines if line.startswith(sign)][-1:] for sign in _SIGNS]
    return "; ".join(line.removeprefix("commtune: ") for found in said for line in found)


def stuck_jobs(campaign: CampaignSummary) -> list[str]:
    """Returns lines about jobs that can't start by themselves, with what the user must do."""
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
    """Whether a job is submitted, but not started."""
    return job.word in _PENDING


def edited_files(campaign: CampaignSummary) -> list[str]:
    """Returns the files of a campaign that were edited after its submission; jobs use copies."""
    return job_handover.edited_files(Path(campaign.folder).parent / job_handover.COPIES)


def is_unfinished(name: str, db: str | None) -> bool:
    """Whether a campaign is stored, and has not come to its end."""
    try:
        return describe_campaign(db, name).finished is None
    except (NoAnswer, UnknownName):
        return False


def profile_data(found: ProfileAnswer) -> dict[str, Any]:
    """Returns a whole profile as plain data, for ``show --json`` and the HTTP API."""
    return {
        "id": found.id,
        "campaign": found.campaign,
        "created": found.created,
        "site": found.site,
        **asdict(found.profile),
        "pinned": found.pinned,
        "simultaneous_level": found.level,
        "strength": asdict(found.strength),
        "system": asdict(found.system),
        "stack": found.stack.text,
        "stack_fingerprint": found.stack.fingerprint,
        "stack_description": found.stack.description,
        "space": found.space,
    }


def find_stored(
    name: str, db: str | None = None, *, with_details: bool = False
) -> CampaignDescription | ProfileAnswer:
    """Returns the campaign of a name, or else the profile (``CAMPAIGN/PROFILE``, name, number).

    Args:
        with_details: as for ``load_profile``.

    Raises:
        UnknownName: there is neither.
        NoAnswer: there is no database yet.
    """
    try:
        return describe_campaign(db, name)
    except UnknownName as unknown:
        try:
            return load_profile(db, name, with_details=with_details)
        except UnknownName as error:
            raise error if "/" in name else unknown from None


def find_run(campaign: str, run: str, db: str | None) -> RunLine:
    """Returns a run of a campaign by its name, with the end of its output.

    Raises:
        UnknownName: there is no such campaign, or no such run in it.
    """
    found, _ = list_runs(db, campaign, limit=1, run=run)
    if not found:
        raise UnknownName(f"campaign {campaign} has no run {run}", hint="its runs are listed")
    return found[0]


def rename_campaign(name: str, new: str, db: str | None = None) -> None:
    """Renames a campaign; the user must also change the name in its file.

    Raises:
        UnknownName: there is no such campaign.
        UserError: the new name is invalid or taken, or jobs are not over.
        CampaignLocked: a controller works on it.
    """
    check_campaign_name(new)
    number = describe_campaign(db, name).id
    from commtune.db.connection.engine import open_database
    from commtune.db.storage import campaigns  # imported here, because readers do not need it

    with open_database(db) as opened, opened.write() as connection:
        campaigns.rename_campaign(connection, number, new)


def delete_campaign(name: str, db: str | None = None) -> None:
    """Deletes a campaign with its runs and profiles; files that jobs wrote stay on disk.

    Raises:
        UnknownName: there is no such campaign.
        UserError: some of its jobs are not over.
        CampaignLocked: a controller works on it.
    """
    number = describe_campaign(db, name).id
    from commtune.db.connection.engine import open_database
    from commtune.db.storage import campaigns  # imported here, because readers do not need it

    with open_database(db) as opened, opened.write() as connection:
        campaigns.delete_campaign(connection, number)
