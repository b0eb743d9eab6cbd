"""``commtune cancel`` on a real Slurm: it ends what is the campaign's, and nothing else."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress

from slurm_campaigns import ONE_BLOCK, ONE_CANDIDATE, OnSlurm
from slurm_cluster import NODES


def _foreign(campaign: OnSlurm) -> str:
    """A job that is not the campaign's, whatever its name seems to say."""
    (ours, *_) = [job for job in campaign.jobs() if not job.is_over]
    name = f"commtune-small-{'0' * 16}"
    assert len(ours.key) == 16
    return campaign.cluster.submit("exec sleep 600", f"--job-name={name}", "-N1", "-w", "n3")


def test_blocks_end_and_a_job_of_somebody_else_does_not(campaign: OnSlurm) -> None:
    campaign.write(ONE_CANDIDATE)
    with campaign.tuning() as tuning:
        tuning.until_at_gate("confirm")
        foreign = _foreign(campaign)
        ended = campaign("cancel", "small")
        assert ended.code == 0, ended.err
        # Its controller sees that, and hands in no more.
        assert "commtune: the campaign stops: 'commtune cancel' ended it" in tuning.ended(3)
    assert campaign.all_over()
    campaign.cluster.until(foreign, "RUNNING")
    assert campaign("cancel", "small").out == "small: it has no jobs in Slurm\n"

    # Slurm's numbers are used again: what the book says of ours is now somebody else's.
    with closing(sqlite3.connect(campaign.database)) as connection, connection:
        connection.execute(f"UPDATE jobs SET number = '{foreign}' WHERE stage != 'over'")
    assert campaign("cancel", "small").code == 0
    campaign.open_gate()
    with campaign.tuning() as tuning:
        tuning.ended()
    campaign.check_whole()
    campaign.cluster.until(foreign, "RUNNING")


def test_an_allocation_and_the_one_that_waits_for_it(campaign: OnSlurm) -> None:
    campaign.write(ONE_CANDIDATE)
    assert campaign("submit", "campaign.yaml").code == 0
    campaign.until(lambda: len(campaign.jobs()) == 2, "the next allocation")
    # What lasts less than a second has no node-hours: Slurm counts whole ones.
    used = ("squeue", "--noheader", "--states=RUNNING", "--format=%M")
    campaign.until(lambda: campaign.cluster.call(*used).strip() > "0:00", "a second")
    ended = campaign("cancel", "small")
    assert ended.code == 0, ended.err
    first, second = sorted(job.number for job in campaign.jobs())
    assert f"small: jobs {first}, {second} ended; what was measured is kept\n" in ended.out
    assert campaign.all_over()
    said = campaign("status").out
    assert "\n  'commtune cancel small' ended it; what was measured is kept\n  next: " in said
    campaign.check_runs()
    hours = campaign.query("SELECT stage, node_hours > 0 FROM jobs ORDER BY prepared_at")
    assert hours == [("over", 1), ("over", 0)]
    assert campaign("submit", "campaign.yaml").code == 0
    campaign.until_over()
    campaign.check_whole()


def test_a_controller_at_its_submit_limit_is_told_first(campaign: OnSlurm) -> None:
    campaign.write(ONE_CANDIDATE)
    with campaign.tuning() as tuning:
        tuning.until_measuring("search")
        campaign.cluster.limit_submissions(2)
        # Blocks that have no job yet get one as soon as there is room.
        tuning.until_said("Slurm accepts no more jobs from you for now; trying again")
        campaign.close_gate()
        campaign.pause(2)
        before = campaign.cluster.count_requests("SUBMIT_BATCH_JOB")
        campaign.pause(3)
        # One back-off for all of them, not one for each.
        assert campaign.cluster.count_requests("SUBMIT_BATCH_JOB") - before <= 3
        campaign.open_gate()
        ended = campaign("cancel", "small")
        assert ended.code == 0, ended.err
        assert campaign.query("SELECT * FROM locks") == []
        assert campaign.all_over()
        known = len(campaign.jobs())
        tuning.ended(3)
    campaign.cluster.limit_submissions(None)
    campaign.pause(1)
    assert len(campaign.jobs()) == known


def test_a_full_disk_is_said_and_jobs_end_all_the_same(campaign: OnSlurm) -> None:
    data = campaign.folder / "data"
    data.mkdir(exist_ok=True)
    campaign.cluster.call("mount", "-t", "tmpfs", "-o", "size=3m", "none", str(data))
    try:
        for node in NODES:
            drain = ("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")
            campaign.cluster.call(*drain)
        campaign.write(ONE_BLOCK)
        assert campaign("submit", "campaign.yaml").code == 0
        with closing(sqlite3.connect(campaign.database)) as controller:
            controller.execute("SELECT * FROM jobs")  # as a controller has it open
            with suppress(OSError), (data / "full").open("wb", buffering=0) as file:
                while file.write(bytes(4096)):
                    pass
            ended = campaign("cancel", "small")
        (job,) = campaign.jobs()
        assert job.word == "CANCELLED", ended.err
        assert ended.out == f"small: job {job.number} ended; what was measured is kept\n"
        assert ended.code == 3
        assert "that small was cancelled could not be written down: " in ended.err
        (data / "full").unlink()
        assert campaign("cancel", "small").out == "small: it has no jobs in Slurm\n"
        # Nobody has it open: SQLite can't make the files that it needs for reading, either.
        assert campaign("submit", "campaign.yaml").code == 0
        with suppress(OSError), (data / "full").open("wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
        ended = campaign("cancel", "small")
        assert campaign.all_over(), ended.err
        assert (ended.code, ended.out.count(" ended; what was measured is kept\n")) == (3, 1)
        assert "that small was cancelled could not be written down: " in ended.err
    finally:
        campaign.cluster.call("umount", "--lazy", str(data))
