"""Allocations one after the other, and what befalls them."""

from __future__ import annotations

import json
import os
import signal

import pytest
from campaign_texts import ONE_BLOCK, ONE_CANDIDATE, with_run_limit
from cluster_campaigns import Death, OnCluster
from left_over import living
from other_clock import build_clock


def test_answers_to_submissions_are_lost(campaign: OnCluster) -> None:
    path = f"before: 'export PATH={campaign.lose_answers()}:$PATH; "
    campaign.write(ONE_BLOCK.replace("before: '", path))
    campaign.lose_an_answer()
    campaign.close_gate()
    said = campaign("submit", "campaign.yaml")
    assert said.code == 3
    assert f"{campaign.words.name} may have accepted the job without saying so" in said.err
    (job,) = campaign.jobs()
    again = campaign("submit", "campaign.yaml")
    assert f"already has a {campaign.words.name} job: {job.number}" in again.err
    # The same again, where the allocation asks for the next one.
    campaign.lose_an_answer()
    campaign.open_gate()
    campaign.until_over()
    assert len(campaign.jobs()) == 2
    campaign.check_whole(lost=False)


def test_a_dead_controller_on_another_node_is_followed(dying: OnCluster) -> None:
    dying.write_without_mpi(ONE_BLOCK)
    dying.order_deaths([Death("commtune.db.storage.store:Store.start_runs")])
    dying.succeed("submit", "campaign.yaml")
    dying.until(lambda: not dying.deaths_left() and dying.all_over(), "its death")
    # Nobody can look from another node whether the process that holds the lock lives.
    dying.cluster.drain_node("n1")
    dying.succeed("submit", "campaign.yaml")
    dying.until_over()
    dying.check_whole()
    assert ("n2,n3",) in dying.query("SELECT DISTINCT nodes FROM runs")


def test_an_allocation_that_no_run_fits_into_says_so(campaign: OnCluster) -> None:
    campaign.write(campaign.lasting(ONE_CANDIDATE, 45))
    campaign.succeed("submit", "campaign.yaml")
    campaign.until_over()
    (job,) = campaign.jobs()
    key = campaign.words.name.lower()
    assert campaign.printed().endswith(
        f"commtune: the time of job {job.number} is nearly over: a run may take 20 s, and 40 s "
        "are kept to end cleanly\n"
        f"  ask for more time: 'time' below '{key}' in the campaign file\n"
    )


@pytest.mark.parametrize("ahead_s", [240, -240])
def test_clocks_of_nodes_differ_from_the_schedulers(campaign: OnCluster, ahead_s: int) -> None:
    # By the nodes' clocks no run fits into the allocation, or it takes no time at all. Slurm's
    # munge forgives five minutes.
    clock = build_clock(campaign.folder, ahead_s=ahead_s)
    campaign.write(ONE_BLOCK.replace("before: '", f"before: 'export LD_PRELOAD={clock}; "))
    campaign.succeed("submit", "campaign.yaml")
    campaign.until_over()
    campaign.check_whole(lost=False)
    ((took_s, hours),) = campaign.query(
        "SELECT ended_at - started_at, node_hours FROM jobs WHERE node_hours > 0"
    )
    assert took_s < 600
    assert abs(hours - 2 * took_s / 3600) < 0.0015


def test_node_hours_hold_both_ways(campaign: OnCluster) -> None:
    # What starting and a few blocks take on this machine, as busy as it is.
    campaign.write_without_mpi(ONE_CANDIDATE)
    campaign.succeed("submit", "campaign.yaml")
    campaign.until_over()
    campaign.check_whole(lost=False)
    ((given,),) = campaign.query("SELECT round(sum(node_hours), 4) FROM jobs")
    times = "search: 100ms, ablation: 10ms, confirmation: 1s"
    text = ONE_CANDIDATE.replace(times, f"node_hours: {given}").replace("small", "other")
    campaign.write_without_mpi(text.replace("  poll: 0.3s\n", "  poll: 0.3s\n  jobs: 1\n"))
    with campaign.tuning() as tuning:
        tuning.ended()
    campaign.until_over()
    jobs = "FROM jobs WHERE campaign_id = 2 ORDER BY prepared_at"
    took = campaign.query(f"SELECT node_hours, 2 * (ended_at - started_at) / 3600 {jobs}")
    # A job is begun where it fits by what those before it took: by their own times, or by those of
    # the accounts, in whole seconds. The last may have met a busier machine.
    assert sum(map(min, took[:-1])) < given
    # At the end the rest does not suffice for another, unless the answer is clear.
    used = sum(hours for hours, _ in took)
    decided = "SELECT decision FROM decisions WHERE campaign_id = 2 ORDER BY id DESC LIMIT 1"
    ((decision,),) = campaign.query(decided)
    # These times are noise, so that a search may also end without a candidate to look at.
    looks = json.loads(decision)["looks"]
    ended = [why for look in looks for why in look["stopped"].values()]
    assert used > 0.35 * given or ended != ["budget"]


def test_the_server_is_away_while_an_allocation_runs(campaign: OnCluster) -> None:
    campaign.write_without_mpi(ONE_CANDIDATE)
    campaign.succeed("submit", "campaign.yaml")
    campaign.until(lambda: len(campaign.records()) > 6, "some runs")
    # A step that ended meanwhile would tell it a minute later, and keep its nodes until then.
    controller = campaign.controller()
    os.kill(controller, signal.SIGSTOP)
    campaign.until(lambda: not living(f"{campaign.folder}/data"), "its step to end")
    campaign.cluster.stop_controller()
    before = len(campaign.records())
    os.kill(controller, signal.SIGCONT)
    if campaign.words.steps_need_it:
        campaign.until(lambda: "; waiting for it\n" in campaign.printed(), "a word")
    else:
        campaign.until(lambda: len(campaign.records()) > before + 1, "further runs")
    # However long it takes to ask, the campaign is not over by then.
    os.kill(controller, signal.SIGSTOP)
    name = campaign.words.name
    status = campaign("status").out
    assert f" when {name} was last asked; " in status
    assert f"\n  {name} does not answer: these jobs, and their controller, may be over\n" in status
    ask = campaign.words.asks_server
    assert f"; check it with '{ask}', then run 'commtune status' again\n" in status
    campaign.cluster.start_controller()
    os.kill(controller, signal.SIGCONT)
    campaign.until_over()
    campaign.check_whole()
    if campaign.words.steps_need_it:
        assert f"{name} answers again\n" in campaign.printed()
        assert set(campaign.outcomes()) == {"ok", "never-started"}
    else:
        assert set(campaign.outcomes()) == {"ok"}


def test_a_step_ends_while_the_server_is_away(campaign: OnCluster) -> None:
    # Slurm notices it a minute later; five runs that are not started would end the campaign
    # before.
    campaign.write_without_mpi(with_run_limit(ONE_CANDIDATE, "8s"))
    campaign.succeed("submit", "campaign.yaml")
    campaign.until(lambda: len(campaign.records()) > 3, "some runs")
    campaign.cluster.stop_controller()
    campaign.until(lambda: not living(f"{campaign.folder}/data"), "its step to end")
    campaign.cluster.start_controller()
    campaign.until_over()
    campaign.check_whole()
    assert campaign.outcomes()["never-started"] < 5
