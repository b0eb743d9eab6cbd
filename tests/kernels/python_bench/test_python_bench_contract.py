"""The Python benchmark keeps the contract: lines valid, numbers consistent, checks real."""

from __future__ import annotations

import os
import re
import statistics
import sys
from pathlib import Path

import pytest
from bench_runs import Ended
from python_bench_runs import RunPython

from commtune.kernels.programs import PythonProgram, libmpi_of
from commtune.kernels.python_bench.faults import UsageFault
from commtune.kernels.python_bench.layout import OPERATIONS, lay_out
from commtune.kernels.python_bench.options import Options
from commtune.kernels.records import read_records
from commtune.model import DEFAULT, MpiInstallation, Operation, RunRequest, Timing, Workload


def test_a_variable_of_nccl_makes_several_nodes_as_in_the_native_one(
    run_python: RunPython,
) -> None:
    records = run_python.folder / "records.jsonl"
    completed = run_python.run(
        [
            "sh", "-c", 'NCCL_HOSTID=n$((PMI_RANK / 2)) exec "$@"', "sh",
            sys.executable, "-P", "-m", "commtune.kernels.python_bench", "--op=ring", "--sizes=64",
            "--max-samples=10", f"--records={records}",
        ],
        3,
    )  # fmt: skip
    header, *_ = Ended(completed, records).valid_records()
    assert (header["nodes"], header["nodes_by"]) == (2, "NCCL_HOSTID")
    assert [(r["node"], r["local_rank"]) for r in header["rank_info"]] == [(0, 0), (0, 1), (1, 0)]
    header, *_ = run_python("--op=ring", "--sizes=64", ranks=3).valid_records()
    assert (header["nodes"], "nodes_by" in header) == (1, False)


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_follows_the_contract(run_python: RunPython, operation: str) -> None:
    run = run_python(f"--op={operation}", "--sizes=8,4096,100000", "--run-id=one", ranks=3)
    header, *measurements, footer = run.valid_records()
    assert (header["operation"], header["run_id"], header["backend"]) == (
        operation, "one", "python-host",
    )  # fmt: skip
    assert header["benchmark"]["compiler"].startswith("Python ")
    assert [rank["rank"] for rank in header["rank_info"]] == [0, 1, 2]
    assert [m["bytes"] for m in measurements] == [8, 4096, 100000]
    assert all(m["checked"] > 0 and m["wrong"] == 0 for m in measurements)
    assert footer["status"] == "ok"
    assert footer["measurements"] == 3
    found = read_records(run.records)
    assert not found.problems
    assert [m.canary_s for m in found.measurements] == [None] * 3


@pytest.mark.parametrize(
    ("operation", "dtype"),
    [("alltoall", "float64"), ("reduce-scatter", "int32"), ("allreduce", "uint8")],
)
def test_every_type_is_summed_exactly(run_python: RunPython, operation: str, dtype: str) -> None:
    run = run_python(f"--op={operation}", "--sizes=3000", f"--dtype={dtype}", ranks=3)
    _, measurement, _ = run.valid_records()
    assert measurement["checked"] > 0
    assert measurement["wrong"] == 0


def test_numbers_agree_with_the_samples(run_python: RunPython) -> None:
    run = run_python("--op=allgather", "--sizes=1200", "--min-samples=3", ranks=3)
    _, measurement, _ = run.valid_records()
    samples_s = [ns * 1e-9 for ns in measurement["samples_ns"]]
    times = measurement["time_s"]
    assert times["median"] == pytest.approx(statistics.median(samples_s), rel=1e-6, abs=1e-10)
    assert times["stdev"] == pytest.approx(statistics.stdev(samples_s), rel=1e-6, abs=1e-10)
    low, high = measurement["median_ci_s"]
    assert low <= times["median"] <= high
    assert measurement["algbw_Bps"] == pytest.approx(1200 / times["median"], rel=1e-6)
    assert measurement["busbw_Bps"] == pytest.approx(
        lay_out("allgather", "float32", 8, 3).bus_factor * measurement["algbw_Bps"], rel=1e-6
    )


def test_the_program_asks_for_what_the_reader_expects(
    run_python: RunPython, mpi: MpiInstallation, tmp_path: Path
) -> None:
    workload = Workload(Operation.ALLREDUCE, (8, 1024), ranks=2, backend="python-host")
    request = RunRequest("r-1", DEFAULT, workload, Timing(max_samples=10, operations=1))
    program = PythonProgram(libmpi_of(mpi), env_names=("HOME", "COMMTUNE_UNSET"))
    records = tmp_path / "own.jsonl"
    words = program.arguments(request, records)
    completed = run_python.run(words, 2)
    assert completed.ok, completed.output
    found = program.read(records, request)
    assert not found.problems
    assert [(m.bytes, m.batch) for m in found.measurements] == [(8, 1), (1024, 1)]
    assert found.header is not None
    seen = [rank["environment"] for rank in found.header["rank_info"]]
    assert seen == [{"HOME": os.environ["HOME"]}] * 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--op=allreduce"], "required: --sizes"),
        (["--op=sum", "--sizes=8"], "one of: ping-pong"),
        (["--op=allreduce", "--sizes=8,8"], "8 is there twice"),
        (["--op=allreduce", "--sizes=8", "--time-cap=x"], "'x' is not a number from"),
        (["--op=allreduce", "--sizes=8", "--backend=xccl"], "--backend: invalid choice: 'xccl'"),
        (["--op=allreduce", "--sizes=8", "--size=8"], "unrecognized arguments: --size=8"),
    ],
)
def test_arguments_that_are_wrong_are_refused(arguments: list[str], words: str) -> None:
    with pytest.raises(UsageFault, match=re.escape(words)):
        Options.parse(arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--op=allreduce", "--sizes=8,8"], "8 is there twice"),
        (["--op=allreduce", "--sizes=2"], "less than one element of float32"),
        (["--op=allreduce", "--sizes=8", "--backend=python-device"], "needs CuPy"),
        (["--op=allreduce", "--sizes=8", "--libmpi=/opt/no"], "/opt/no: cannot open"),
    ],
)
def test_what_is_wrong_is_said_once(
    run_python: RunPython, arguments: list[str], words: str
) -> None:
    completed = run_python(*arguments).completed
    if "needs CuPy" in words and "no GPU" in completed.output:
        return  # CuPy is there, and no GPU
    # What this machine lacks is waived, and no mistake of the arguments.
    assert completed.exit_code == (5 if words == "needs CuPy" else 2)
    assert words in completed.output
    assert completed.output.count("commtune-bench:") == 1
    assert "Traceback" not in completed.output


def test_nothing_is_done_with_another_number_of_ranks(run_python: RunPython) -> None:
    run = run_python("--op=allreduce", "--sizes=8", "--expect-ranks=3")
    assert run.completed.exit_code == 4
    assert "commtune-bench: asked for were 3 ranks" in run.completed.output
    assert not run.records.exists()
