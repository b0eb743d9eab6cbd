"""Campaigns that Slurm runs: submit, try, cancel."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from commtune.app.tuning import prepare_campaign
from commtune.campaign.file import CampaignSpec
from commtune.cluster.jobs.cancellation import Cancelled
from commtune.db.codec import list_differences, to_json_value
from commtune.db.connection.location import database_url
from commtune.db.queries.description import describe_campaign
from commtune.errors import EnvironmentFault, MissingComponent, NoAnswer, UnknownName, UserError
from commtune.tuner.ports import Reporter
from commtune.wiring import campaign_control, campaign_records, slurm_submission
from commtune.wiring.slurm_campaign import SlurmCampaign

#: Of the shortest allocation: starting, a first run of unknown length, and ending cleanly.
_SHORTEST_S = 120.0


@dataclass(frozen=True)
class SubmittedJob:
    """A job that was submitted: its number, and the file that it prints to."""

    campaign: str
    number: str
    output: Path


def prepare_on_slurm(spec: CampaignSpec, db: str | None, reporter: Reporter) -> SlurmCampaign:
    """A campaign on Slurm; its benchmark is built if it wasn't.

    Raises:
        CampaignError: the file is wrong, or says nothing of Slurm.
    """
    spec, mpi = prepare_campaign(spec, database_url(db))
    for remark in spec.remarks:
        reporter.say(remark)
    on = slurm_submission.prepare_slurm_campaign(spec, mpi, reporter.say)
    if hint := slurm_submission.system_hint(on):
        reporter.say(hint)
    return on


def submit_campaign(on: SlurmCampaign, db: str | None) -> SubmittedJob:
    """Submits an allocation in which the campaign runs; further ones follow until it is done.

    Raises:
        UserError: the job would measure nothing, or one is there already.
        EnvironmentFault: Slurm takes no job.
    """
    _refuse_useless(on, db)
    with campaign_control.opened_database(db) as opened:
        job = slurm_submission.submit_campaign(on, opened)
    return SubmittedJob(on.spec.plan.name, job.number, Path(job.folder) / "job.out")


def _refuse_useless(on: SlurmCampaign, db: str | None) -> None:
    """A job that would measure nothing still waits in the queue, perhaps for hours."""
    time_s = on.request.time_s
    if time_s is not None and time_s < _SHORTEST_S:
        raise UserError(
            f"slurm.time: {time_s:g} s is too short to measure anything in an allocation",
            hint=f"at least {_SHORTEST_S / 60:g}min; better an hour or more",
        )
    try:
        stored = describe_campaign(database_url(db), on.spec.plan.name)
    except (UnknownName, NoAnswer):
        return
    record = campaign_records.slurm_record(on)
    is_same = not list_differences(stored.settings, to_json_value(record.settings))
    if stored.finished is not None and is_same:
        raise UserError(
            f"campaign {record.name} is finished: there is nothing left to measure",
            hint=f"give it a larger 'budget' in {on.spec.file}, or another name",
        )


def try_script(on: SlurmCampaign, script: str) -> str:
    """What ``sbatch --test-only`` says of a script.

    Raises:
        EnvironmentFault: there is no sbatch here.
        SlurmFault: Slurm would not take it.
    """
    try:
        return slurm_submission.test_script(on, script)
    except MissingComponent as error:
        raise EnvironmentFault(
            "there is no sbatch here to ask", hint="try it on a login node"
        ) from error


def cancel_campaign(name: str, db: str | None) -> Cancelled:
    """Ends what of a campaign is with Slurm; what was measured is kept.

    Raises:
        UnknownName: there is no such campaign.
        SlurmFault: Slurm gives no answer.
    """
    with campaign_control.opened_database(db) as opened:
        return slurm_submission.cancel_campaign(
            describe_campaign(database_url(db), name).id, opened
        )
