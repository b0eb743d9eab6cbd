"""What ``commtune status`` says in each moment: what is so, what follows, what to type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import database_values as given
import pytest

from commtune.app.campaigns.next_steps import describe_next_steps
from commtune.app.campaigns.stored import list_campaigns
from commtune.db.storage.store import Store
from commtune.model import JobKind, JobRecord, JobStage

#: Puts a campaign into a moment, in the database or its folder; returns whether Slurm is silent.
_Moment = Callable[[Store, int, Path], bool]

_RUNS = given.job(
    "runs",
    kind=JobKind.ALLOCATION,
    block=None,
    stage=JobStage.SUBMITTED,
    number="7",
    word="RUNNING",
    started_at=5.0,
)
_WAITS = replace(_RUNS, key="waits", number="8", word="PENDING", started_at=None, prepared_at=9.0)
_UNSUBMITTED = replace(_WAITS, stage=JobStage.PREPARED, number="", word="")
_BLOCK = given.job("block", stage=JobStage.SUBMITTED, number="9", word="PENDING", started_at=None)


def _held_by_a_controller(*jobs: JobRecord, silent: bool = False) -> _Moment:
    def begin(store: Store, campaign_id: int, _: Path) -> bool:
        store.lock(campaign_id)
        for job in jobs:
            store.job_book(campaign_id).put_job(job)
        return silent

    return begin


def _left(*jobs: JobRecord, said: str = "", cancelled: bool = False) -> _Moment:
    def begin(store: Store, campaign_id: int, folder: Path) -> bool:
        for job in jobs:
            store.job_book(campaign_id).put_job(job)
        output = folder / "jobs" / "runs" / "job.out"
        output.parent.mkdir(parents=True)
        output.write_text(said)
        if cancelled:
            (folder / "cancelled").touch()
        return False

    return begin


def _finished(store: Store, campaign_id: int, _: Path) -> bool:
    store.finish_campaign(campaign_id)
    return False


_OVER = replace(_RUNS, stage=JobStage.OVER, word="FAILED", node_hours=1.0)
_HELD = replace(_WAITS, reason="JobHeldUser")
_CONTINUES = "next: 'commtune tune' or 'commtune submit' with its file continues it"
_ENDS = "'commtune cancel shm' ends it"
_MOMENTS: dict[str, tuple[_Moment, list[str]]] = {
    "submitted": (
        _left(_WAITS),
        [f"next: job 8 starts when the scheduler lets it; {_ENDS}"],
    ),
    "held": (_left(_HELD), ["job 8 is held (JobHeldUser): 'scontrol release 8'"]),
    "before its first good run": (
        _held_by_a_controller(_RUNS),
        [f"next: the next job is submitted after the first run that succeeds; {_ENDS}"],
    ),
    "chained": (
        _held_by_a_controller(_RUNS, _WAITS),
        [f"next: job 8 continues when job 7 is over; {_ENDS}"],
    ),
    "MaxSubmitJobs reached in an allocation": (
        _held_by_a_controller(_RUNS, _UNSUBMITTED),
        [
            "next: no further job is accepted yet, so job 7 is requeued at the end of its time; "
            f"{_ENDS}"
        ],
    ),
    "MaxSubmitJobs reached on the login node": (
        _held_by_a_controller(_BLOCK, replace(_BLOCK, key="more", number="", word="")),
        [
            "next: the others are submitted when Slurm accepts them; a lower 'jobs' in its file "
            "submits fewer at once; 'commtune cancel shm' ends them"
        ],
    ),
    "pending": (
        _held_by_a_controller(_BLOCK),
        [
            "next: Slurm starts them in turn; in another 'partition', or with a shorter "
            "'block_time', they may start sooner; 'commtune cancel shm' ends them"
        ],
    ),
    "slurmctld away": (
        _held_by_a_controller(_RUNS, silent=True),
        [
            "Slurm does not answer: these jobs, and their controller, may be over",
            "next: jobs wait until it answers, then continue; check it with 'scontrol ping', then "
            "run 'commtune status' again",
        ],
    ),
    "chain ended": (
        _left(_OVER, said="search: 1 trial\nno job continues: QOS limit\n"),
        ["the last job said: no job continues: QOS limit", _CONTINUES],
    ),
    "lock holder's job over, its words lost": (
        _left(_OVER),
        ["no controller works on it", _CONTINUES],
    ),
    "cancelled": (
        _left(_OVER, cancelled=True),
        ["'commtune cancel shm' ended it; what was measured is kept", _CONTINUES],
    ),
    "controller on the login node killed": (
        _left(_BLOCK),
        [
            "no controller works on it",
            "next: these jobs end, and 'commtune tune' with its file reads what they measured; "
            "'commtune cancel shm' ends them",
        ],
    ),
    "finished, its node-hours spent": (
        _finished,
        [
            "next: 'commtune report shm'; to measure more, raise 'budget' or 'node_hours' in its "
            "file and submit it again"
        ],
    ),
}


_QUEUED = replace(_WAITS, word="Q")
_PBS_MOMENTS: dict[str, tuple[_Moment, list[str]]] = {
    "submitted": (
        _left(_QUEUED),
        [f"next: job 8 starts when the scheduler lets it; {_ENDS}"],
    ),
    "held": (
        _left(replace(_QUEUED, word="H", reason="Hold_Types=u")),
        ["job 8 is held (Hold_Types=u): 'qrls 8'"],
    ),
    "more than the machine has": (
        _left(replace(_QUEUED, reason="Can Never Run: Insufficient ncpus")),
        [
            "job 8 will not start, it requests what it can't get (Can Never Run: Insufficient "
            "ncpus): 'commtune cancel shm', correct 'pbs:' in its file, then submit it again"
        ],
    ),
    "chained": (
        _held_by_a_controller(_RUNS, replace(_QUEUED, word="H")),
        [f"next: job 8 continues when job 7 is over; {_ENDS}"],
    ),
    "max_queued reached in an allocation": (
        _held_by_a_controller(_RUNS, _UNSUBMITTED),
        [
            "next: no further job is accepted yet; if none is by the end of job 7, 'commtune "
            f"submit' with its file continues it; {_ENDS}"
        ],
    ),
    "pending": (
        _held_by_a_controller(replace(_BLOCK, word="Q")),
        [
            "next: PBS starts them in turn; in another 'queue', or with a shorter 'block_time', "
            "they may start sooner; 'commtune cancel shm' ends them"
        ],
    ),
}


_TOLD = [
    *(pytest.param("slurm", *told, id=moment) for moment, told in _MOMENTS.items()),
    *(pytest.param("pbs", *told, id=f"{moment} on PBS") for moment, told in _PBS_MOMENTS.items()),
]


@pytest.mark.parametrize(("scheduler", "begin", "expected"), _TOLD)
def test_a_moment_is_told(
    store: Store, url: str, tmp_path: Path, scheduler: str, begin: _Moment, expected: list[str]
) -> None:
    folder = tmp_path / "campaign"
    folder.mkdir()
    record = given.campaign("shm", settings={"node_hours": 64, scheduler: {}})
    campaign_id = store.open_campaign(replace(record, folder=str(folder / "runs"))).id
    is_silent = begin(store, campaign_id, folder)
    (campaign,) = list_campaigns(url)
    assert describe_next_steps(campaign, is_old=is_silent) == expected
