"""What a night on Slurm brings that other schedulers don't know, to blocks that are jobs."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

from campaign_texts import ONE_BLOCK, ONE_CANDIDATE
from cluster_campaigns import Death
from slurm_campaigns import OnSlurm
from slurm_scripts import shown

_FAILED_JOBS = "SELECT number FROM jobs WHERE word = 'NODE_FAIL'"


def _is_over(campaign: OnSlurm, number: str) -> bool:
    return number not in campaign.open_jobs()


def test_slurmdbd_is_away_for_a_while(campaign: OnSlurm) -> None:
    campaign.write_without_mpi(ONE_CANDIDATE)
    told = (
        "  slurmdbd does not answer: jobs go on, and node-hours are taken from their own times; "
    )
    with campaign.tuning() as tuning:
        tuning.until_at_gate("confirm")
        assert told not in campaign("status").out
        campaign.cluster.stop_accounting()
        assert told + "'sacct' says when it answers again\n" in campaign("status").out
        campaign.cluster.start_accounting()
        campaign.open_gate()
        tuning.ended()
    campaign.check_whole(lost=False)
    campaign.check_confirmation()


def test_a_node_dies_twice_and_is_left_out(campaign: OnSlurm) -> None:
    held = campaign.folder / "held"
    campaign.write_without_mpi(
        ONE_CANDIDATE, f"sleep 0.6; while [ -e {held} ]; do sleep 0.05; done"
    )
    cluster = campaign.cluster
    cluster.call("scontrol", "update", "nodename=n3", "state=drain", "reason=test")
    lost: list[str] = []
    with campaign.tuning() as tuning:
        tuning.until_at_gate("confirm")
        while len(lost) < 2:
            number = tuning.until_one(campaign.at_gate, "a job is at the gate")
            held.touch()
            campaign.open_gate()
            tuning.until(lambda: campaign.measuring("confirm"), "its first run began")
            cluster.fail_node("n2")
            tuning.until(partial(_is_over, campaign, number), "the job was given up")
            assert (number,) in campaign.query(_FAILED_JOBS)
            # A node that is up again by the time that the campaign asks does not count.
            assert "(n2)" in tuning.until_said(f"job {number} lost a node")
            lost.append(number)
            if len(lost) < 2:
                campaign.close_gate()
            else:
                cluster.call("scontrol", "update", "nodename=n3", "state=resume")
            held.unlink()
            cluster.restore_node("n2")
        err = tuning.ended()
    first = lost[0]
    assert f"job {first} lost a node (n2): its runs are re-run\n" in err
    # Several jobs are in flight: what the second failure hit may have been two of them.
    (counted,) = re.findall(r"node n2 failed in 2 jobs \((\d+), (\d+)\) and is left out", err)
    assert set(counted) <= {n for (n,) in campaign.query(_FAILED_JOBS)}, err
    campaign.check_whole()
    assert set(campaign.outcomes()) == {"ok", "node-failure"}
    campaign.check_confirmation()
    ended = "block = (SELECT max(block) FROM runs)"
    assert campaign.query(f"SELECT DISTINCT nodes, distance FROM runs WHERE {ended}") == [
        ("n1,n3", "same-group")
    ]


def test_jobs_that_do_not_start_are_said_and_given_up(campaign: OnSlurm) -> None:
    asked = "poll: 0.3s, pending_time: 15s, block_time: 2min, reservation: soon"
    campaign.write(ONE_BLOCK.replace("poll: 0.3s", asked))
    reservation = ("reservationname=soon", "users=root", "starttime=now+1hour", "duration=60")
    campaign.cluster.call("scontrol", "create", *reservation, "nodes=n1,n2")
    try:
        with campaign.tuning() as tuning:
            said = tuning.until_said("waiting for ")
            (job,) = campaign.jobs()
            pending = f"job {job.number} is pending, Reservation (its turn has not come)\n"
            assert re.fullmatch(rf"waiting for \d+ s: {re.escape(pending)}", said), said
            assert shown(campaign.cluster, job.number)["TimeLimit"] == "00:02:00"
            err = tuning.ended(3)
        assert f"no job started within 15.0 s ('pending_time'): {pending}" in err
        assert "a shorter 'block_time' or a longer 'pending_time'" in err
        assert campaign.all_over()
    finally:
        campaign.cluster.call("scontrol", "delete", "reservationname=soon")


def test_a_site_without_accounts(dying: OnSlurm) -> None:
    campaign = replace(dying, extra={"SLURM_CONF": dying.cluster.without_accounting["SLURM_CONF"]})
    campaign.write_without_mpi(ONE_BLOCK)
    death = Death("commtune.cluster.slurm.client:SlurmScheduler.submit")
    campaign.dies(death)
    campaign.until_over()
    with campaign.tuning() as tuning:
        tuning.ended()
    campaign.check_whole(lost=False)
    ((hours,),) = campaign.query("SELECT node_hours FROM jobs")
    ((spent,),) = campaign.query("SELECT sum(wall_s) * 2 / 3600 FROM runs")
    assert hours > spent
