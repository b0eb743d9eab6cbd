"""Allocations one after the other, on the fake Slurm in its own time."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from fake_slurm.driver import TIMED_OUT, UNREACHABLE, FakeSlurm, Fate
from played_jobs import MemoryBook

from commtune.cluster.slurm.accounting import Accounting
from commtune.cluster.slurm.allocation import Allocation
from commtune.cluster.slurm.failed_nodes import FailedNodes
from commtune.cluster.slurm.flight import Flight, key_in, new_key
from commtune.cluster.slurm.handing_in import HandingIn
from commtune.cluster.slurm.placement import expand_hosts
from commtune.cluster.slurm.queries import Patience, Queue, SlurmFault
from commtune.cluster.slurm.submitting import Submission
from commtune.cluster.slurm.succession import (
    AFTER_VARIABLE,
    KEY_VARIABLE,
    AllocationScript,
    Succession,
)
from commtune.errors import EnvironmentFault
from commtune.model import JobKind, JobRecord, JobStage
from commtune.slurm_templates import Wish

NEVER = Fate(run_s=None)
WAITS = Fate(wait_s=None)
REFUSED = "sbatch: error: Batch job submission failed: Invalid partition name specified\n"


@dataclass
class Chain:
    """A campaign's allocations on the fake Slurm.

    Attributes:
        said: what a person was told.
    """

    fake: FakeSlurm
    folder: Path
    book: MemoryBook = field(default_factory=MemoryBook)
    accounts: bool = True
    said: list[str] = field(default_factory=list)

    def controller(
        self, command: tuple[str, ...] = ("true",), environment: Mapping[str, str] | None = None
    ) -> Succession:
        """A controller's view of them; of another one, if called again."""
        where = self.fake.environment
        script = AllocationScript(
            "test", None, Wish(nodes=2), command, self.folder / "jobs", 600.0, environment or {}
        )
        handing_in = HandingIn(
            Submission(where),
            Queue(where),
            Accounting(where) if self.accounts else None,
            self.book,
            Patience(seed=1),
            self.clock,
            self.said.append,
        )
        return Succession(script, self.book, handing_in, self.failed_nodes, self.clock)

    @property
    def failed_nodes(self) -> FailedNodes:
        return FailedNodes(self.folder / "failed.json", self.said.append)

    def clock(self) -> float:
        return self.fake.now

    def runs(self, flight: Flight) -> tuple[Succession, Allocation]:
        """The controller of an allocation that runs, once it has begun."""
        controller, allocation = self.controller(), self.allocation(flight)
        controller.began(flight.job.key, allocation)
        return controller, allocation

    def allocation(self, flight: Flight) -> Allocation:
        nodes = self.fake.jobs[flight.job.number]["attempts"][0]["nodes"]
        return Allocation(flight.job.number, tuple(nodes), self.clock(), self.clock() + 600)

    def job(self, number: str) -> JobRecord:
        (found,) = [job for job in self.book.known.values() if job.number == number]
        return found

    @property
    def asked(self) -> list[list[str]]:
        """What sbatch was called with."""
        return [call.arguments for call in self.fake.calls("sbatch")]


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    return Chain(FakeSlurm(tmp_path / "slurm", fate=NEVER), tmp_path)


# The script


def told(chain: Chain, environment: Mapping[str, str], after: str = "") -> dict[str, str]:
    """The environment of a controller, from the job itself."""
    chain.fake.next(Fate(run="now"))
    command = ("sh", "-c", 'env -0 > "$1"', "-", str(chain.folder / "seen"))
    chain.controller(command, environment).submit(after=after, is_over=True)
    pairs = (chain.folder / "seen").read_text().split("\0")[:-1]
    return dict(pair.split("=", 1) for pair in pairs)


def test_a_controller_is_told_which_job_it_is_and_where_things_are(
    chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = 'a "b" $(touch no), `c`\\;'
    monkeypatch.setenv("COMMTUNE_MPI_PATH", value)
    monkeypatch.setenv("XDG_DATA_HOME", "/elsewhere")
    seen = told(chain, {"COMMTUNE_DB": "sqlite:////a b", "XDG_DATA_HOME": "/here"})
    (job,) = chain.book.known.values()
    assert seen[KEY_VARIABLE] == job.key
    assert AFTER_VARIABLE not in seen
    assert seen["COMMTUNE_MPI_PATH"] == value
    assert (seen["COMMTUNE_DB"], seen["XDG_DATA_HOME"]) == ("sqlite:////a b", "/here")
    assert not (Path(job.folder) / "no").exists()


def test_a_controller_is_told_whom_it_follows(chain: Chain) -> None:
    assert told(chain, {}, after="77")[AFTER_VARIABLE] == "77"


def test_a_script_asks_for_a_warning_and_leaves_nodes_out(chain: Chain) -> None:
    text = chain.controller().script.render("0" * 16, exclude=["n3", "n1"])
    options = dict(re.findall(r"^#SBATCH --([\w-]+)=(\S+)", text, re.MULTILINE))
    assert (options["exclude"], options["signal"]) == ("n1,n3", "B:USR1@30")
    assert (options["nodes"], options["time"]) == ("2", "0-00:10:00")
    assert key_in(options["job-name"]) == "0" * 16
    assert "exclude" not in chain.controller().script.render("0" * 16)


# Submitting


def test_an_allocation_is_in_the_book_before_slurm_has_it(chain: Chain) -> None:
    flight = chain.controller().submit()
    first, last = chain.book.written[0], chain.book.written[-1]
    assert (first.stage, first.number) == (JobStage.PREPARED, "")
    assert (last.stage, last.number) == (JobStage.SUBMITTED, "1001")
    assert (last.kind, last.node_count, last.block) == (JobKind.ALLOCATION, 2, None)
    assert flight.job == last
    assert last.prepared_at == chain.clock()
    assert key_in(chain.fake.jobs["1001"]["name"]) == last.key


def test_one_that_follows_waits_only_for_what_is_not_over(chain: Chain) -> None:
    controller = chain.controller()
    for after, is_over in (("", False), ("77", False), ("77", True)):
        controller.submit(after=after, is_over=is_over)
    waits = ["--dependency=afterany:77" in arguments for arguments in chain.asked]
    assert waits == [False, True, False]
    assert not any("--dependency=afterany:" in arguments for arguments in chain.asked)


def test_nodes_that_failed_twice_are_left_out(chain: Chain) -> None:
    for job in ("7", "8"):
        chain.failed_nodes.failed(job, ["n2"])
    flight = chain.controller().submit()
    assert chain.allocation(flight).nodes in (("n1", "n3"), ("n3", "n4"), ("n1", "n4"))


def test_a_job_that_slurm_does_not_take_is_over(chain: Chain) -> None:
    chain.fake.answers("sbatch", UNREACHABLE)
    with pytest.raises(EnvironmentFault, match="takes no job now") as caught:
        chain.controller().submit()
    assert "type the same command again later" in caught.value.hint
    (job,) = chain.book.known.values()
    assert (job.stage, job.detail) == (JobStage.OVER, "Slurm did not take it")
    assert chain.fake.jobs == {}


def test_a_job_that_slurm_refuses_is_over_with_its_words(chain: Chain) -> None:
    chain.fake.answers("sbatch", REFUSED)
    with pytest.raises(EnvironmentFault, match="Invalid partition name"):
        chain.controller().submit()
    (job,) = chain.book.known.values()
    assert job.stage is JobStage.OVER
    assert "Invalid partition name" in job.detail


@pytest.mark.parametrize("took", [True, False])
def test_a_job_that_slurm_may_have_taken_is_found_out_later(chain: Chain, took: bool) -> None:
    chain.fake.answers("sbatch", TIMED_OUT, acts=took)
    with pytest.raises(EnvironmentFault, match="may have taken the job"):
        chain.controller().submit()
    (job,) = chain.book.open_jobs()
    assert job.number == ""
    found = chain.controller().alive()
    assert [flight.job.number for flight in found] == (["1001"] if took else [])
    assert len(chain.book.open_jobs()) == took


# Which are alive


def test_allocations_that_wait_or_run_are_alive_but_for_ones_own(chain: Chain) -> None:
    chain.fake.next(NEVER, WAITS)
    controller = chain.controller()
    flights = [controller.submit() for _ in range(2)]
    block = JobRecord(new_key(), JobKind.BLOCK, "", chain.clock(), 2, number="1")
    chain.book.put_job(block)
    alive = controller.alive()
    assert [flight.job.number for flight in alive] == ["1001", "1002"]
    assert alive[0].job.started_at == chain.clock()
    assert expand_hosts(alive[0].job.nodes) == chain.allocation(flights[0]).nodes
    (other,) = controller.alive(flights[0].job.key)
    assert other.job.number == "1002"
    assert len(chain.book.open_jobs()) == 3


def ended(chain: Chain, fate: Fate | None = None) -> JobRecord:
    """An allocation that ran for half an hour, as a later controller puts it down."""
    flight = chain.controller().submit()
    chain.controller().alive()
    chain.fake.advance(1800)
    chain.fake.end(flight.job.number, fate or Fate())
    return flight.job


@pytest.mark.parametrize("seen_by", ["squeue", "sacct"])
def test_one_that_is_over_is_closed_with_what_it_used(chain: Chain, seen_by: str) -> None:
    job = ended(chain)
    began_at, ended_at = chain.clock() - 1800, chain.clock()
    running = replace(job, started_at=began_at, nodes="n[1-2]")
    chain.book.put_job(running)
    chain.fake.forget(job.number, programs={"squeue", "sacct"} - {seen_by})
    assert chain.controller().alive() == []
    over = chain.job(job.number)
    assert (over.stage, over.started_at, over.ended_at) == (JobStage.OVER, began_at, ended_at)
    assert over.node_hours == pytest.approx(1.0)


@pytest.mark.parametrize("accounts", [True, False])
def test_one_that_nobody_remembers_is_closed_all_the_same(chain: Chain, accounts: bool) -> None:
    chain.accounts = accounts
    job = ended(chain)
    chain.fake.forget(job.number)
    assert chain.controller().alive() == []
    over = chain.job(job.number)
    assert (over.stage, over.ended_at, over.node_hours) == (JobStage.OVER, None, 0.0)


def test_accounts_that_give_no_answer_close_it_all_the_same(chain: Chain) -> None:
    job = ended(chain)
    chain.fake.forget(job.number, programs=["squeue"])
    chain.fake.accounts("down")
    assert chain.controller().alive() == []
    assert chain.job(job.number).node_hours == 0.0


def test_a_number_that_another_job_has_now_is_not_ours(chain: Chain) -> None:
    foreign = chain.fake.foreign_job("by-hand", user=os.getuid())
    ours = JobRecord(new_key(), JobKind.ALLOCATION, str(chain.folder), chain.clock(), 2)
    ours = replace(ours, stage=JobStage.SUBMITTED, number=foreign)
    chain.book.put_job(ours)
    assert chain.controller().alive() == []
    assert chain.job(foreign).stage is JobStage.OVER


def test_nothing_is_closed_while_slurm_gives_no_answer(chain: Chain) -> None:
    ended(chain)
    chain.fake.answers("squeue", UNREACHABLE)
    with pytest.raises(SlurmFault):
        chain.controller().alive()
    assert len(chain.book.open_jobs()) == 1


def test_one_without_a_number_may_be_handed_in_by_another_controller_now(chain: Chain) -> None:
    flight = chain.controller().submit()
    being_handed_in = JobRecord(
        new_key(), JobKind.ALLOCATION, str(chain.folder / "x"), chain.clock(), 2
    )
    chain.book.put_job(being_handed_in)
    assert [one.job.number for one in chain.controller().alive()] == ["1001"]
    assert chain.book.known[being_handed_in.key].stage is JobStage.PREPARED
    # The controller in an allocation is the only one that asks for the next.
    next_one = chain.controller().submit(after="1001")
    assert [one.job.key for one in chain.controller().alive(flight.job.key)] == [next_one.job.key]
    assert chain.book.known[being_handed_in.key].stage is JobStage.OVER


# In an allocation


def test_an_allocation_that_began_is_put_down_as_running(chain: Chain) -> None:
    flight = chain.controller().submit()
    chain.book.put_job(flight.noted(number=""))  # its number was never written down
    flight.noted(number="1001")
    _, allocation = chain.runs(flight)
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
        controller, allocation = chain.runs(before)
        controller.ended(before.job.key, allocation)
    chain.fake.fail_node(chain.allocation(before).nodes[0])
    flight = chain.controller().submit(after=before.job.number)
    for _ in range(2):
        chain.controller().began(flight.job.key, chain.allocation(flight), before.job.number)
    lost = chain.allocation(before).nodes[0]
    assert chain.said == [f"job 1001 lost a node ({lost}): its runs are made again"]


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
    controller, allocation = chain.runs(chain.controller().submit())
    assert len(chain.asked) == 1  # nothing was measured so far
    controller.worked(allocation)
    calls = len(chain.fake.calls())
    for _ in range(2):
        chain.fake.advance(1000)
        controller.worked(allocation)
    assert len(chain.fake.calls()) == calls
    assert len(chain.asked) == 2
    assert "--dependency=afterany:1001" in chain.asked[1]


def test_a_next_allocation_that_is_there_already_is_kept(chain: Chain) -> None:
    flight = chain.controller().submit()
    controller, allocation = chain.runs(flight)
    controller.worked(allocation)
    # Slurm put the job back into the queue: another controller begins in the same job.
    again, allocation = chain.runs(flight)
    looks = len(chain.fake.calls())
    again.worked(allocation)
    assert len(chain.fake.calls()) == looks
    assert [job.number for job in chain.book.open_jobs()] == ["1001", "1002"]


def test_a_next_allocation_is_looked_for_where_slurm_gave_no_answer_at_first(
    chain: Chain,
) -> None:
    flight = chain.controller().submit()
    controller, allocation = chain.runs(flight)
    controller.worked(allocation)
    chain.fake.answers("squeue", UNREACHABLE)
    again, allocation = chain.runs(flight)
    assert "looking for further allocations later" in chain.said[-1]
    again.worked(allocation)
    assert len(chain.asked) == 2


def test_slurm_that_does_not_take_the_next_is_asked_again_later(chain: Chain) -> None:
    controller, allocation = chain.runs(chain.controller().submit())
    chain.fake.answers("sbatch", UNREACHABLE)
    controller.worked(allocation)
    assert "the next allocation could not be asked for" in chain.said[-1]
    chain.fake.advance(299)
    controller.worked(allocation)
    assert len(chain.asked) == 2
    chain.fake.advance(2)
    controller.worked(allocation)
    assert len(chain.asked) == 3
    assert [job.number for job in chain.book.open_jobs()] == ["1001", "1002"]


@pytest.mark.parametrize("took", [True, False])
def test_an_answer_that_is_lost_asks_for_no_second_one(chain: Chain, took: bool) -> None:
    controller, allocation = chain.runs(chain.controller().submit())
    chain.fake.answers("sbatch", TIMED_OUT, acts=took)
    controller.worked(allocation)
    assert "may have taken the job" in chain.said[-1]
    chain.fake.advance(301)
    controller.worked(allocation)
    assert chain.fake.living == ["1001", "1002"]
    assert len(chain.asked) == (2 if took else 3)


# The end of an allocation


def test_one_that_ends_says_what_it_used_and_the_next_goes_on(chain: Chain) -> None:
    flight = chain.controller().submit()
    controller, allocation = chain.runs(flight)
    controller.worked(allocation)
    chain.fake.advance(900)
    controller.ended(flight.job.key, allocation)
    job = chain.job("1001")
    assert (job.stage, job.word, job.ended_at) == (JobStage.OVER, "", chain.clock())
    assert job.node_hours == pytest.approx(0.5)
    assert [job.number for job in chain.book.open_jobs()] == ["1002"]
    assert chain.fake.calls("scancel") == []


def test_a_campaign_that_is_done_takes_the_next_back(chain: Chain) -> None:
    flight = chain.controller().submit()
    theirs = chain.fake.foreign_job("theirs")
    controller, allocation = chain.runs(flight)
    controller.worked(allocation)
    controller.take_back(flight.job.key)
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
    controller, allocation = chain.runs(flight)
    controller.worked(allocation)
    chain.fake.answers(program, UNREACHABLE)
    controller.take_back(flight.job.key)
    assert "could not be taken back" in chain.said[-1]
    assert chain.fake.living == ["1001", "1002"]
    assert [job.number for job in chain.book.open_jobs()] == ["1001", "1002"]
