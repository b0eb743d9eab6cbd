"""What a night on a cluster brings, to blocks that are jobs: nothing is lost, and it is said."""

from __future__ import annotations

import signal

import psutil
from campaign_texts import ONE_BLOCK, ONE_CANDIDATE, with_run_limit
from cluster_campaigns import Death, OnCluster
from left_over import living

#: The first run lasts longer than its job may.
_LONG_FIRST = 'mkdir "$HOME/first.$SLURM_PROCID$PMI_RANK" 2>/dev/null && exec sleep 600'
_INTERRUPTED = ("cut short", "never made")


def test_the_server_is_away_for_a_while(campaign: OnCluster) -> None:
    campaign.write_without_mpi(ONE_CANDIDATE)
    with campaign.tuning() as tuning:
        # A step that ended meanwhile would tell it a minute later, and keep its nodes until then.
        job = tuning.until_at_gate("confirm")
        campaign.cluster.stop_controller()
        campaign.open_gate()
        if campaign.words.steps_need_it:
            refused = campaign.job_folder(job) / "waited"
            tuning.until(refused.exists, "its first run was refused")
        tuning.until_said("asking again")
        campaign.cluster.start_controller()
        err = tuning.ended()
    assert campaign.words.silent in err
    assert f"{campaign.words.name} answers again\n" in err
    campaign.check_whole(lost=False)
    # The block waited, and tried again.
    assert set(campaign.outcomes()) == {"ok"}
    campaign.check_confirmation()


def test_submissions_are_refused_for_a_while_and_a_job_is_held(campaign: OnCluster) -> None:
    campaign.write_without_mpi(ONE_CANDIDATE)
    cluster = campaign.cluster
    campaign.close_gate()
    with campaign.tuning() as tuning:
        tuning.until_running()
        cluster.refuse_submissions()
        campaign.open_gate()
        tuning.until_said(campaign.words.refuses)
        cluster.refuse_submissions(False)
        tuning.until_at_gate("confirm")
        held = tuning.until_one(
            lambda: [job.number for job in campaign.jobs() if job.word == "PENDING"], "one waits"
        )
        cluster.hold(held)
        campaign.open_gate()
        tuning.until_said(campaign.words.is_held.format(held))
        cluster.release(held)
        err = tuning.ended()
    assert f"{campaign.words.name} accepts jobs again\n" in err
    campaign.check_whole(lost=False)
    campaign.check_confirmation()


def test_a_jobs_time_is_over_in_the_middle_of_a_run(campaign: OnCluster) -> None:
    # Schedulers look but twice a minute which jobs are over their time.
    campaign.write_without_mpi(with_run_limit(ONE_BLOCK, "10min"), _LONG_FIRST)
    with campaign.tuning() as tuning:
        number = tuning.until_measuring("search")
        campaign.cluster.reach_time_limit(number)
        tuning.ended()
    campaign.check_whole()
    found = campaign.query(
        "SELECT outcome, runs.detail FROM runs JOIN jobs ON jobs.block = runs.block "
        f"WHERE number = '{number}' ORDER BY position"
    )
    why = campaign.words.over_time.format(number)
    cut_short, never_made = (("interrupted", f"{what}: {why}") for what in _INTERRUPTED)
    assert found == [cut_short, *[never_made] * 3]


def test_a_job_that_somebody_cancels_stops_the_campaign_with_a_word(campaign: OnCluster) -> None:
    # Who did it, accounts say that a user's campaigns share: some seconds later.
    campaign.write_without_mpi(ONE_CANDIDATE.replace("files: 3s", "files: 60s"), "sleep 0.6")
    with campaign.tuning() as tuning:
        number = tuning.until_measuring("confirm")
        campaign.cluster.cancel(number)
        err = tuning.ended(3)
    said = err[err.index("commtune: ") :]
    assert said.startswith(
        f"commtune: the campaign stops: {campaign.words.cancelled.format(number)}"
    )
    assert said.partition("\n")[2] == (
        "  what was measured is kept; the same command continues\n"
        "  'commtune cancel' ends jobs that are still there\n"
    )
    with campaign.tuning() as tuning:
        tuning.ended()
    campaign.check_whole()
    # It stopped before it handed in the next block.
    assert set(campaign.outcomes()) == {"ok", "cancelled", "interrupted"}
    campaign.check_confirmation()


def test_a_database_out_of_reach_while_a_job_is_in_flight(campaign: OnCluster) -> None:
    campaign.write_without_mpi(ONE_BLOCK)
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


def test_an_answer_to_a_submission_is_lost(campaign: OnCluster) -> None:
    campaign.lose_answers()
    campaign.lose_an_answer()
    campaign.write_without_mpi(ONE_BLOCK)
    with campaign.tuning() as tuning:
        err = tuning.ended()
    assert campaign.words.answer_is_lost in err
    assert f"{campaign.words.name} accepts jobs again\n" in err
    campaign.check_whole(lost=False)
    assert len(campaign.jobs()) == 1


def test_a_submission_outlives_its_controller(dying: OnCluster) -> None:
    dying.write_without_mpi(ONE_BLOCK)
    dying.order_deaths([Death("submit", "stop")])
    with dying.tuning() as tuning:
        tuning.until(lambda: psutil.Process(tuning.child.pid).status() == "stopped", "it stopped")
        dying.cluster.pause_controller()
        tuning.child.send_signal(signal.SIGCONT)
        tuning.until(lambda: living(f" {dying.folder}/data"), "the submission asks")
        tuning.child.kill()
        tuning.child.wait()
    dying.order_deaths([])
    dying.cluster.resume_controller()
    with dying.tuning() as tuning:
        tuning.ended()
    dying.check_whole(lost=False)
    assert len(dying.jobs()) == 1


def test_files_that_are_seen_late_count_whatever_became_of_the_job(campaign: OnCluster) -> None:
    late = campaign.folder / "late"
    late.mkdir()
    late.chmod(0o1777)
    campaign.write(
        ONE_BLOCK.replace("before: '", "after: exit 7, before: '").replace(
            "late_files: 3s", "late_files: 60s"
        )
    )
    campaign.close_gate()
    with campaign.tuning() as tuning:
        number = tuning.until_running()
        tuning.until(campaign.at_gate, "it waits")
        # What the nodes write from here on is seen here when the test says so.
        written = campaign.job_folder(number)
        campaign.cluster.on_nodes(f"mount --bind {late} {written}")
        campaign.open_gate()
        tuning.until(lambda: any(job.word == "FAILED" for job in campaign.jobs()), "its job ended")
        campaign.cluster.on_nodes(f"umount --lazy {written}")
        campaign.pause(1.5)
        for file in late.iterdir():
            file.rename(written / file.name)
        tuning.ended()
    campaign.check_whole(lost=False)
    assert campaign.outcomes() == {"ok": 4}
