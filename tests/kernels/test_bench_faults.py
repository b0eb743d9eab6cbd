"""A benchmark that hangs, crashes, lies or babbles, and one that is called wrongly."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench_runs import RunBench
from late_limits import begin_when

from commtune.kernels.bench import NativeProgram
from commtune.kernels.records import read_records
from commtune.model import DEFAULT, Operation, RunRequest, Timing, Workload

_SIZES = "--sizes=8,1024,4096"


def test_wrong_data_is_found_counted_and_told(run_bench: RunBench) -> None:
    run = run_bench("--op=allreduce", _SIZES, "--fault=wrong@1024")
    records = read_records(run.records)
    assert run.completed.exit_code == 3
    assert records.problems == ()
    # Spoiled twice: after the first call and after the last.
    assert [(m.bytes, m.wrong) for m in records.measurements] == [(8, 0), (1024, 2), (4096, 0)]
    assert records.footer is not None
    assert records.footer["status"] == "wrong"


@pytest.mark.parametrize(("fault", "status"), [("wrong@4096", 3), ("wrong@7", 0)])
def test_a_quick_end_loses_no_record_and_no_status(
    run_bench: RunBench, fault: str, status: int
) -> None:
    run = run_bench("--op=allreduce", _SIZES, f"--fault={fault}", "--end=quick")
    records = read_records(run.records)
    assert run.completed.exit_code == status
    assert records.problems == ()
    assert [m.bytes for m in records.measurements] == [8, 1024, 4096]
    assert records.footer is not None


def test_without_the_check_nobody_sees_wrong_data(run_bench: RunBench) -> None:
    run = run_bench("--op=allreduce", _SIZES, "--fault=wrong@1024", "--check=none")
    assert run.completed.exit_code == 0
    assert all('"checked":0' in line for line in run.lines if '"measurement"' in line)


def test_a_crash_leaves_the_sizes_that_were_finished(run_bench: RunBench) -> None:
    run = run_bench("--op=allreduce", _SIZES, "--fault=crash@1024")
    records = read_records(run.records)
    assert run.completed.exit_code != 0
    assert [m.bytes for m in records.measurements] == [8]
    assert records.footer is None
    assert records.problems == ()


def test_a_hang_leaves_the_sizes_that_were_finished(
    run_bench: RunBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = run_bench.folder / "records.jsonl"
    # The header, and the sizes before the one at which it hangs.
    begin_when(monkeypatch, lambda: file.exists() and file.read_text().count("\n") == 3)
    run = run_bench("--op=allreduce", _SIZES, "--fault=hang@4096", timeout_s=0.5)
    records = read_records(run.records)
    assert run.completed.timed_out
    assert [m.bytes for m in records.measurements] == [8, 1024]
    assert records.footer is None
    assert records.problems == ()


def test_babble_is_a_problem_and_is_not_read_to_its_end(run_bench: RunBench) -> None:
    run = run_bench("--op=allreduce", _SIZES, "--fault=babble@1024")
    assert run.completed.exit_code == 0
    assert run.records.stat().st_size > 64 * 2**20
    records = read_records(run.records)
    run.records.unlink()
    assert [m.bytes for m in records.measurements] == [8]
    assert records.footer is None
    assert records.problems == ("longer than 67108864 bytes; the rest was not read",)


def test_wrong_arguments_exit_with_2_and_say_what_is_legal(run_bench: RunBench) -> None:
    """Others, and what is said of them, are tested in C++."""
    run = run_bench("--op=allredduce", "--sizes=8")
    assert run.completed.exit_code == 2
    message = "unknown operation 'allredduce'; one of: ping-pong"
    assert run.completed.output.count(message) == 1
    assert not run.records.exists()


@pytest.mark.parametrize(("ranks", "found"), [(1, "each came up as"), (3, "this world has 3:")])
def test_another_number_of_ranks_than_expected_measures_nothing(
    run_bench: RunBench, ranks: int, found: str
) -> None:
    run = run_bench("--op=allreduce", "--sizes=8", "--expect-ranks=2", ranks=ranks)
    assert run.completed.exit_code == 4
    assert run.completed.output.count(f"asked for were 2 ranks, but {found}") == 1
    assert "--mpi=pmix for Open MPI" in run.completed.output
    assert not run.records.exists()


def test_a_request_expects_its_ranks(run_bench: RunBench, executable: Path) -> None:
    request = RunRequest("id", DEFAULT, Workload(Operation.ALLREDUCE, (8,), ranks=3), Timing())
    given = NativeProgram(executable).arguments(request, run_bench.folder / "records")
    run = run_bench(*given[1:])
    assert run.completed.exit_code == 4


def test_records_that_cant_be_written_end_all_ranks(run_bench: RunBench) -> None:
    run = run_bench("--op=allreduce", "--sizes=8", "--records=/nonexistent/records")
    assert run.completed.exit_code == 1
    assert "rank 0: can't write /nonexistent/records: No such file" in run.completed.output
