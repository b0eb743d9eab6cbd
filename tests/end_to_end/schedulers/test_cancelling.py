"""``commtune cancel`` on real schedulers: it ends what is the campaign's, and nothing else."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from campaign_texts import ONE_BLOCK, ONE_CANDIDATE
from cluster_campaigns import OnCluster
from slurm_config import NODES
from small_disks import fill


def _foreign(campaign: OnCluster) -> str:
    """A job that is not the campaign's, whatever its name seems to say."""
    (ours, *_) = [job for job in campaign.jobs() if not job.is_over]
    assert len(ours.key) == 16
    return campaign.cluster.submit_foreign(f"commtune-small-{'0' * 16}")


def test_blocks_end_and_a_job_of_somebody_else_does_not(campaign: OnCluster) -> None:
    campaign.write_without_mpi(ONE_CANDIDATE)
    with campaign.tuning() as tuning:
        tuning.until_at_gate("confirm")
        foreign = _foreign(campaign)
        campaign.succeed("cancel", "small")
        # Its controller sees that, and hands in no more.
        assert "commtune: the campaign stops: 'commtune cancel' ended it" in tuning.ended(3)
    assert campaign.all_over()
    assert campaign.cluster.is_there(foreign)
    assert campaign("cancel", "small").out == f"small: it has no jobs in {campaign.words.name}\n"

    # Slurm's numbers are used again: what the book says of ours is now somebody else's.
    with closing(sqlite3.connect(campaign.database)) as connection, connection:
        connection.execute(f"UPDATE jobs SET number = '{foreign}' WHERE stage != 'over'")
    campaign.succeed("cancel", "small")
    campaign.open_gate()
    with campaign.tuning() as tuning:
        tuning.ended()
    campaign.check_whole()
    assert campaign.cluster.is_there(foreign)


def test_an_allocation_and_the_one_that_waits_for_it(campaign: OnCluster) -> None:
    # Long enough not to be over before it is cancelled.
    campaign.write_without_mpi(ONE_CANDIDATE.replace("confirmation: 1s", "confirmation: 40s"))
    campaign.succeed("submit", "campaign.yaml")
    campaign.until(lambda: len(campaign.jobs()) == 2, "the next allocation")
    # What lasts less than a second has no node-hours: schedulers count whole ones.
    campaign.until(lambda: campaign.records(), "a run, which is after the first second")
    ended = campaign.succeed("cancel", "small")
    first, second = sorted((job.number for job in campaign.jobs()), key=int)
    assert f"small: jobs {first}, {second} ended; what was measured is kept\n" in ended.out
    assert campaign.all_over()
    said = campaign("status").out
    assert "\n  'commtune cancel small' ended it; what was measured is kept\n  next: " in said
    campaign.check_runs()
    hours = campaign.query("SELECT stage, node_hours > 0 FROM jobs ORDER BY prepared_at")
    assert hours == [("over", 1), ("over", 0)]
    campaign.write_without_mpi(ONE_CANDIDATE)
    campaign.succeed("submit", "campaign.yaml")
    campaign.until_over()
    campaign.check_whole()


def test_a_controller_at_its_submit_limit_is_told_first(campaign: OnCluster) -> None:
    campaign.write_without_mpi(ONE_CANDIDATE)
    with campaign.tuning() as tuning:
        tuning.until_measuring("search")
        campaign.cluster.limit_submissions(2)
        # Blocks that have no job yet get one as soon as there is room.
        tuning.until_said(campaign.words.is_full)
        campaign.close_gate()
        campaign.pause(2)
        before = campaign.cluster.count_submissions()
        campaign.pause(3)
        # One back-off for all of them, not one for each.
        assert campaign.cluster.count_submissions() - before <= 3
        campaign.open_gate()
        campaign.succeed("cancel", "small")
        assert campaign.query("SELECT * FROM locks") == []
        assert campaign.all_over()
        known = len(campaign.jobs())
        tuning.ended(3)
    campaign.cluster.limit_submissions(None)
    campaign.pause(1)
    assert len(campaign.jobs()) == known


def test_a_full_disk_is_said_and_jobs_end_all_the_same(campaign: OnCluster) -> None:
    data = campaign.on_small_disk()
    for node in NODES:
        campaign.cluster.drain_node(node)
    campaign.write(ONE_BLOCK)
    campaign.succeed("submit", "campaign.yaml")
    with closing(sqlite3.connect(campaign.database)) as controller:
        controller.execute("SELECT * FROM jobs")  # as a controller has it open
        full = fill(data)
        ended = campaign("cancel", "small")
    (job,) = campaign.jobs()
    assert job.word == "CANCELLED", ended.err
    assert ended.out == f"small: job {job.number} ended; what was measured is kept\n"
    assert ended.code == 3
    assert "that small was cancelled could not be written down: " in ended.err
    full.unlink()
    assert campaign("cancel", "small").out == f"small: it has no jobs in {campaign.words.name}\n"
    # Nobody has it open: SQLite can't make the files that it needs for reading, either.
    campaign.succeed("submit", "campaign.yaml")
    fill(data)
    ended = campaign("cancel", "small")
    assert campaign.all_over(), ended.err
    assert (ended.code, ended.out.count(" ended; what was measured is kept\n")) == (3, 1)
    assert "that small was cancelled could not be written down: " in ended.err
