"""Allocations one after the other, on the fake Slurm in its own time: from outside."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from chained_allocations import NEVER, Chain, ended
from fake_slurm.driver import TIMED_OUT, UNREACHABLE, Fate

from commtune.cluster.jobs.submission import key_in, new_key
from commtune.cluster.placement import expand_hosts
from commtune.cluster.scheduler import AFTER_VARIABLE, KEY_VARIABLE
from commtune.cluster.slurm.faults import SlurmFault
from commtune.errors import EnvironmentFault
from commtune.model import JobKind, JobRecord, JobStage

WAITS = Fate(wait_s=None)
REFUSED = "sbatch: error: Batch job submission failed: Invalid partition name specified\n"


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
    monkeypatch.setenv("COMMTUNE_GPU_ARCHITECTURES", "80,90")
    monkeypatch.setenv("XDG_DATA_HOME", "/elsewhere")
    seen = told(chain, {"XDG_DATA_HOME": "/here"})
    (job,) = chain.book.known.values()
    assert seen[KEY_VARIABLE] == job.key
    assert AFTER_VARIABLE not in seen
    assert seen["COMMTUNE_MPI_PATH"] == value
    # The benchmark is the one that the login node built.
    assert seen["COMMTUNE_GPU_ARCHITECTURES"] == "80,90"
    assert (seen["COMMTUNE_DB"], seen["XDG_DATA_HOME"]) == ("sqlite:////a b", "/here")
    assert not (Path(job.folder) / "no").exists()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://ann:s3cret@db/x",
        "postgresql+psycopg://ann:s3cret@with@at:5432@db:5432/x?sslmode=require",
        "postgresql+psycopg:///x?host=/run/postgresql&user=ann&password=s3cret",
        "postgresql+psycopg://ann@db/x?sslpassword=s3cret",
        "postgresql+psycopg://db/x?options=-c%20our.token%3Ds3cret",
        "mysql+pymysql://:s3cret@db/x",
    ],
)
def test_a_password_is_in_no_script(chain: Chain, url: str) -> None:
    """Slurm keeps scripts, and shows them."""
    chain.database = url
    seen = told(chain, {})
    (job,) = chain.book.known.values()
    assert "s3cret" not in (Path(job.folder) / "script.sh").read_text()
    assert "COMMTUNE_DB" not in seen
    file = Path(seen["COMMTUNE_DB_FILE"])
    assert file.read_text() == f"{url}\n"
    assert file.stat().st_mode & 0o777 == 0o600


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
        chain.failed_nodes.add_failure(job, ["n2"])
    flight = chain.controller().submit()
    assert chain.allocation(flight).nodes in (("n1", "n3"), ("n3", "n4"), ("n1", "n4"))


def test_a_job_that_slurm_does_not_take_is_over(chain: Chain) -> None:
    chain.fake.answers("sbatch", UNREACHABLE)
    with pytest.raises(EnvironmentFault, match="controller does not answer") as caught:
        chain.controller().submit()
    assert "run the same command again later" in caught.value.hint
    (job,) = chain.book.known.values()
    assert (job.stage, job.detail) == (JobStage.OVER, "Slurm did not accept it")
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
    with pytest.raises(EnvironmentFault, match="may have accepted the job"):
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
    (other,) = chain.runs(flights[0]).alive()
    assert other.job.number == "1002"
    assert len(chain.book.open_jobs()) == 3


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
    assert [one.job.key for one in chain.runs(flight).alive()] == [next_one.job.key]
    assert chain.book.known[being_handed_in.key].stage is JobStage.OVER
