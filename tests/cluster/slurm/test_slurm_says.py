"""What a real Slurm says, live, and as recorded by recorded/make.py."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from accounts import state_in_accounts
from slurm_cluster import NODES, Cluster
from slurm_jobs import ENDED, LIVING, make_jobs
from waiting import PATIENCE_S, wait_for

from commtune.cluster.job_states import JobState, PendingReason
from commtune.cluster.placement import Distance, expand_hosts, find_distance
from commtune.cluster.scheduler import (
    AccountedJob,
    QueueSnapshot,
    sum_node_hours,
)
from commtune.cluster.slurm.allocation import _switches_by_address, read_topology
from commtune.cluster.slurm.client import SlurmScheduler
from commtune.cluster.slurm.command_output import classify_reason, read_accounts, read_queue
from commtune.cluster.slurm.faults import SlurmError, SlurmFault, classify_error
from commtune.cluster.slurm.site import explain_silence, explain_silent_accounts

RECORDED = Path(__file__).parent / "recorded"
EXPECTED = {**LIVING, **ENDED}


@pytest.fixture(scope="module")
def cluster(shared_slurm: Cluster) -> Iterator[Cluster]:
    yield shared_slurm
    shared_slurm.tidy()


@pytest.fixture(scope="module")
def jobs(cluster: Cluster) -> dict[str, str]:
    return make_jobs(cluster)


@pytest.fixture(scope="module")
def queue(cluster: Cluster) -> SlurmScheduler:
    return SlurmScheduler(cluster.environment)


def ids_in(answer: QueueSnapshot) -> dict[str, str]:
    # An array or a heterogeneous job as a whole has the first number of its parts.
    latest_first = sorted(answer.jobs, key=lambda job: -int(job.number))
    return {job.name: job.number for job in latest_first}


def check_queue(answer: QueueSnapshot, jobs: Mapping[str, str]) -> None:
    assert answer.complete
    seen = {name: answer.state_of(job).state for name, job in jobs.items()}
    assert seen == {name: EXPECTED[name] for name in jobs}
    for name, job in jobs.items():
        entry = answer.find(job)
        assert entry
        waited = name in LIVING and name not in ("running", "suspended")
        assert (entry.observed.started_at is None) == (waited or name == "cancelled-before")
        assert len(expand_hosts(entry.node_list)) in (0, entry.node_count)
        assert (entry.ended_at is not None) == entry.observed.state.is_over
        reason = entry.observed.reason
        assert not reason or classify_reason(reason) is not PendingReason.UNKNOWN


def check_accounts(records: tuple[AccountedJob, ...], jobs: Mapping[str, str]) -> None:
    for name in ENDED.keys() & jobs.keys():
        states = {record.observed.state for record in records if record.number == jobs[name]}
        assert EXPECTED[name] in states, name
    by_name = {record.name: record for record in records}
    assert by_name["cancelled"].observed.cancelled_by == 0
    assert by_name["node-failure"].node_list == "n3"
    assert by_name["completed"].node_count == 2
    assert by_name["cancelled-before"].node_count == 0
    assert state_in_accounts(records, jobs["put-back"]).state is JobState.PENDING
    assert len({record.number for record in records}) < len(records)


def test_recorded_queue() -> None:
    answer = read_queue((RECORDED / "squeue.txt").read_text())
    jobs = ids_in(answer)
    assert set(jobs) == set(EXPECTED)
    check_queue(answer, jobs)


def test_recorded_accounts() -> None:
    answer = read_queue((RECORDED / "squeue.txt").read_text())
    records = read_accounts((RECORDED / "sacct.txt").read_text())
    check_accounts(records, ids_in(answer))
    by_accounts = sum_node_hours(records)
    now = max(r.observed.started_at or 0 for r in records) + 1
    by_queue = sum(
        job.node_count * ((job.ended_at or now) - job.observed.started_at) / 3600
        for job in answer.jobs
        if job.observed.started_at is not None and job.node_list
    )
    assert by_accounts == pytest.approx(by_queue, abs=5 / 3600 * len(records))


@pytest.mark.parametrize(
    "trouble", [t for t in SlurmError if (RECORDED / f"{t.name}.txt").exists()]
)
def test_recorded_messages(trouble: SlurmError) -> None:
    assert classify_error((RECORDED / f"{trouble.name}.txt").read_text()) is trouble


def test_there_are_recorded_messages() -> None:
    assert len(list(RECORDED.glob("[A-Z]*_*.txt"))) >= 5


def test_all_jobs_in_one_call(queue: SlurmScheduler, jobs: dict[str, str]) -> None:
    check_queue(queue.poll(jobs.values()), jobs)


def test_our_jobs_are_found_by_name_after_their_ids_were_lost(
    queue: SlurmScheduler, jobs: dict[str, str]
) -> None:
    assert jobs.items() <= ids_in(queue.poll()).items()


def test_a_job_that_is_not_there_is_absent(queue: SlurmScheduler, jobs: dict[str, str]) -> None:
    for asked in (["999999"], ["999999", "999998"], ["999999", jobs["running"]]):
        assert queue.poll(asked).state_of("999999").state is JobState.ABSENT
    assert queue.poll([jobs["running"]]).state_of(jobs["running"]).state is JobState.RUNNING


def test_settings_of_the_user_change_nothing(cluster: Cluster, jobs: dict[str, str]) -> None:
    odd = {
        "SQUEUE_FORMAT": "%j",
        "SQUEUE_STATES": "PD",
        "SQUEUE_NAMES": "nothing",
        "SLURM_CLUSTERS": "elsewhere",
        "SLURM_TIME_FORMAT": "relative",
    }
    check_queue(SlurmScheduler({**cluster.environment, **odd}).poll(jobs.values()), jobs)


def test_other_users_jobs_are_left_alone(queue: SlurmScheduler, jobs: dict[str, str]) -> None:
    other = replace(queue, user=65534)
    assert other.poll().jobs == ()
    assert other.poll(jobs.values()).jobs == ()


def test_accounts_of_all_jobs(queue: SlurmScheduler, jobs: dict[str, str]) -> None:
    # Accounts lag by a fraction of a second.
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            check_accounts(queue.account(jobs.values(), time.time() - 3600), jobs)
            return
        except (AssertionError, KeyError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def test_accounts_know_only_what_is_asked_for(queue: SlurmScheduler, jobs: dict[str, str]) -> None:
    since = time.time() - 3600
    assert queue.account(["999999"], since) == ()
    # slurmdbd may hear of a job's step before the job, which is "allocation" until then.
    wait_for(
        lambda: {job.name for job in queue.account(None, since)} >= {"failed", "running"},
        "both jobs' names",
    )
    assert [job.name for job in queue.account([jobs["failed"]], since)] == ["failed"]
    assert queue.has_accounts()


@pytest.mark.parametrize(
    ("name", "changes", "trouble"),
    [
        ("controller", {"SlurmctldPort": "1", "MessageTimeout": "2"}, SlurmError.CONTROLLER_DOWN),
        ("munge", {"AuthInfo": "socket=/nowhere"}, SlurmError.AUTHENTICATION),
    ],
)
def test_why_the_queue_does_not_answer(
    cluster: Cluster, name: str, changes: dict[str, str], trouble: SlurmError
) -> None:
    with pytest.raises(SlurmFault) as caught:
        SlurmScheduler(cluster.variant(name, **changes)).poll(["1"])
    assert caught.value.error is trouble
    assert caught.value.transient


@pytest.mark.parametrize(
    ("changes", "trouble", "told"),
    [
        ({"AccountingStorageType": "accounting_storage/none"}, SlurmError.ACCOUNTING_OFF, ""),
        (
            {"AccountingStoragePort": "1"},
            SlurmError.ACCOUNTING_DOWN,
            "slurmdbd does not answer",
        ),
        (
            {"AccountingStoragePass": "/nowhere"},
            SlurmError.AUTHENTICATION,
            "slurmdbd gives no answer: Slurm could not authenticate the request",
        ),
    ],
)
def test_why_accounts_do_not_answer(
    cluster: Cluster, changes: dict[str, str], trouble: SlurmError, told: str
) -> None:
    environment = cluster.variant(f"accounts-{trouble.name}", **changes)
    assert explain_silent_accounts(environment) == told
    meaning = "('sacct'): node-hours are taken from the jobs' own times"
    assert explain_silence(environment) == (f"{told} {meaning}" if told else "")
    accounting = SlurmScheduler(environment)
    with pytest.raises(SlurmFault) as caught:
        accounting.account(["1"], time.time())
    assert caught.value.error is trouble
    assert accounting.has_accounts() == caught.value.transient


@pytest.mark.parametrize(
    "text",
    [
        "n[001-003,007],gpu-a1b[3-4]",
        "r[0-1]n[0-1]",
        "n[099-101]",
        "n[8-10,012-013]",
        "b,a,b",
        "x1000c0s[0-1]b0n[0-1]",
    ],
)
def test_lists_are_expanded_as_slurm_does(cluster: Cluster, text: str) -> None:
    assert list(expand_hosts(text)) == cluster.call("scontrol", "show", "hostnames", text).split()


def test_where_nodes_stand(cluster: Cluster) -> None:
    topology = read_topology(cluster.call("scontrol", "show", "topology"))
    assert find_distance(topology, ["n1", "n2"]) is Distance.SAME_SWITCH
    assert find_distance(topology, NODES) is Distance.SAME_GROUP
    said = 'echo "$SLURM_TOPOLOGY_ADDR $SLURM_TOPOLOGY_ADDR_PATTERN"'
    job = cluster.submit(said, "--nodelist=n2")
    cluster.until(job, "COMPLETED")
    address, pattern = (cluster.folder / f"out-{job}").read_text().split()
    assert _switches_by_address(address, pattern) == topology["n2"]


_SAY_POSITIONS = """
import os, time
from commtune.cluster.slurm.allocation import find_allocation, topology_of
found = topology_of(find_allocation(os.environ, time.time), {})
print([(name, *map(sorted, found[name])) for name in sorted(found)])
"""


def test_nodes_of_an_allocation_say_where_they_stand(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "say.py").write_text(_SAY_POSITIONS)
    job = cluster.submit(f"{sys.executable} {tmp_path}/say.py", "--nodelist=n1,n2")
    cluster.until(job, "COMPLETED")
    known = read_topology(cluster.call("scontrol", "show", "topology"))
    wanted = [(name, *map(sorted, known[name])) for name in ("n1", "n2")]
    assert cluster.output(job) == f"{wanted}\n"


def test_nodes_that_failed(cluster: Cluster, queue: SlurmScheduler, jobs: dict[str, str]) -> None:
    assert jobs
    cluster.call("scontrol", "update", "nodename=n2", "state=drain", "reason=test")
    assert "n2" in queue.failed_nodes(NODES)
    assert queue.failed_nodes(["n1"]) == frozenset()
    cluster.call("scontrol", "update", "nodename=n2", "state=resume")
    assert queue.failed_nodes([]) == frozenset()
