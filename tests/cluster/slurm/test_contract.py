"""What commtune relies on of Slurm, on a real one and on the fake one: both must do it alike."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from accounts import state_in_accounts
from fake_slurm.driver import FakeSlurm, Fate
from slurm_cluster import Cluster
from waiting import wait_for

from commtune.cluster.job_states import JobState
from commtune.cluster.placement import (
    Distance,
    expand_hosts,
    expand_readable_hosts,
    find_distance,
)
from commtune.cluster.scheduler import AccountedJob, QueueSnapshot
from commtune.cluster.slurm.client import SlurmScheduler
from commtune.cluster.slurm.faults import SlurmError, SlurmFault
from commtune.cluster.slurm.site import describe_site

NETWORK = (
    "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-2]\n"
    "SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n3\n"
    "SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-3] Switches=leaf[1-2]\n"
)
SLEEP = "exec sleep 600"
NOWHERE = "999999"


@dataclass(frozen=True)
class Site:
    """A Slurm with three nodes n1, n2 and n3.

    Attributes:
        folder: an empty one.
        fail_node: a node dies.
        without_accounts, accounts_down: environments in which accounts aren't kept, or silent.
    """

    environment: dict[str, str]
    folder: Path
    fail_node: Callable[[str], object]
    without_accounts: Callable[[], dict[str, str]]
    accounts_down: Callable[[], dict[str, str]]

    @property
    def queue(self) -> SlurmScheduler:
        return SlurmScheduler(self.environment)

    def script(self, command: str, *options: str) -> Path:
        file = self.folder / f"job{len(list(self.folder.iterdir()))}.sh"
        lines = "".join(f"#SBATCH {option}\n" for option in ("--no-requeue", *options))
        file.write_text(f"#!/bin/bash\n{lines}{command}\n")
        return file

    def submit(self, command: str, *options: str) -> str:
        return self.queue.submit(self.script(command, *options), folder=self.folder)

    def until(self, job: str, state: JobState) -> QueueSnapshot:
        def seen() -> QueueSnapshot | None:
            answer = self.queue.poll([job])
            return answer if answer.state_of(job).state is state else None

        return wait_for(seen, f"job {job} to be {state}")

    def accounts(self, job: str, state: JobState) -> tuple[AccountedJob, ...]:
        def told() -> tuple[AccountedJob, ...]:
            records = self.queue.account([job], time.time() - 3600)
            # For some seconds, the accounts name only the node that the script ran on.
            complete = all(len(expand_hosts(one.node_list)) == one.node_count for one in records)
            return records if state_in_accounts(records, job).state is state and complete else ()

        return wait_for(told, f"the accounts to call job {job} {state}")


@pytest.fixture(params=["real", pytest.param("fake")])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    folder = tmp_path / "jobs"
    folder.mkdir()
    if request.param == "real":
        slurm: Cluster = request.getfixturevalue("slurm")
        off = slurm.without_accounting
        yield Site(slurm.environment, folder, slurm.fail_node, lambda: off, lambda: stopped(slurm))
        return
    fate = Fate(run="background", run_s=None)
    with FakeSlurm(tmp_path / "fake", nodes=3, fate=fate, real_time=True) as fake:
        fake.describe_network(NETWORK)
        accounts = {how: lambda how=how: keeping(fake, how) for how in ("off", "down")}
        yield Site(fake.environment, folder, fake.fail_node, accounts["off"], accounts["down"])


def stopped(slurm: Cluster) -> dict[str, str]:
    slurm.stop_accounting()
    return slurm.environment


def keeping(fake: FakeSlurm, how: str) -> dict[str, str]:
    fake.accounts("off" if how == "off" else "down")
    return fake.environment


def test_a_job_runs_in_its_folder_and_is_seen_running(site: Site) -> None:
    before = time.time() - 2
    said = "echo $SLURM_JOB_ID $SLURM_JOB_NUM_NODES $SLURM_JOB_NODELIST $PWD; sleep 600"
    job = site.submit(said, "--nodes=2", "--output=said-%j.txt", "--nodelist=n1,n2")
    seen = site.until(job, JobState.RUNNING).find(job)
    assert seen
    assert (seen.node_count, seen.node_list, seen.ended_at) == (2, "n[1-2]", None)
    assert seen.observed.started_at
    assert before <= seen.observed.started_at <= time.time() + 1
    file = site.folder / f"said-{job}.txt"
    wait_for(lambda: file.exists() and file.read_text().endswith("\n"), "what it says")
    assert file.read_text().split() == [job, "2", "n[1-2]", str(site.folder)]
    site.queue.cancel([job])


def test_how_jobs_ended(site: Site) -> None:
    # Side by side: the accounts say all of a job some seconds after its end.
    expected = {
        site.submit("true", "--nodes=2"): JobState.COMPLETED,
        site.submit("exit 3", "--nodes=2"): JobState.FAILED,
        site.submit("kill -SEGV $$", "--nodes=2"): JobState.FAILED,
    }
    for job, state in expected.items():
        seen = site.until(job, state).find(job)
        assert seen
        assert seen.ended_at
        assert seen.observed.started_at
        assert seen.ended_at >= seen.observed.started_at
        (record,) = site.accounts(job, state)
        assert (record.node_count, record.elapsed_s < 600) == (2, True)
        assert len(expand_hosts(record.node_list)) == 2
        assert record.observed.started_at == pytest.approx(seen.observed.started_at, abs=2)


def test_exactly_the_named_jobs_are_cancelled(site: Site) -> None:
    beat = f"while date +%N >{site.folder}/beat; do sleep 0.05; done"
    job, other = site.submit(beat, "--nodes=1"), site.submit(SLEEP, "--nodes=1")
    site.until(other, JobState.RUNNING)
    wait_for((site.folder / "beat").exists, "its beat")
    site.queue.cancel([job, NOWHERE])
    site.until(job, JobState.CANCELLED)
    assert site.until(other, JobState.RUNNING)
    (record,) = site.accounts(job, JobState.CANCELLED)
    assert record.observed.cancelled_by == os.getuid()
    assert record.node_count == 1
    last = (site.folder / "beat").read_text()
    time.sleep(0.3)
    assert (site.folder / "beat").read_text() == last, "it still runs"
    site.queue.cancel([job])
    site.queue.cancel([other])


def test_a_job_that_never_started_is_cancelled(site: Site) -> None:
    job = site.submit("true", "--hold")
    seen = site.until(job, JobState.NEVER_STARTED).find(job)
    assert seen
    assert (seen.observed.reason, seen.observed.started_at) == ("JobHeldUser", None)
    assert (seen.node_list, seen.node_count) == ("", 1)
    site.queue.cancel([job])
    seen = site.until(job, JobState.CANCELLED).find(job)
    assert seen
    assert seen.observed.started_at is None
    (record,) = site.accounts(job, JobState.CANCELLED)
    assert (record.node_count, record.elapsed_s) == (0, 0)
    assert not expand_readable_hosts(record.node_list)


def test_what_is_not_there_is_absent(site: Site) -> None:
    job = site.submit(SLEEP)
    for asked in ([NOWHERE], [NOWHERE, "999998"], [NOWHERE, job]):
        answer = site.queue.poll(asked)
        assert answer.complete
        assert answer.state_of(NOWHERE).state is JobState.ABSENT
    assert site.queue.poll([NOWHERE, job]).state_of(job).state is not JobState.ABSENT
    assert site.queue.account([NOWHERE], time.time() - 3600) == ()
    site.queue.cancel([NOWHERE])


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "two  blanks",
        "a;b|c&d",
        "$(touch RAN) `touch RAN` ${HOME}",
        "'single' \"double\"",
        "back\\slash",
        "%j,%x=[1-2]",
        "gr\u00fc\u00df \u6f22",
        "-x --y=z",
        "#SBATCH",
    ],
)
def test_names_come_back_as_they_went(site: Site, text: str) -> None:
    # On the command line, as options in a script would have to be quoted for sbatch.
    command = ["sbatch", "--parsable", f"--job-name={text}", str(site.script("true", "--hold"))]
    done = subprocess.run(
        command, env=site.environment, cwd=site.folder, capture_output=True, check=True, text=True
    )
    job = done.stdout.strip()
    seen = site.queue.poll([job]).find(job)
    assert seen
    assert seen.name == text
    assert [one.number for one in site.queue.poll().jobs if one.name == text] == [job]
    assert not list(site.folder.glob("RAN"))
    site.queue.cancel([job])


def test_options_stand_in_the_script(site: Site) -> None:
    job = site.submit("true", "--job-name=from-the-script", "--hold")
    seen = site.queue.poll([job]).find(job)
    assert seen
    assert seen.name == "from-the-script"
    site.queue.cancel([job])


def test_a_job_that_would_be_taken(site: Site) -> None:
    before = {job.number for job in site.queue.poll().jobs}
    script = site.script("true", "--nodes=2")
    said = site.queue.test_only(script, folder=site.folder)
    assert "to start at" in said
    assert "on nodes n" in said
    assert "sbatch" not in said
    assert {job.number for job in site.queue.poll().jobs} == before


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--partition=nowhere", "Invalid partition name"),
        ("--time=never", "Invalid --time"),
        ("--nodelist=n99", "Invalid node name"),
    ],
)
def test_a_job_that_can_not_be(site: Site, option: str, words: str) -> None:
    with pytest.raises(SlurmFault, match=words) as caught:
        site.submit("true", option)
    assert (caught.value.error, caught.value.perhaps_accepted) == (SlurmError.REFUSED, False)
    with pytest.raises(SlurmFault) as tested:
        site.queue.test_only(site.script("true", option), folder=site.folder)
    assert tested.value.error is SlurmError.REFUSED


def test_an_option_that_slurm_does_not_have(site: Site) -> None:
    with pytest.raises(SlurmFault) as caught:
        site.submit("true", "--no-such-option=1")
    assert caught.value.error is SlurmError.NOT_UNDERSTOOD


def test_our_jobs_are_found_without_their_numbers(site: Site) -> None:
    job = site.submit(SLEEP, "--job-name=ours-1a2b")
    site.until(job, JobState.RUNNING)
    assert [one.number for one in site.queue.poll().jobs if one.name == "ours-1a2b"] == [job]
    assert SlurmScheduler(site.environment, user=65533).poll().jobs == ()
    assert SlurmScheduler(site.environment, user=65533).poll([job]).jobs == ()
    since = time.time() - 3600
    wait_for(
        lambda: [r for r in site.queue.account(None, since) if r.number == job], "its account"
    )
    site.queue.cancel([job])


def test_a_node_that_dies(site: Site) -> None:
    job = site.submit(SLEEP, "--nodes=1", "--nodelist=n2")
    site.until(job, JobState.RUNNING)
    site.fail_node("n2")
    site.until(job, JobState.NODE_FAILURE)
    assert site.accounts(job, JobState.NODE_FAILURE)[-1].node_list == "n2"
    assert site.queue.failed_nodes(["n1", "n2", "n3"]) == {"n2"}
    assert site.queue.failed_nodes(["n1"]) == frozenset()
    elsewhere = site.submit(SLEEP, "--nodes=2", "--exclude=n2")
    there = site.until(elsewhere, JobState.RUNNING).find(elsewhere)
    assert there
    assert there.node_list == "n[1,3]"
    site.queue.cancel([elsewhere])


def test_accounts_that_are_off_or_down(site: Site) -> None:
    for environment, trouble in (
        (site.without_accounts, SlurmError.ACCOUNTING_OFF),
        (site.accounts_down, SlurmError.ACCOUNTING_DOWN),
    ):
        with pytest.raises(SlurmFault) as caught:
            SlurmScheduler(environment()).account(["1"], time.time() - 60)
        assert caught.value.error is trouble


def test_what_the_site_says_of_itself(site: Site) -> None:
    described = describe_site(site.environment, site.folder)
    assert described.name
    assert described.version
    assert described.keeps_accounts
    nodes, topology = ["n1", "n2", "n3"], described.topology
    assert find_distance(topology, nodes) is Distance.SAME_GROUP
    assert find_distance(topology, nodes[:2]) is Distance.SAME_SWITCH
