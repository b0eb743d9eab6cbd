"""What a night on a cluster brings, to blocks that are jobs: nothing is lost, and it is said."""

from __future__ import annotations

import re
import shutil
import signal
from dataclasses import replace
from functools import partial

import psutil
import pytest
from left_over import living
from slurm_campaigns import ONE_BLOCK, ONE_CANDIDATE, Death, OnSlurm, with_long_runs
from slurm_scripts import shown

#: Runs that last long enough to be hit by something.
_LONG = with_long_runs(ONE_CANDIDATE, 0.3)
_FAILED_JOBS = "SELECT number FROM jobs WHERE word = 'NODE_FAIL'"


def _whole_confirmation(campaign: OnSlurm) -> None:
    """The blocks that were asked for were made, whatever became of others."""
    whole = campaign.query(
        "SELECT count(*) FROM (SELECT block FROM runs WHERE phase = 'confirm' AND outcome = 'ok' "
        "GROUP BY block HAVING count(*) = 2)"
    )
    assert whole >= [(7,)]


def _is_over(campaign: OnSlurm, number: str) -> bool:
    return number not in campaign.open_jobs()


def test_slurmctld_is_away_for_a_while(campaign: OnSlurm) -> None:
    # No run of a busy machine is over its time.
    campaign.write(ONE_CANDIDATE + "run_time_limit: 60s\n")
    with campaign.tuning() as tuning:
        # A step that ended meanwhile would tell it a minute later, and keep its nodes until then.
        job = tuning.until_at_gate("confirm")
        campaign.cluster.stop_controller()
        campaign.open_gate()
        # Steps can't be made.
        tuning.until((campaign.job_folder(job) / "waited").exists, "its first run was refused")
        tuning.until_said("asking again")
        campaign.cluster.start_controller()
        err = tuning.ended()
    assert "Slurm's controller does not answer" in err
    assert "Slurm answers again\n" in err
    campaign.check_whole(lost=False)
    # The block waited, and tried again.
    assert set(campaign.outcomes()) == {"ok"}
    _whole_confirmation(campaign)


def test_slurmdbd_is_away_for_a_while(campaign: OnSlurm) -> None:
    campaign.write(ONE_CANDIDATE)
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
    _whole_confirmation(campaign)


@pytest.mark.alone
def test_a_node_dies_twice_and_is_left_out(campaign: OnSlurm) -> None:
    campaign.write(_LONG)
    cluster = campaign.cluster
    cluster.call("scontrol", "update", "nodename=n3", "state=drain", "reason=test")
    lost: list[str] = []
    with campaign.tuning() as tuning:
        while len(lost) < 2:
            number = tuning.until_measuring("confirm")
            cluster.fail_node("n2")
            tuning.until(partial(_is_over, campaign, number), "the job was given up")
            # One may have come to its end just before.
            has_failed = (number,) in campaign.query(_FAILED_JOBS)
            # A node that is up again by the time that the campaign asks does not count.
            if has_failed and "(n2)" in tuning.until_said(f"job {number} lost a node"):
                lost.append(number)
            if len(lost) == 2:
                cluster.call("scontrol", "update", "nodename=n3", "state=resume")
            cluster.restore_node("n2")
        err = tuning.ended()
    first = lost[0]
    assert f"job {first} lost a node (n2): its runs are re-run\n" in err
    # Several jobs are in flight: what the second failure hit may have been two of them.
    (counted,) = re.findall(r"node n2 failed in 2 jobs \((\d+), (\d+)\) and is left out", err)
    assert set(counted) <= {n for (n,) in campaign.query(_FAILED_JOBS)}, err
    campaign.check_whole()
    assert set(campaign.outcomes()) == {"ok", "node-failure"}
    _whole_confirmation(campaign)
    ended = "block = (SELECT max(block) FROM runs)"
    assert campaign.query(f"SELECT DISTINCT nodes, distance FROM runs WHERE {ended}") == [
        ("n1,n3", "same-group")
    ]


def test_submissions_are_refused_for_a_while_and_a_job_is_held(campaign: OnSlurm) -> None:
    campaign.write(ONE_CANDIDATE)
    cluster = campaign.cluster
    with campaign.tuning() as tuning:
        tuning.until_running()
        cluster.refuse_submissions()
        tuning.until_said("Slurm starts no jobs there for now; trying again\n")
        cluster.refuse_submissions(False)
        tuning.until_at_gate("confirm")
        held = next(job.number for job in campaign.jobs() if job.word == "PENDING")
        cluster.call("scontrol", "hold", held)
        campaign.open_gate()
        tuning.until_said(f"job {held} is held (JobHeldAdmin): 'scontrol release {held}'\n")
        cluster.call("scontrol", "release", held)
        err = tuning.ended()
    assert "Slurm accepts jobs again\n" in err
    campaign.check_whole(lost=False)
    _whole_confirmation(campaign)


def test_jobs_that_do_not_start_are_said_and_given_up(campaign: OnSlurm) -> None:
    asked = "poll: 0.3s, pending_time: 7s, block_time: 2min, reservation: soon"
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
        assert f"no job started within 7.00 s ('pending_time'): {pending}" in err
        assert "a shorter 'block_time' or a longer 'pending_time'" in err
        assert campaign.all_over()
    finally:
        campaign.cluster.call("scontrol", "delete", "reservationname=soon")


def test_a_jobs_time_is_over_in_the_middle_of_a_run(campaign: OnSlurm) -> None:
    # Slurm looks but twice a minute which jobs are over their time.
    campaign.write(with_long_runs(ONE_BLOCK, 40.0).replace("64KiB", "16MiB"))
    with campaign.tuning() as tuning:
        campaign.cluster.reach_time_limit(tuning.until_measuring("search"))
        tuning.ended()
    campaign.check_whole()
    found = campaign.query("SELECT outcome, detail FROM runs ORDER BY position")
    number = campaign.jobs()[0].number
    assert found == [
        ("interrupted", f"cut short: job {number}: TIMEOUT (TimeLimit)"),
        *[("interrupted", f"never made: job {number}: TIMEOUT (TimeLimit)")] * 3,
    ]


def test_a_job_that_somebody_cancels_stops_the_campaign_with_a_word(campaign: OnSlurm) -> None:
    campaign.write(_LONG)
    with campaign.tuning() as tuning:
        number = tuning.until_measuring("confirm")
        campaign.cluster.call("scancel", number)
        err = tuning.ended(3)
    assert err[err.index("commtune: ") :] == (
        f"commtune: the campaign stops: job {number}: CANCELLED by root\n"
        "  what was measured is kept; the same command continues\n"
        "  'commtune cancel' ends jobs that are still there\n"
    )
    with campaign.tuning() as tuning:
        tuning.ended()
    campaign.check_whole()
    # It stopped before it handed in the next block.
    assert set(campaign.outcomes()) == {"ok", "cancelled", "interrupted"}
    _whole_confirmation(campaign)


def test_a_database_out_of_reach_while_a_job_is_in_flight(campaign: OnSlurm) -> None:
    campaign.write(ONE_BLOCK)
    elsewhere = campaign.folder / "elsewhere"
    elsewhere.mkdir()
    with campaign.tuning() as tuning:
        tuning.until_measuring("search")
        for file in campaign.database.parent.glob("commtune.db*"):
            file.rename(elsewhere / file.name)
        err = tuning.ended(3)
    assert f"the database sqlite:///{campaign.database} is gone" in err
    assert "runs keep their record files; once that is fixed, the same command continues" in err
    campaign.until_over()
    for file in elsewhere.iterdir():
        file.rename(campaign.database.parent / file.name)
    assert campaign.query("SELECT count(*) FROM runs WHERE state != 'stored'") == [(4,)]
    with campaign.tuning() as tuning:
        tuning.ended()
    campaign.check_whole(lost=False)
    assert campaign.outcomes() == {"ok": 4}


def test_a_site_without_accounts(dying: OnSlurm) -> None:
    campaign = replace(dying, extra={"SLURM_CONF": dying.cluster.without_accounting["SLURM_CONF"]})
    campaign.write(ONE_BLOCK)
    death = Death("commtune.cluster.slurm.client:SlurmScheduler.submit")
    campaign.dies(death)
    campaign.until_over()
    with campaign.tuning() as tuning:
        tuning.ended()
    campaign.check_whole(lost=False)
    ((hours,),) = campaign.query("SELECT node_hours FROM jobs")
    ((spent,),) = campaign.query("SELECT sum(wall_s) * 2 / 3600 FROM runs")
    assert hours > spent


def test_an_answer_of_sbatch_is_lost(campaign: OnSlurm) -> None:
    campaign.lossy_sbatch()
    campaign.lose_an_answer()
    campaign.write(ONE_BLOCK)
    with campaign.tuning() as tuning:
        err = tuning.ended()
    assert "Socket timed out on send/recv operation; trying again\n" in err
    assert "Slurm accepts jobs again\n" in err
    campaign.check_whole(lost=False)
    assert len(campaign.jobs()) == 1


def test_an_sbatch_outlives_its_controller(dying: OnSlurm) -> None:
    dying.write(ONE_BLOCK)
    dying.order_deaths([Death("commtune.cluster.slurm.client:SlurmScheduler.submit", "stop")])
    with dying.tuning() as tuning:
        tuning.until(lambda: psutil.Process(tuning.child.pid).status() == "stopped", "it stopped")
        dying.cluster.pause_controller()
        tuning.child.send_signal(signal.SIGCONT)
        tuning.until(lambda: living(f"{dying.folder}/data"), "sbatch asks")
        tuning.child.kill()
        tuning.child.wait()
    dying.order_deaths([])
    dying.cluster.resume_controller()
    with dying.tuning() as tuning:
        tuning.ended()
    dying.check_whole(lost=False)
    assert len(dying.jobs()) == 1


def test_files_that_are_seen_late_count_whatever_became_of_the_job(campaign: OnSlurm) -> None:
    # What the node writes from here on is seen here when the test says so.
    hides = "mkdir -p $HOME/late; mount --bind $HOME/late $PWD; "
    text = ONE_BLOCK.replace("before: '", f"after: exit 7, before: '{hides}")
    campaign.write(text.replace("late_files: 3s", "late_files: 60s"))
    with campaign.tuning() as tuning:
        tuning.until(lambda: any(job.word == "FAILED" for job in campaign.jobs()), "its job ended")
        campaign.pause(1.5)
        (job,) = campaign.jobs()
        for file in (campaign.folder / "late").iterdir():
            shutil.copy(file, campaign.job_folder(job.number))
        tuning.ended()
    campaign.check_whole(lost=False)
    assert campaign.outcomes() == {"ok": 4}
