"""Describes what happens next with a campaign on a scheduler, and what the user can do."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from commtune.app.campaigns.stored import (
    CampaignState,
    CampaignSummary,
    is_pending,
    last_words,
    scheduler_of,
    stuck_jobs,
)
from commtune.cluster.jobs.cancel_request import CancelRequest
from commtune.db.settings import node_hours_budget
from commtune.model import JobKind, JobRecord, JobScheduler, JobStage

#: Free disk space below which a controller waits, bytes.
_LEAST_ROOM = 65536
#: The most stuck jobs that are described.
_MOST_STUCK = 3


def describe_next_steps(
    campaign: CampaignSummary, *, is_old: bool, no_accounts: str = ""
) -> list[str]:
    """Returns lines about problems, what happens next, and commands for the user.

    Args:
        is_old: whether the scheduler doesn't answer, and jobs may be over by now.
        no_accounts: why slurmdbd doesn't answer; empty if it does.
    """
    said = _full_disk(campaign)
    alive = [job for job in campaign.jobs if job.stage is not JobStage.OVER]
    if is_old and any(job.number for job in alive):
        return [*said, *_silence(scheduler_of(campaign))]
    if no_accounts and scheduler_of(campaign) is JobScheduler.SLURM and alive:
        said.append(
            f"{no_accounts}: jobs go on, and node-hours are taken from their own times; 'sacct' "
            "says when it answers again"
        )
    if campaign.state in (CampaignState.FINISHED, CampaignState.STOPPED):
        return [*said, *_ending(campaign, [job for job in alive if job.number])]
    # The lines of stuck jobs already have commands.
    return said + (stuck_jobs(campaign)[:_MOST_STUCK] or _progress(campaign, alive))


def _full_disk(campaign: CampaignSummary) -> list[str]:
    folder = Path(campaign.folder).parent
    with suppress(OSError):
        disk = os.statvfs(folder)
        if disk.f_bavail * disk.f_frsize < _LEAST_ROOM:
            return [
                f"the disk of {folder} is full: controllers wait 5 min for room, then stop; "
                "free some space"
            ]
    return []


def _silence(kind: JobScheduler) -> list[str]:
    ping = "scontrol ping" if kind is JobScheduler.SLURM else "qstat -B"
    return [
        f"{kind.label} does not answer: these jobs, and their controller, may be over",
        f"next: jobs wait until it answers, then continue; check it with '{ping}', then run "
        "'commtune status' again",
    ]


def _ending(campaign: CampaignSummary, alive: list[JobRecord]) -> list[str]:
    name, kind = campaign.name, scheduler_of(campaign).label
    if campaign.state is CampaignState.FINISHED:
        budget = node_hours_budget(campaign.settings)
        more = "'budget'" if budget is None else "'budget' or 'node_hours'"
        return [
            f"next: 'commtune report {name}'; to measure more, raise {more} in its file and "
            "submit it again"
        ]
    again = (
        "next: 'commtune tune' or 'commtune submit' with its file continues it"
        if not alive
        else f"next: these jobs end, and 'commtune tune' with its file reads what they measured; "
        f"'commtune cancel {name}' ends them"
    )
    # It may be another user's folder.
    if os.access(CancelRequest.of(Path(campaign.folder).parent).file, os.F_OK):
        return [f"'commtune cancel {name}' ended it; what was measured is kept", again]
    words = last_words(campaign)
    if not words and campaign.jobs and campaign.jobs[-1].word and not alive:
        words = f"nothing; {kind} calls it {campaign.jobs[-1].word}"
    return [f"the last job said: {words}" if words else "no controller works on it", again]


def _progress(campaign: CampaignSummary, alive: list[JobRecord]) -> list[str]:
    allocations = [job for job in alive if job.kind is JobKind.ALLOCATION]
    kind = scheduler_of(campaign)
    if allocations:
        return [
            f"next: {_next_allocation(allocations, kind)}; 'commtune cancel {campaign.name}' "
            "ends it"
        ]
    label = kind.label
    if alive and all(is_pending(job) for job in alive):
        part = "partition" if kind is JobScheduler.SLURM else "queue"
        return [
            f"next: {label} starts them in turn; in another '{part}', or with a shorter "
            f"'block_time', they may start sooner; 'commtune cancel {campaign.name}' ends them"
        ]
    if all(job.number for job in alive):
        return []
    return [
        f"next: the others are submitted when {label} accepts them; a lower 'jobs' in its file "
        f"submits fewer at once; 'commtune cancel {campaign.name}' ends them"
    ]


def _next_allocation(allocations: list[JobRecord], kind: JobScheduler) -> str:
    """Describes which job continues: of two allocations, the second waits for the first's end."""
    first, *others = sorted(allocations, key=lambda job: (job.started_at is None, job.prepared_at))
    if not first.number:
        return "the first job is submitted"
    if not first.word or is_pending(first):
        return f"job {first.number} starts when the scheduler lets it"
    numbers = [job.number for job in others if job.number]
    if numbers:
        return f"job {numbers[0]} continues when job {first.number} is over"
    if others and kind is JobScheduler.PBS:
        return (
            f"no further job is accepted yet; if none is by the end of job {first.number}, "
            "'commtune submit' with its file continues it"
        )
    if others:
        return (
            f"no further job is accepted yet, so job {first.number} is requeued at the end of "
            "its time"
        )
    return "the next job is submitted after the first run that succeeds"
