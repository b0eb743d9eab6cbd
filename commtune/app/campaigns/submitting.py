"""Submits campaigns as jobs of a scheduler; nothing of what runs them is imported."""

from __future__ import annotations

from pathlib import Path

from commtune.app.campaigns.preparing import prepare_campaign
from commtune.campaign.loading import CampaignSpec
from commtune.db.codec import list_differences, to_json_value
from commtune.db.connection.engine import open_database
from commtune.db.connection.location import database_url
from commtune.db.queries.description import describe_campaign
from commtune.errors import NoAnswer, UnknownName, UserError
from commtune.tuner.ports import Reporter
from commtune.wiring import job_submission
from commtune.wiring.allocations import allocation_script
from commtune.wiring.campaign_records import scheduler_campaign_record
from commtune.wiring.scheduler_campaign import SchedulerCampaign
from commtune.wiring.user_folders import campaign_folder

#: The shortest allocation, seconds: for the start, a first run of unknown length, and the end.
_SHORTEST_S = 120.0


def prepare_submission(
    spec: CampaignSpec, db: str | None, reporter: Reporter, *, is_example: bool = False
) -> SchedulerCampaign:
    """Prepares a campaign on a scheduler, and builds its benchmark if needed.

    Raises:
        CampaignError: the file is invalid, or has no section for a scheduler.
    """
    spec, mpi = prepare_campaign(spec, database_url(db))
    for remark in spec.remarks:
        reporter.say(remark)
    return job_submission.prepare_scheduler_campaign(
        spec, mpi, reporter.say, is_example=is_example
    )


def example_allocation(spec: CampaignSpec, file: Path) -> str:
    """Returns the script of the allocation in which a campaign for another machine would run."""
    folder = campaign_folder(spec.plan.name)
    return allocation_script(spec, folder, database_url(None), file).render("0" * 16)


def submit_campaign(on: SchedulerCampaign, db: str | None) -> tuple[str, Path]:
    """Submits a job in which the campaign runs; further jobs follow until it is finished.

    Returns the job's number, and the file with its output.

    Raises:
        UserError: the job would measure nothing, or there is one already.
        EnvironmentFault: the scheduler doesn't accept the job.
    """
    _refuse_useless(on, db)
    with open_database(db) as opened:
        job = job_submission.submit_campaign(on, opened)
    return job.number, Path(job.folder) / "job.out"


def _refuse_useless(on: SchedulerCampaign, db: str | None) -> None:
    """Refuses a job that would measure nothing, but could wait in the queue for hours."""
    time_s = on.request.time_s
    if time_s is not None and time_s < _SHORTEST_S:
        raise UserError(
            f"{on.kind}.time: {time_s:g} s is too short to measure anything in an allocation",
            hint=f"at least {_SHORTEST_S / 60:g}min; better an hour or more",
        )
    try:
        stored = describe_campaign(db, on.spec.plan.name)
    except (UnknownName, NoAnswer):
        return
    record = scheduler_campaign_record(on)
    is_same = not list_differences(stored.settings, to_json_value(record.settings))
    if stored.finished is not None and is_same:
        raise UserError(
            f"campaign {record.name} is finished: there is nothing left to measure",
            hint=f"give it a larger 'budget' in {on.spec.file}, or another name",
        )
