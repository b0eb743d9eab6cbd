"""Allocations of PBS one after the other, and what befalls them."""

from __future__ import annotations

import os
import signal

from campaign_texts import ONE_CANDIDATE, with_long_runs
from pbs_campaigns import OnPbs


def _submit(campaign: OnPbs) -> None:
    """Submits a campaign whose runs take a while."""
    # Long enough that what is done to it comes before its end.
    text = with_long_runs(ONE_CANDIDATE, 0.2).replace("confirmation: 1s", "confirmation: 20s")
    campaign.write(text)
    campaign.succeed("submit", "campaign.yaml")


def _until_measured(campaign: OnPbs, runs: int) -> None:
    # PBS isn't asked: it answers late after a node's death, and the campaign goes on meanwhile.
    campaign.until(lambda: len(campaign.records()) >= runs, f"{runs} runs", 120)


def test_the_next_allocation_goes_on_when_the_time_is_nearly_over(campaign: OnPbs) -> None:
    _submit(campaign)
    _until_measured(campaign, 3)
    # However long it takes to look, the campaign is not over by then.
    controller = campaign.controller()
    os.kill(controller, signal.SIGSTOP)
    first, following = campaign.jobs()
    assert (first.word, following.word) == ("RUNNING", "PENDING"), campaign.printed()
    again = campaign("submit", "campaign.yaml")
    assert "already has a PBS job: " in again.err
    # What the job's script does before the time is over.
    os.kill(controller, signal.SIGUSR1)
    os.kill(controller, signal.SIGCONT)
    campaign.until_over(300)
    campaign.check_whole(lost=False)
    said = campaign.printed()
    assert "commtune: the time of this job is nearly over; everything measured is kept" in said
    assert f"job {following.number} continues\n" in said
    assert f"runs are steps of job {following.number}, on n" in said
    assert set(campaign.outcomes()) == {"ok"}
    # A third one waited, and was taken back.
    assert [job.word for job in campaign.jobs()] == ["COMPLETED", "COMPLETED", "CANCELLED"]
    assert campaign.query("SELECT count(*) FROM jobs WHERE node_hours > 0") == [(2,)]


def test_pbs_ends_an_allocation_for_its_time_and_the_next_one_goes_on(campaign: OnPbs) -> None:
    _submit(campaign)
    _until_measured(campaign, 3)
    first, following = campaign.jobs()
    # Its controller doesn't know that it has less time than it was given.
    campaign.cluster.reach_time_limit(first.number)
    campaign.until(lambda: first.number not in campaign.cluster.call("qselect"), "its end", 120)
    campaign.until_over(300)
    campaign.check_whole()
    said = campaign.cluster.call("qstat", "-x", "-f", "-F", "dsv", "-D", "~", first.number)
    assert "exceeded resource walltime" in said
    assert f"runs are steps of job {following.number}, on n" in campaign.printed()
    used = dict(word.partition("=")[::2] for word in said.split("~"))["resources_used.walltime"]
    hours, minutes, seconds = map(int, used.split(":"))
    ((counted,),) = campaign.query(f"SELECT node_hours FROM jobs WHERE number = '{first.number}'")
    # The controller is told some seconds before PBS takes the nodes back; never counted twice.
    assert 0 < counted <= 2 * (hours + minutes / 60 + (seconds + 2) / 3600)


def test_a_node_dies_under_an_allocation_and_the_next_one_goes_on(campaign: OnPbs) -> None:
    _submit(campaign)
    _until_measured(campaign, 3)
    campaign.cluster.fail_node("n2")
    campaign.until_over(300)
    campaign.check_whole()
    assert set(campaign.outcomes()) <= {"ok", "node-failure", "never-started", "interrupted"}
    assert {nodes for (nodes,) in campaign.query("SELECT DISTINCT nodes FROM runs")} >= {"n1,n3"}


def test_where_no_second_job_may_wait_it_is_said_and_submit_goes_on(campaign: OnPbs) -> None:
    campaign.cluster.limit_submissions(1)
    _submit(campaign)
    _until_measured(campaign, 3)
    os.kill(campaign.controller(), signal.SIGUSR1)
    campaign.until_over(120)
    assert len(campaign.jobs()) == 1
    assert "no job continues: PBS accepts no more jobs from you now" in campaign.printed()
    campaign.cluster.limit_submissions(None)
    campaign.succeed("submit", "campaign.yaml")
    campaign.until_over(300)
    campaign.check_whole(lost=False)
