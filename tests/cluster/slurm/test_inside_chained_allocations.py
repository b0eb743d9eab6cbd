"""Allocations one after the other, on the fake Slurm in its own time: from inside of them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from chained_allocations import Chain, ended
from fake_slurm.driver import TIMED_OUT, UNREACHABLE, Fate

from commtune.cluster.jobs.submission import job_name, new_key
from commtune.cluster.slurm.client import SlurmScheduler
from commtune.errors import AllocationOver
from commtune.model import JobStage

# In an allocation


def test_an_allocation_that_began_is_put_down_as_running(chain: Chain) -> None:
    flight = chain.controller().submit()
    chain.book.put_job(flight.update(number=""))  # its number was never written down
    flight.update(number="1001")
    chain.runs(flight)
    allocation = chain.allocation(flight)
    job = chain.job("1001")
    assert (job.stage, job.word) == (JobStage.SUBMITTED, "RUNNING")
    assert (job.nodes, job.started_at) == (",".join(allocation.nodes), allocation.began_at)


def test_an_allocation_that_began_closes_those_before(chain: Chain) -> None:
    before = ended(chain, Fate("TIMEOUT"))
    flight = chain.controller().submit(after=before.number)
    chain.controller().began(flight.job.key, chain.allocation(flight), before.number)
    assert chain.job(before.number).stage is JobStage.OVER
    assert [job.key for job in chain.book.open_jobs()] == [flight.job.key]


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_node_that_the_one_before_lost_is_noted_once(chain: Chain, is_closed: bool) -> None:
    before = chain.controller().submit()
    if is_closed:  # its controller came to its end; the node did not
        controller = chain.runs(before)
        controller.ended()
    chain.fake.fail_node(chain.allocation(before).nodes[0])
    flight = chain.controller().submit(after=before.job.number)
    for _ in range(2):
        chain.controller().began(flight.job.key, chain.allocation(flight), before.job.number)
    lost = chain.allocation(before).nodes[0]
    assert chain.said == [f"job 1001 lost a node ({lost}): its runs are re-run"]


def test_another_campaigns_job_with_the_number_of_the_one_before_blames_no_node(
    chain: Chain,
) -> None:
    before = ended(chain)
    chain.controller().alive()
    flight = chain.controller().submit(after=before.number, is_over=True)
    with chain.fake.store.changing() as state:  # Slurm began to number its jobs anew
        del state["jobs"][before.number]
        state["next_number"] = int(before.number)
    theirs = chain.fake.foreign_job(job_name("theirs", new_key()), user=os.getuid())
    chain.fake.fail_node("n1")
    assert theirs == before.number
    chain.controller().began(flight.job.key, chain.allocation(flight), before.number)
    assert chain.said == []


def test_a_node_that_is_back_is_not_blamed(chain: Chain) -> None:
    before = chain.controller().submit()
    node = chain.allocation(before).nodes[0]
    chain.fake.fail_node(node)
    chain.fake.restore_node(node)
    assert chain.controller().alive() == []
    assert chain.said == []


def test_two_failures_are_said_and_the_node_is_left_out(chain: Chain) -> None:
    node = ""
    for _ in range(2):
        flight = chain.controller().submit()
        node = node or chain.allocation(flight).nodes[0]
        with chain.fake.store.changing() as state:
            state["jobs"][flight.job.number]["attempts"][0]["nodes"] = [node]
        chain.fake.fail_node(node)
        assert chain.controller().alive() == []
        chain.fake.restore_node(node)
    assert f"node {node} failed in 2 jobs (1001, 1002) and is left out from now on" in chain.said
    chain.controller().submit()
    script = Path(chain.job("1003").folder) / "script.sh"
    assert f"#SBATCH --exclude={node}\n" in script.read_text()


def test_one_good_run_asks_for_the_next_allocation_once(chain: Chain) -> None:
    controller = chain.runs(chain.controller().submit())
    assert len(chain.asked) == 1  # nothing was measured so far
    controller.worked()
    calls = len(chain.fake.calls())
    for _ in range(2):
        chain.fake.advance(1000)
        controller.worked()
    assert len(chain.fake.calls()) == calls
    assert len(chain.asked) == 2
    assert "--dependency=afterany:1001" in chain.asked[1]


def test_a_next_allocation_that_is_there_already_is_kept(chain: Chain) -> None:
    flight = chain.controller().submit()
    controller = chain.runs(flight)
    controller.worked()
    # Slurm put the job back into the queue: another controller begins in the same job.
    again = chain.runs(flight)
    looks = len(chain.fake.calls())
    again.worked()
    assert len(chain.fake.calls()) == looks
    assert [job.number for job in chain.book.open_jobs()] == ["1001", "1002"]


def test_a_next_allocation_is_looked_for_where_slurm_gave_no_answer_at_first(
    chain: Chain,
) -> None:
    flight = chain.controller().submit()
    controller = chain.runs(flight)
    controller.worked()
    chain.fake.answers("squeue", UNREACHABLE)
    again = chain.runs(flight)
    assert "looking for further allocations later" in chain.said[-1]
    again.worked()
    assert len(chain.asked) == 2


def test_slurm_that_does_not_take_the_next_is_asked_again_soon(chain: Chain) -> None:
    controller = chain.runs(chain.controller().submit())
    chain.fake.answers("sbatch", UNREACHABLE)
    controller.worked()
    assert chain.said[-1].endswith("; trying again")
    assert chain.fake.jobs["1001"]["requeue"]
    chain.fake.advance(3)
    controller.worked()
    assert len(chain.asked) == 2
    chain.fake.advance(3.1)
    controller.worked()
    assert len(chain.asked) == 3
    assert [job.number for job in chain.book.open_jobs()] == ["1001", "1002"]
    assert not chain.fake.jobs["1001"]["requeue"]


@pytest.mark.parametrize("took", [True, False])
def test_an_answer_that_is_lost_asks_for_no_second_one(chain: Chain, took: bool) -> None:
    controller = chain.runs(chain.controller().submit())
    chain.fake.answers("sbatch", TIMED_OUT, acts=took)
    controller.worked()
    assert chain.said[-1].endswith("; trying again")
    chain.fake.advance(7)
    controller.worked()
    assert chain.fake.living == ["1001", "1002"]
    assert len(chain.asked) == (2 if took else 3)


# The end of an allocation


def test_one_that_ends_says_what_it_used_and_the_next_goes_on(chain: Chain) -> None:
    flight = chain.controller().submit()
    controller = chain.runs(flight)
    controller.worked()
    chain.fake.advance(900)
    controller.ended()
    job = chain.job("1001")
    assert (job.stage, job.word, job.ended_at) == (JobStage.OVER, "", chain.clock())
    assert job.node_hours == pytest.approx(0.5)
    assert [job.number for job in chain.book.open_jobs()] == ["1002"]
    assert chain.fake.calls("scancel") == []


def test_a_campaign_that_is_done_takes_the_next_back(chain: Chain) -> None:
    flight = chain.controller().submit()
    theirs = chain.fake.foreign_job("theirs")
    controller = chain.runs(flight)
    controller.worked()
    controller.take_back()
    (next_one,) = (job for job in chain.book.known.values() if job.key != flight.job.key)
    assert (next_one.stage, next_one.detail) == (JobStage.OVER, "no more to do")
    assert [job.number for job in chain.book.open_jobs()] == ["1001"]
    assert [call.arguments for call in chain.fake.calls("scancel")] == [[next_one.number]]
    assert chain.fake.living == ["1001"]
    assert chain.fake.jobs[theirs]["cancelled"] is None


@pytest.mark.parametrize("program", ["squeue", "scancel"])
def test_what_can_not_be_taken_back_is_said_and_stays_in_the_book(
    chain: Chain, program: str
) -> None:
    flight = chain.controller().submit()
    controller = chain.runs(flight)
    controller.worked()
    chain.fake.answers(program, UNREACHABLE)
    controller.take_back()
    assert "could not be cancelled" in chain.said[-1]
    assert chain.fake.living == ["1001", "1002"]
    assert [job.number for job in chain.book.open_jobs()] == ["1001", "1002"]


# Its time is over, and no second job may wait


FULL = "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy\n"


def test_one_that_no_second_may_wait_for_is_requeued_and_adds_up_what_it_used(
    chain: Chain,
) -> None:
    flight = chain.controller().submit()
    for _ in range(2):
        controller = chain.runs(flight)
        chain.fake.answers("sbatch", FULL)
        controller.worked()
        chain.fake.advance(900)
        controller.ended(is_done=False)
        controller.go_on()
        assert chain.said[-1].startswith("job 1001 is requeued, and continues: ")
        (job,) = chain.book.open_jobs()
        assert (job.number, job.stage, job.started_at) == ("1001", JobStage.SUBMITTED, None)
    assert job.node_hours == pytest.approx(1.0)
    assert chain.fake.living == ["1001"]


def test_one_that_can_not_be_requeued_says_that_nothing_continues(chain: Chain) -> None:
    flight = chain.controller().submit()
    controller = chain.runs(flight)
    chain.fake.answers("sbatch", FULL)
    controller.worked()
    chain.fake.answers("scontrol", UNREACHABLE)
    controller.ended(is_done=False)
    controller.go_on()
    assert "no job continues: job 1001 could not be requeued" in chain.said[-1]
    assert chain.book.open_jobs() == []


def test_one_in_which_nothing_worked_is_not_requeued(chain: Chain) -> None:
    flight = chain.controller().submit()
    controller = chain.runs(flight)
    controller.ended(is_done=False)
    controller.go_on()
    assert chain.said[-1] == "no job continues: no run of this one went well"
    assert chain.book.open_jobs() == []


def test_an_attempt_that_a_dead_node_ended_counts_by_the_accounts(chain: Chain) -> None:
    flight = chain.controller().submit()
    controller = chain.runs(flight)
    chain.fake.answers("sbatch", FULL)
    controller.worked()
    chain.fake.advance(1800)
    SlurmScheduler(chain.fake.environment).requeue("1001")  # as Slurm does by itself
    chain.fake.advance(600)
    chain.controller().began(flight.job.key, chain.allocation(flight))
    assert chain.job("1001").node_hours == pytest.approx(1.0)


def test_one_that_slurm_interrupts_and_requeues_adds_up_what_it_used(chain: Chain) -> None:
    flight = chain.controller().submit()
    for _ in range(2):
        controller = chain.runs(flight)
        chain.fake.answers("sbatch", FULL)
        controller.worked()
        chain.fake.advance(900)
        controller.ended(interrupted=True)
        SlurmScheduler(chain.fake.environment).requeue("1001")  # as Slurm does by itself
        chain.fake.advance(600)
    controller = chain.runs(flight)
    chain.fake.advance(900)
    controller.ended()
    assert chain.job("1001").node_hours == pytest.approx(1.5)


@pytest.mark.parametrize("ahead_s", [-60, 60])
def test_a_nodes_clock_that_differs_costs_nothing(chain: Chain, ahead_s: float) -> None:
    flight = chain.controller().submit()
    began_at, ends_at = chain.clock() - ahead_s, chain.clock() - ahead_s + 1000
    own = replace(
        chain.allocation(flight), began_at=began_at, ends_at=ends_at, clock_ahead_s=ahead_s
    )
    controller = chain.controller()
    controller.began(flight.job.key, own)
    chain.fake.advance(900)
    own.check_time(59, chain.clock())
    with pytest.raises(AllocationOver):
        own.check_time(61, chain.clock())
    controller.ended()
    job = chain.job("1001")
    assert job.node_hours == pytest.approx(0.5)
    assert job.ended_at == pytest.approx(began_at + 900)


@pytest.mark.parametrize("booked", [0.1, 9.0])
def test_accounts_correct_the_one_before_both_ways(chain: Chain, booked: float) -> None:
    before = ended(chain)
    chain.controller().alive()
    chain.book.put_job(replace(chain.job(before.number), node_hours=booked))
    flight = chain.controller().submit(after=before.number, is_over=True)
    chain.controller().began(flight.job.key, chain.allocation(flight), before.number)
    assert chain.job(before.number).node_hours == pytest.approx(1.0)


@pytest.mark.parametrize("interrupted", [True, False])
def test_without_accounts_the_queue_says_once_what_it_used(
    chain: Chain, interrupted: bool
) -> None:
    chain.accounts = False
    before = chain.controller().submit()
    controller, began_at = chain.runs(before), chain.clock()
    chain.fake.advance(1800)
    controller.ended(interrupted=interrupted)
    chain.fake.advance(90)  # the script, and Slurm, take some time to end
    chain.fake.end("1001", Fate("TIMEOUT"))
    flight = chain.controller().submit(after="1001", is_over=True)
    for _ in range(2):
        chain.controller().began(flight.job.key, chain.allocation(flight), "1001")
    job = chain.job("1001")
    assert job.node_hours == pytest.approx(2 * 1890 / 3600)
    assert (job.stage, job.started_at) == (JobStage.OVER, began_at)
    assert job.ended_at == pytest.approx(began_at + 1890)


def test_the_one_before_is_no_successor_while_it_is_being_ended(chain: Chain) -> None:
    before = chain.controller().submit()
    controller, (lost, *_) = chain.runs(before), chain.allocation(before).nodes
    chain.fake.advance(60)
    controller.ended(interrupted=True)
    chain.fake.end("1001", Fate("NODE_FAIL", completing_s=60.0))
    chain.fake.fail_node(lost)
    flight = chain.controller().submit(after="1001", is_over=True)
    follows = chain.controller()
    follows.began(flight.job.key, chain.allocation(flight), "1001")
    follows.worked()
    assert [job.number for job in chain.book.known.values()] == ["1001", "1002", "1003"]
    chain.fake.advance(61)
    follows.worked()
    assert chain.job("1001").stage is JobStage.OVER
    assert lost in (chain.folder / "failed.json").read_text()
