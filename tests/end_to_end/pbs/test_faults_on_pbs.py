"""What a night on PBS brings that is not as on other schedulers, to blocks that are jobs."""

from __future__ import annotations

from campaign_texts import ONE_BLOCK, ONE_CANDIDATE, with_long_runs
from pbs_campaigns import OnPbs, with_keys


def test_a_node_dies_under_a_run(campaign: OnPbs) -> None:
    campaign.write(with_long_runs(ONE_CANDIDATE, 0.3))
    campaign.cluster.drain_node("n3")
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
    campaign.check_confirmation()


def test_the_queue_is_full_for_a_while(campaign: OnPbs) -> None:
    campaign.write(ONE_CANDIDATE)
    with campaign.tuning() as tuning:
        tuning.until_at_gate("confirm")
        campaign.cluster.limit_submissions(1)
        campaign.open_gate()
        tuning.until_said("PBS accepts no more jobs from you now; trying again\n")
        campaign.cluster.limit_submissions(None)
        tuning.until_said("PBS accepts jobs again\n")
        tuning.ended()
    campaign.check_whole(lost=False)
    campaign.check_confirmation()


def test_jobs_that_do_not_start_are_said_and_given_up(campaign: OnPbs) -> None:
    campaign.cluster.start_jobs(False)
    campaign.write(with_keys(ONE_BLOCK, pending_time="9s", block_time="2min"))
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
    campaign.write(with_keys(ONE_BLOCK, chunk="ncpus=50"))
    with campaign.tuning() as tuning:
        err = tuning.ended(3)
    assert "will not start: it requests what it can't get (Can Never Run: " in err
    assert "correct 'pbs:' in the campaign file" in err
    campaign.until_over()


def test_what_pbs_refuses_is_said_with_its_words(campaign: OnPbs) -> None:
    campaign.write(with_keys(ONE_BLOCK, queue="nowhere"))
    with campaign.tuning() as tuning:
        err = tuning.ended(3)
    assert "PBS does not accept the job: qsub: PBS refuses the job: qsub: Unknown queue" in err
    assert campaign.jobs() == []
