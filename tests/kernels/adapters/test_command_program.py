"""A user's command as the benchmark, launched by a real MPI, with all ways that a run can end."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from components import require_component
from made_files import write_script
from waiting import PATIENCE_S

from commtune import process
from commtune.cluster.local.benchmark import LocalBenchmark
from commtune.cluster.local.launch import base_environment, command_path
from commtune.documents.packed_files import pack_file
from commtune.kernels.adapters.program import CommandProgram
from commtune.kernels.programs import files_of, libmpi_of, other_program
from commtune.model import (
    Configuration,
    Measurement,
    MpiInstallation,
    Operation,
    Outcome,
    OwnBenchmark,
    RunRequest,
    RunResult,
    Timing,
    Workload,
)
from commtune.slurm_templates.quoting import quote_word

_ROOT = Path(__file__).parents[3]
# Its left-over processes are found by it: no other test may use it, nor another session's.
_RUN_ID = f"run-of-a-command-{os.getpid()}"
_MEAN = """\
import json, os, sys, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
data = bytearray(int(sys.argv[1]))
times = []
for _ in range(5):
    comm.Barrier()
    began = time.perf_counter()
    comm.Bcast(data, 0)
    times.append(time.perf_counter() - began)
if comm.rank == 0:
    print("what a training program says")
    print(json.dumps({"bytes": len(data), "times_s": times}), flush=True)
    print(os.environ.get("TUNED", "untuned"), file=sys.stderr)
"""


def _measure(
    mpi: MpiInstallation,
    folder: Path,
    command: list[str],
    *,
    output: str = "json-line",
    sizes: tuple[int, ...] = (8,),
    limit_s: float = PATIENCE_S,
) -> RunResult:
    benchmark = LocalBenchmark(
        mpi=mpi,
        program=CommandProgram(command, output, folder, libmpi=libmpi_of(mpi)),
        environment=base_environment(os.environ, mpi),
        watched=("TUNED",),
        folder=folder / "runs",
    )
    workload = Workload(Operation.BROADCAST, sizes, ranks=2, backend="command")
    request = RunRequest(_RUN_ID, Configuration({"TUNED": "yes"}), workload, Timing())
    return benchmark.measure(request, limit_s)


def _sizes(measurements: tuple[Measurement, ...]) -> list[int]:
    return [m.bytes for m in measurements]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Where a test writes a program; commands find it by its name alone."""
    return tmp_path / "program.py"


def test_a_program_of_two_ranks(mpi: MpiInstallation, tmp_path: Path, script: Path) -> None:
    # By itself mpi4py may load the system's MPI: then each rank is a world of its own.
    script.write_text(f"{_MEAN}assert comm.size == 2\nopen('tuned-' + os.environ['TUNED'], 'w')\n")
    command = [sys.executable, "program.py", "{largest}"]
    result = _measure(mpi, tmp_path, command, sizes=(64,))
    assert result.outcome is Outcome.OK, (result.detail, result.output_tail)
    (measurement,) = result.measurements
    assert measurement.bytes == 64
    assert len(measurement.samples_s) == 5
    assert measurement.canary_s is None
    assert result.header is not None
    assert "rank_info" not in result.header  # nobody knows what its ranks see
    assert result.footer is not None
    assert result.footer["elapsed_s"] > 0
    assert (tmp_path / "tuned-yes").exists()


def test_imb_itself(mpi: MpiInstallation, tmp_path: Path) -> None:
    imb = next((_ROOT / ".mpi").glob("impi-*/bin/IMB-MPI1"), None)
    require_component("IMB-MPI1 (make .mpi/impi)", imb is not None)
    assert imb is not None
    (tmp_path / "lengths").write_text("8\n4096\n")
    command = [
        "env", f"LD_LIBRARY_PATH={mpi.prefix / 'lib'}", str(imb), "allreduce", "-msglen",
        "lengths", "-iter", "50",
    ]  # fmt: skip
    result = _measure(mpi, tmp_path, command, output="imb", sizes=(8, 4096))
    assert result.outcome is Outcome.OK, (result.detail, result.output_tail)
    assert _sizes(result.measurements) == [8, 4096]


@pytest.mark.parametrize(
    ("body", "outcome", "words"),
    [
        ('print(\'{"bytes": 8, "time_s": 1e-6, "wrong": 4}\')', Outcome.WRONG_RESULT, "4 el"),
        ("import os; os.kill(os.getpid(), 11)", Outcome.CRASHED, "signal"),
        ("import time; time.sleep(900)", Outcome.TIMED_OUT, "0 sizes finished"),
        ("print('nothing of use')", Outcome.MALFORMED, "there is no line like"),
        ('print(\'{"bytes": 16, "time_s": 1e-6}\')', Outcome.MALFORMED, "no record for 1 size: "),
        ('print(\'{"bytes": 8, "time_s": 0}\')', Outcome.MALFORMED, "not a time in seconds"),
        ("raise SystemExit(3)", Outcome.FAILED, "exit status 1"),
        ("print('last words'); raise SystemExit(5)", Outcome.FAILED, "exit status 5"),
    ],
)
def test_each_way_to_end_badly_is_an_outcome(
    mpi: MpiInstallation, tmp_path: Path, script: Path, body: str, outcome: Outcome, words: str
) -> None:
    script.write_text(body)
    limit_s = 3.0 if outcome is Outcome.TIMED_OUT else PATIENCE_S
    result = _measure(mpi, tmp_path, [sys.executable, "program.py"], limit_s=limit_s)
    assert (result.outcome, words in result.detail) == (outcome, True), result.detail
    if "last words" in body:
        assert "last words" in result.output_tail


def test_a_command_that_is_not_there(mpi: MpiInstallation, tmp_path: Path) -> None:
    result = _measure(mpi, tmp_path, ["./nowhere"])
    assert result.outcome is Outcome.NODE_FAILURE  # no setting makes a program go
    assert "nowhere" in result.output_tail


def test_sizes_that_were_not_asked_for_are_left_out(
    mpi: MpiInstallation, tmp_path: Path, script: Path
) -> None:
    lines = [f'print(\'{{"bytes": {size}, "time_s": 1e-6}}\')' for size in (1, 8, 64)]
    script.write_text("\n".join(lines))
    result = _measure(mpi, tmp_path, [sys.executable, "program.py"], sizes=(8, 64))
    assert result.outcome is Outcome.OK
    assert _sizes(result.measurements) == [8, 64]


def test_a_run_whose_controller_died_is_read_if_it_ended_well(
    mpi: MpiInstallation, tmp_path: Path, script: Path
) -> None:
    script.write_text('print(\'{"bytes": 8, "time_s": 1e-6}\')')
    program = CommandProgram([sys.executable, "program.py"], "json-line", tmp_path)
    environment = base_environment(os.environ, mpi)
    benchmark = LocalBenchmark(mpi, program, environment, (), tmp_path / "runs")
    request = RunRequest(_RUN_ID, Configuration(), Workload(Operation.BROADCAST, (8,)), Timing())
    assert benchmark.recover(request) is None
    benchmark.measure(request, PATIENCE_S)
    recovered = benchmark.recover(request)
    assert recovered is not None
    assert recovered.outcome is Outcome.OK
    records = benchmark.records_of(_RUN_ID)
    text = records.read_text()
    pack_file(records)
    assert benchmark.recover(request) == recovered
    records.write_text(text)
    records.write_text(records.read_text().partition("#commtune")[0])  # killed before its end
    assert benchmark.recover(request) is None


def test_words_with_blanks_and_signs_arrive_unchanged(
    mpi: MpiInstallation, tmp_path: Path, script: Path
) -> None:
    script.write_text(
        "import json, sys, pathlib\npathlib.Path('words').write_text(json.dumps(sys.argv[1:]))\n"
    )
    hostile = ["a b", "$HOME", "`id`", "'", '"', ";ls", "{smallest}-{largest}:{sizes}", ""]
    _measure(mpi, tmp_path, [sys.executable, "program.py", *hostile], sizes=(8, 64))
    import json

    assert json.loads((tmp_path / "words").read_text()) == [*hostile[:6], "8-64:8,64", ""]


def test_nccl_tests_json_file_is_preferred(mpi: MpiInstallation, tmp_path: Path) -> None:
    recorded = Path(__file__).parent / "recorded" / "nccl-tests-2.19-made.json"
    (tmp_path / "program.sh").write_text('cp "$1" "$2"\necho no table\n')
    command = ["sh", "program.sh", str(recorded), "{json}"]
    result = _measure(mpi, tmp_path, command, output="nccl-tests", sizes=(1024, 1048576))
    assert result.outcome is Outcome.OK, result.detail
    assert len(result.measurements[1].samples_s) == 5


def test_a_table_that_ends_early_is_cut_short(mpi: MpiInstallation, tmp_path: Path) -> None:
    recorded = Path(__file__).parent / "recorded" / "nccl-tests-2.0-error.txt"
    result = _measure(mpi, tmp_path, ["cat", str(recorded)], output="nccl-tests", sizes=(8, 16))
    assert result.outcome is Outcome.TRUNCATED
    assert result.detail == "the command ended before its table was complete"
    assert _sizes(result.measurements) == [8, 16]


def test_it_finds_what_its_user_finds(mpi: MpiInstallation, tmp_path: Path) -> None:
    """The folder of an MPI from a wheel holds programs that have nothing to do with MPI."""
    for folder, words in (("mpi", "of the MPI"), ("mine", "mine")):
        write_script(tmp_path / folder / "bin" / "train", f"echo {words} >> {tmp_path}/said")
    launcher = tmp_path / "mpi" / "bin" / "mpiexec"
    launcher.symlink_to(mpi.launcher)
    linked = replace(mpi, launcher=launcher)
    mine = {**os.environ, "PATH": f"{tmp_path / 'mine' / 'bin'}:{os.environ['PATH']}"}
    path = command_path(mine, linked)
    benchmark = LocalBenchmark(
        mpi=mpi,
        program=CommandProgram(["train"], "json-line", tmp_path, path),
        environment=base_environment(mine, linked),
        watched=(),
        folder=tmp_path / "runs",
    )
    workload = Workload(Operation.BROADCAST, (8,), ranks=1, backend="command")
    benchmark.measure(RunRequest(_RUN_ID, Configuration(), workload, Timing()), PATIENCE_S)
    assert (tmp_path / "said").read_text() == "mine\n"


def test_where_the_launchers_mpi_is_can_be_overruled(mpi: MpiInstallation, tmp_path: Path) -> None:
    """On this machine a command is told; jobs have what their modules bring."""
    own = OwnBenchmark(command=("true",), output="osu", folder=str(tmp_path))
    workload = Workload(Operation.BROADCAST, (8,), backend="command", own=own)
    here, in_job = (other_program(workload, mpi, (), path) for path in ("/usr/bin:/bin", ""))
    assert isinstance(here, CommandProgram)
    assert isinstance(in_job, CommandProgram)
    assert (here.libmpi, in_job.libmpi) == (libmpi_of(mpi), "")
    words = [
        *here.arguments(RunRequest(_RUN_ID, Configuration(), workload, Timing()), tmp_path / "r")
    ]
    words[words.index("true") :] = ["sh", "-c", 'echo "$MPI4PY_LIBMPI"']
    for given, said in (({}, libmpi_of(mpi)), ({"MPI4PY_LIBMPI": "mine"}, "mine")):
        ended = process.run_process(words, environment=given, timeout_s=PATIENCE_S)
        assert ended.ok, ended.output
        assert (tmp_path / "r").read_text().splitlines()[0] == said


def test_files_that_a_command_names_are_a_part_of_it(tmp_path: Path) -> None:
    def known(*command: str) -> dict[str, str]:
        own = OwnBenchmark(command=command, output="osu", folder=str(tmp_path))
        return files_of(Workload(Operation.BROADCAST, (8,), backend="command", own=own))

    for name in ("run", "train.py", "small.yaml", "python"):
        (tmp_path / name).write_text("1")
    command = ("python", "train.py", "--config=small.yaml", "--steps", "20", "{json}", "gone.py")
    before = known(*command)
    assert set(before) == {"train.py", "small.yaml"}  # the program is what PATH finds
    assert set(known("./run", "x" * 5000)) == {"./run"}
    (tmp_path / "train.py").write_text("2")
    after = known(*command)
    assert {name for name in before if before[name] != after[name]} == {"train.py"}
    assert known("python") == {}


def test_the_words_survive_a_job_script(tmp_path: Path) -> None:
    (tmp_path / "it's here").mkdir()
    program = CommandProgram(["sh", "-c", 'echo "$0 $1" >&2', "a b", "$X"], "osu", tmp_path)
    request = RunRequest(_RUN_ID, Configuration(), Workload(Operation.BROADCAST, (8,)), Timing())
    words = program.arguments(request, tmp_path / "it's here" / "r-1.jsonl")
    script = tmp_path / "job.sh"
    script.write_text(" ".join(quote_word(w) for w in words) + "\n")
    ended = process.run_process(
        ["bash", str(script)], environment={"PATH": os.environ["PATH"]}, timeout_s=PATIENCE_S
    )
    assert ended.ok, ended.output
    assert ended.output == "a b $X\n"
    assert program.read(tmp_path / "it's here" / "r-1.jsonl", request).footer is not None
