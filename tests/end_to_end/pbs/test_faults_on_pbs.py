"""What a night brings to blocks that are jobs of PBS's: nothing is lost, and it is said."""

from __future__ import annotations

import re
import signal

import psutil
import pytest
from left_over import living
from pbs_campaigns import ONE_BLOCK, ONE_CANDIDATE, OnPbs, on_pbs
from slurm_campaigns import Death, with_long_runs

_SUBMIT = "commtune.cluster.pbs.client:PbsScheduler.submit"
_STORE = "commtune.db.storage.store:Store."
_BOOK = "commtune.db.storage.results:StoredJobs."


def _write(campaign: OnPbs, text: str, **keys: str) -> None:
    campaign.write(on_pbs(text, campaign.folder, **keys))


def _whole_confirmation(campaign: OnPbs) -> None:
    whole = campaign.query(
        "SELECT count(*) FROM (SELECT block FROM runs WHERE phase = 'confirm' AND outcome = 'ok' "
        "GROUP BY block HAVING count(*) = 2)"
    )
    assert whole >= [(7,)]


def test_the_server_is_away_for_a_while(campaign: OnPbs) -> None:
    _write(campaign, ONE_CANDIDATE)
    with campaign.tuning() as tuning:
        tuning.until_at_gate("confirm")
        campaign.cluster.stop_server()
        campaign.open_gate()
        tuning.until_said("asking again")
        campaign.cluster.start_server()
        err = tuning.ended()
    assert "the PBS server does not answer" in err
    assert "PBS answers again\n" in err
    campaign.check_whole(lost=False)
    _whole_confirmation(campaign)


def test_a_node_dies_under_a_run(campaign: OnPbs) -> None:
    _write(campaign, with_long_runs(ONE_CANDIDATE, 0.3))
    campaign.cluster.order("pbsnodes", "-o", "n3")
    with campaign.tuning() as tuning:
        number = tuning.until_measuring("confirm")
        campaign.cluster.fail_node("n2")
        tuning.until(lambda: number not in campaign.open_jobs(), "the job was given up")
        campaign.cluster.order("pbsnodes", "-r", "n3")
        err = tuning.ended()
    assert f"job {number} lost a node" in err
    campaign.cluster.restore_node("n2")
    campaign.check_whole()
    assert set(campaign.outcomes()) <= {"ok", "node-failure", "never-started", "interrupted"}
    _whole_confirmation(campaign)


def test_the_queue_is_closed_and_full_for_a_while_and_a_job_is_held(campaign: OnPbs) -> None:
    _write(campaign, ONE_CANDIDATE)
    cluster = campaign.cluster
    campaign.close_gate()
    with campaign.tuning() as tuning:
        tuning.until_running()
        cluster.open_queue(False)
        campaign.open_gate()
        tuning.until_said("PBS accepts no jobs there now; trying again\n")
        cluster.open_queue(True)
        tuning.until_said("PBS accepts jobs again\n")
        tuning.until_at_gate("confirm")
        cluster.limit_jobs(1)
        campaign.open_gate()
        tuning.until_said("PBS accepts no more jobs from you now; trying again\n")
        campaign.close_gate()
        cluster.limit_jobs(None)
        tuning.until_said("PBS accepts jobs again\n")
        tuning.until(campaign.at_gate, "the next job ran")
        held = tuning.until_one(
            lambda: [job.number for job in campaign.jobs() if job.word == "PENDING"], "one waits"
        )
        cluster.call("qhold", held)
        campaign.open_gate()
        tuning.until_said(f"job {held} is held")
        cluster.call("qrls", held)
        tuning.ended()
    campaign.check_whole(lost=False)
    _whole_confirmation(campaign)


def test_jobs_that_do_not_start_are_said_and_given_up(campaign: OnPbs) -> None:
    campaign.cluster.start_jobs(False)
    _write(campaign, ONE_BLOCK, pending_time="9s", block_time="2min")
    with campaign.tuning() as tuning:
        said = tuning.until_said("waiting for ")
        (job,) = campaign.jobs()
        assert f"job {job.number} is pending, Not Running: Queue not started" in said
        assert "(the machine or partition is not available)" in said
        err = tuning.ended(3)
    assert "no job started within 9.00 s ('pending_time')" in err
    assert "below 'pbs' may help" in err
    campaign.until_over()


def test_what_can_never_run_is_cancelled_and_said(campaign: OnPbs) -> None:
    _write(campaign, ONE_BLOCK, chunk="ncpus=50")
    with campaign.tuning() as tuning:
        err = tuning.ended(3)
    assert "will not start: it requests what it can't get (Can Never Run: " in err
    assert "correct 'pbs:' in the campaign file" in err
    campaign.until_over()


def test_what_pbs_refuses_is_said_with_its_words(campaign: OnPbs) -> None:
    _write(campaign, ONE_BLOCK, queue="nowhere")
    with campaign.tuning() as tuning:
        err = tuning.ended(3)
    assert "PBS does not accept the job: qsub: PBS refuses the job: qsub: Unknown queue" in err
    assert campaign.jobs() == []


def test_a_jobs_time_is_over_in_the_middle_of_a_run(campaign: OnPbs) -> None:
    _write(campaign, with_long_runs(ONE_BLOCK, 60.0).replace("64KiB", "16MiB"), block_time="8s")
    with campaign.tuning() as tuning:
        number = tuning.until_measuring("search")
        tuning.ended()
    campaign.check_whole()
    found = campaign.query(
        "SELECT outcome, runs.detail FROM runs JOIN jobs ON jobs.block = runs.block "
        f"WHERE number = '{number}' ORDER BY position"
    )
    why = f"job {number}: F (exceeded resource walltime)"
    assert found == [
        ("interrupted", f"cut short: {why}"), *[("interrupted", f"never made: {why}")] * 3,
    ]  # fmt: skip


def test_a_job_that_somebody_deletes_stops_the_campaign_with_a_word(campaign: OnPbs) -> None:
    _write(campaign, with_long_runs(ONE_CANDIDATE, 0.3))
    with campaign.tuning() as tuning:
        number = tuning.until_measuring("confirm")
        campaign.cluster.order("qdel", number)
        err = tuning.ended(3)
    stops = f"commtune: the campaign stops: job {number}: F (terminated by root@"
    assert stops in err
    with campaign.tuning() as tuning:
        tuning.ended()
    campaign.check_whole()
    _whole_confirmation(campaign)


def test_cancel_ends_the_campaigns_jobs_and_no_other(campaign: OnPbs) -> None:
    _write(campaign, ONE_CANDIDATE)
    foreign = campaign.folder / "foreign"
    foreign.write_text(f"#PBS -N commtune-small-{'0' * 16}\n#PBS -l walltime=600\nsleep 600\n")
    with campaign.tuning() as tuning:
        number = tuning.until_at_gate("confirm")
        other = campaign.cluster.call("qsub", "-f", str(foreign)).partition(".")[0]
        in_flight = r"small: [1-4] jobs? in flight(, [1-4] not submitted yet)?; "
        assert re.search(in_flight, campaign("status").out)
        ended = campaign("cancel", "small")
        assert ended.code == 0, ended.err
        assert "commtune: the campaign stops: 'commtune cancel' ended it" in tuning.ended(3)
    campaign.until_over()
    assert other in campaign.cluster.call("qselect")
    assert campaign("cancel", "small").out == "small: it has no jobs in PBS\n"
    campaign.open_gate()
    with campaign.tuning() as tuning:
        tuning.ended()
    campaign.check_whole()
    assert other in campaign.cluster.call("qselect")
    # Of a job that ended within a second PBS says that it took none.
    hours = f"SELECT node_hours > 0, word FROM jobs WHERE number = '{number}'"
    assert campaign.query(hours) == [(1, "F")]


#: In the order in which a campaign comes to them: each is the death of one controller.
_DEATHS = (
    Death(_STORE + "start_runs"),
    Death(_BOOK + "put_job", holds="'prepared'"),
    Death(_SUBMIT),
    Death(_BOOK + "put_job", holds="'submitted'"),
    Death("commtune.cluster.jobs.block_jobs:BlockJobs._finish", "before"),
    Death(_STORE + "finish_run", count=2),
    Death(_BOOK + "put_job", holds="'trace'"),
    Death(_SUBMIT, count=2),
    Death(_BOOK + "put_job", holds="'submitted'", count=3),
    Death(_STORE + "finish_campaign", "before"),
)


def test_killed_between_any_two_steps_nothing_is_lost_or_doubled(dying: OnPbs) -> None:
    _write(dying, ONE_CANDIDATE)
    for death in _DEATHS:
        dying.dies(death)
    said = dying("tune", "campaign.yaml")
    assert said.code == 0, said.err
    dying.check_whole()


@pytest.mark.skipif(not psutil.LINUX, reason="signals of Linux")
def test_a_qsub_outlives_its_controller(dying: OnPbs) -> None:
    _write(dying, ONE_BLOCK)
    dying.order_deaths([Death(_SUBMIT, "stop")])
    with dying.tuning() as tuning:
        tuning.until(lambda: psutil.Process(tuning.child.pid).status() == "stopped", "it stopped")
        dying.cluster.tell("pause pbs_server.bin")
        tuning.child.send_signal(signal.SIGCONT)
        tuning.until(lambda: living(f"qsub -f {dying.folder}/data"), "qsub asks")
        tuning.child.kill()
        tuning.child.wait()
    dying.order_deaths([])
    dying.cluster.tell("resume pbs_server.bin")
    with dying.tuning() as tuning:
        tuning.ended()
    dying.check_whole(lost=False)
    assert len(dying.jobs()) == 1
