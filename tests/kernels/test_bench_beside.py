"""Victims and aggressors in one run of the real benchmark: who did what, and how it ends."""

from __future__ import annotations

import pytest
from bench_runs import RunBench, read_valid

from commtune.cluster.exit_codes import judge_run
from commtune.kernels.records import read_records
from commtune.model import Outcome

_QUICK = ("--max-samples=10", "--time-cap=0.01")


@pytest.mark.parametrize("pattern", ["incast", "alltoall"])
def test_every_record_says_what_the_aggressors_did(run_bench: RunBench, pattern: str) -> None:
    run = run_bench(
        "--op=allreduce", "--sizes=8,65536", "--aggressors=0,3-4", f"--pattern={pattern}",
        "--message=65536", *_QUICK, ranks=5,
    )  # fmt: skip
    header, *measurements, footer = run.valid_records()
    beside = header["aggressors"]
    assert (beside["ranks"], beside["victims"]) == ([0, 3, 4], [1, 2])
    assert (beside["pattern"], beside["message_bytes"], beside["burst_s"]) == (pattern, 65536, 0)
    assert (header["ranks"], header["nodes"]) == (2, 1)
    pids = [rank["pid"] for rank in (*header["rank_info"], *beside["rank_info"])]
    assert len(set(pids)) == 5
    assert [rank["rank"] for rank in beside["rank_info"]] == [0, 1, 2]
    assert [m["bytes"] for m in measurements] == [8, 65536]
    assert all(m["checked"] > 0 and m["wrong"] == 0 for m in measurements)
    for activity in (*(m["aggressors"] for m in measurements), footer["aggressors"]):
        assert activity["active"] is True
        # Whole rounds: from each of two to one, or to each of the two others.
        pairs = {"incast": 2 * beside["window"], "alltoall": 6}[pattern]
        assert activity["bytes_moved"] > 0
        assert activity["bytes_moved"] % (65536 * pairs) == 0
        assert activity["bytes_between_nodes"] == 0
        assert 0 < activity["active_s"] <= activity["traffic_s"] + 1e-9
    moved = sum(m["aggressors"]["bytes_moved"] for m in measurements)
    assert footer["aggressors"]["bytes_moved"] > moved
    assert read_records(run.records).problems == ()


def test_a_run_without_aggressors_says_nothing_of_them(run_bench: RunBench) -> None:
    run = run_bench("--op=allreduce", "--sizes=8", *_QUICK)
    assert not any("aggressors" in record for record in run.valid_records())


def test_a_size_in_a_pause_is_told(run_bench: RunBench) -> None:
    # The burst is over before the last size begins, and the pause outlasts the run. It may be
    # shorter than the time that a busy machine takes until all aggressors have come.
    run = run_bench(
        "--op=self", "--sizes=8,16,32", "--aggressors=last:2", "--pattern=incast",
        "--message=8", "--burst=0.001", "--pause=100", "--relative-ci=0", "--time-cap=0.2",
        "--max-samples=1000000", ranks=3,
    )  # fmt: skip
    *_, last, footer = run.valid_records()
    assert last["aggressors"]["active"] is False
    assert last["aggressors"]["bytes_moved"] == 0
    assert last["aggressors"]["active_s"] == 0 < last["aggressors"]["traffic_s"]
    assert footer["aggressors"]["active"] is False
    assert footer["aggressors"]["bytes_moved"] > 0


def test_wrong_results_are_found_beside_aggressors(run_bench: RunBench) -> None:
    run = run_bench(
        "--op=ring", "--sizes=8,64", "--aggressors=every:2", "--pattern=alltoall",
        "--message=4096", "--fault=wrong@64", *_QUICK, ranks=4,
    )  # fmt: skip
    _, right, wrong, footer = run.valid_records(exit_code=3)
    assert (right["wrong"], wrong["wrong"] > 0, footer["status"]) == (0, True, "wrong")


def test_one_mistake_ends_both_and_is_said_once(run_bench: RunBench) -> None:
    run = run_bench(
        "--op=ring", "--sizes=8", "--aggressors=0-1", "--pattern=incast", "--message=8",
        "--backend=telepathy", "--aggressor-backend=mpi-host", *_QUICK, ranks=4,
    )  # fmt: skip
    assert run.completed.exit_code == 2, run.completed.output
    assert run.completed.output.count("this executable has no backend 'telepathy'") == 1


def test_what_the_machine_lacks_for_one_part_is_waived(run_bench: RunBench) -> None:
    beside = ("--aggressors=last:2", "--pattern=incast", "--aggressor-backend=ipc-put")
    run = run_bench("--op=ring", "--sizes=8", *beside, "--message=8", *_QUICK, ranks=4)
    outcome, reason = judge_run(read_records(run.records), run.completed, 60.0)
    assert (outcome, run.completed.exit_code) == (Outcome.MISSING_PROGRAM, 5), reason
    assert reason.startswith("waived: rank 2: this executable has no backend 'ipc-put'")


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["crash@64", "hang@64"])
def test_victims_that_fail_leave_no_aggressors(run_bench: RunBench, fault: str) -> None:
    run = run_bench(
        "--op=ring", "--sizes=8,64", "--aggressors=last:2", "--pattern=incast",
        "--message=65536", "--longest=1", f"--fault={fault}", *_QUICK, ranks=4,
    )  # fmt: skip
    # What a launcher makes of it differs; that the run ended is what counts.
    assert not run.completed.timed_out
    assert not run.completed.ok, run.completed.output
    kinds = [record["record"] for record in read_valid(run.records)]
    assert kinds == ["header", "measurement"]
    if fault.startswith("hang"):
        assert "ended by force" in run.completed.output
