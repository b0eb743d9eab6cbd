"""Local runs: what the end of a process and its records mean, and runs found later."""

from __future__ import annotations

import dataclasses
import json
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from components import require_component
from left_over import living, wait_until_living
from machine_faults import MACHINE_FAULTS
from made_files import write_script
from small_disks import SMALL, fill, small_disk
from waiting import PATIENCE_S

from commtune import process, process_trees
from commtune.cluster.exit_codes import _strange_environment, judge_run
from commtune.cluster.local.benchmark import LocalBenchmark
from commtune.cluster.local.launch import Launcher
from commtune.cluster.slurm.allocation import Srun
from commtune.kernels.records import read_records
from commtune.model import (
    Configuration,
    Measurement,
    MpiFlavour,
    MpiInstallation,
    Operation,
    Outcome,
    RunRequest,
    Timing,
    Workload,
)
from commtune.tuner.ports import Records

_OK_FOOTER = {"status": "ok", "elapsed_s": 1.0}


def completed(
    code: int | None = 0, output: str = "", *, number: int | None = None, timed_out: bool = False
) -> process.Completed:
    return process.Completed(code, number, timed_out, 1.0, output)


def measured(size: int, wrong: int = 0) -> Measurement:
    return Measurement(size, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1.0, 1.0, wrong=wrong)


@pytest.mark.parametrize(
    ("found", "ended", "outcome", "detail"),
    [
        (Records(footer=_OK_FOOTER), completed(), Outcome.OK, ""),
        (
            Records(),
            completed(None, number=9, timed_out=True),
            Outcome.TIMED_OUT,
            "over its 2.5 s, with 0 sizes finished",
        ),
        (
            Records(footer=_OK_FOOTER, measurements=(measured(8),)),
            completed(0, timed_out=True),
            Outcome.TIMED_OUT,
            "over its 2.5 s, with 1 size finished",
        ),
        (
            Records(footer={"status": "wrong"}, measurements=(measured(8, 3), measured(16, 4))),
            completed(3),
            Outcome.WRONG_RESULT,
            "7 elements of the result were wrong",
        ),
        (
            Records(),
            completed(None, number=signal.SIGSEGV),
            Outcome.CRASHED,
            "the launcher was ended by signal 11",
        ),
        (
            Records(),
            completed(9, "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)"),
            Outcome.CRASHED,
            "a rank was ended by a signal (status 9)",
        ),
        (  # as MPICH ends where one rank fails, and the launcher ends the other
            Records(),
            completed(
                9,
                "Abort(874136719): Fatal error in internal_Init: Other MPI error, error stack:\n"
                "internal_Init(70)........: MPI_Init(argc=0x7ffd4a, argv=0x7ffd4a) failed\n"
                "MPID_Init(549)...........: \n"
                "MPIDI_UCX_init_local(240):  ucx function returned with failed status\n"
                "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)",
            ),
            Outcome.FAILED,
            "MPI failed: MPIDI_UCX_init_local(240):  ucx function returned with failed status",
        ),
        (  # the innermost frame may say nothing
            Records(),
            completed(
                15,
                "Abort(1007830031): Fatal error in internal_Init: Other MPI error, error stack:\n"
                "internal_Init(70)....: MPI_Init(argc=0x7ffd4a, argv=0x7ffd4a) failed\n"
                "MPII_Init_thread(206): \n"
                "(unknown)(): Other MPI error",
            ),
            Outcome.FAILED,
            "MPI failed: internal_Init(70)....: MPI_Init(argc=0x7ffd4a, argv=0x7ffd4a) failed",
        ),
        (Records(), completed(139), Outcome.CRASHED, "ended by signal 11"),
        (Records(), completed(128), Outcome.FAILED, "exit status 128"),
        (Records(), completed(129), Outcome.CRASHED, "ended by signal 1"),
        (Records(), completed(192), Outcome.CRASHED, "ended by signal 64"),
        (Records(), completed(193), Outcome.FAILED, "exit status 193"),
        (Records(), completed(255), Outcome.FAILED, "exit status 255"),
        (Records(), completed(1), Outcome.FAILED, "exit status 1"),
        (
            Records(),
            completed(1, "srun: error: Unable to create step for job 7: Invalid job id\n"),
            Outcome.NEVER_STARTED,
            "Slurm did not start it: Unable to create step for job 7: Invalid job id",
        ),
        (
            Records(),
            completed(124, "srun: Job 7 step creation temporarily disabled, retrying (x)\n"),
            Outcome.NEVER_STARTED,
            "Slurm did not start it: Job 7 step creation temporarily disabled, retrying (x)",
        ),
        (  # it was started in the end
            Records(header={"record": "header"}),
            completed(1, "srun: Job 7 step creation temporarily disabled, retrying (x)\n"),
            Outcome.FAILED,
            "exit status 1",
        ),
        (
            Records(header={"record": "header"}),
            completed(143, "srun: error: Node failure on n2\n"),
            Outcome.NODE_FAILURE,
            "Node failure on n2",
        ),
        (  # as srun ends where Slurm requeues the job at once
            Records(header={"record": "header"}),
            completed(0, "srun: error: Node failure on n2\nsrun: got SIGCONT\n"),
            Outcome.NODE_FAILURE,
            "Node failure on n2",
        ),
        (
            Records(header={"record": "header"}),
            completed(1, "srun: error: Timed out waiting for job step to complete\n"),
            Outcome.NODE_FAILURE,
            "a node does not answer, and its ranks may still run",
        ),
        (
            Records(problems=("line 2: not JSON", "b", "c", "d")),
            completed(),
            Outcome.MALFORMED,
            "line 2: not JSON; b; c",
        ),
        (Records(), completed(), Outcome.TRUNCATED, "the record file has no footer"),
        (  # by its words: launchers end with statuses of their own
            Records(),
            completed(1, "commtune-bench: waived: 3 ranks on a node that has 2 GPUs\n"),
            Outcome.MISSING_PROGRAM,
            "waived: 3 ranks on a node that has 2 GPUs",
        ),
    ],
)
def test_how_a_run_ended(
    found: Records, ended: process.Completed, outcome: Outcome, detail: str
) -> None:
    assert judge_run(found, ended, 2.5, Srun().judge_failure) == (outcome, detail)


def _header(*environments: dict[str, str]) -> dict[str, Any]:
    ranks = [{"rank": i, "environment": seen} for i, seen in enumerate(environments)]
    return {"rank_info": ranks}


def test_a_rank_that_saw_another_environment_is_named() -> None:
    asked = Configuration({"A": "1"})
    assert _strange_environment(_header({"A": "1"}, {"A": "1"}), asked, ["A", "B"]) == ""
    assert _strange_environment(_header({"A": "1"}, {"A": "2"}), asked, ["A"]) == (
        "rank 1 saw A=2, not 1"
    )
    assert _strange_environment(_header({"A": "1"}, {}), asked, ["A"]) == (
        "rank 1 saw A unset, not 1"
    )


def test_a_variable_that_nobody_set_must_be_unset_and_a_pinned_one_as_pinned() -> None:
    asked = Configuration({"A": "1"})
    seen = _header({"A": "1", "B": "7"})
    assert _strange_environment(seen, asked, ["A", "B"]) == "rank 0 saw B=7, not unset"
    assert _strange_environment(seen, {"B": "7", **asked}, ["A", "B"]) == ""
    assert _strange_environment(seen, {"B": "8", **asked}, ["A", "B"]) == "rank 0 saw B=7, not 8"
    assert _strange_environment(seen, asked, ["A"]) == ""


@dataclass(frozen=True)
class _Script:
    """A program that is a shell script; its first argument is the record file."""

    script: str

    def arguments(self, request: RunRequest, records: Path) -> list[str]:
        return ["/bin/sh", "-c", self.script, "sh", str(records), request.run_id]

    def read(self, records: Path, request: RunRequest) -> Records:
        return read_records(records, request)


@dataclass(frozen=True)
class _Laboratory:
    """A launcher that just starts the program, as /usr/bin/env does."""

    folder: Path

    def benchmark(self, script: str, watched: Sequence[str] = ()) -> LocalBenchmark:
        launcher = write_script(self.folder / "mpiexec", 'shift 4\nexec "$@"')
        mpi = MpiInstallation(MpiFlavour.MPICH, "1", self.folder, launcher, launcher)
        environment = {"PATH": "/usr/bin:/bin", "BASE": "1"}
        return LocalBenchmark(mpi, _Script(script), environment, watched, self.folder / "runs")


@pytest.fixture
def laboratory(tmp_path: Path) -> _Laboratory:
    return _Laboratory(tmp_path)


def request(run_id: str = "run1", **configuration: str) -> RunRequest:
    workload = Workload(Operation.ALLREDUCE, (8,))
    return RunRequest(run_id, Configuration(configuration), workload, Timing())


def test_the_run_gets_the_base_the_configuration_and_its_name(laboratory: _Laboratory) -> None:
    benchmark = laboratory.benchmark("env -u COMMTUNE_PADDING; pwd; exit 5")
    result = benchmark.measure(request(A="a b"), PATIENCE_S)
    lines = set(result.output_tail.splitlines())
    assert {"BASE=1", "A=a b", "COMMTUNE_RUN_ID=run1", str(benchmark.folder)} <= lines
    assert (result.outcome, result.exit_code) == (Outcome.FAILED, 5)


def test_a_configuration_goes_before_the_base(laboratory: _Laboratory) -> None:
    result = laboratory.benchmark("echo $BASE; exit 1").measure(request(BASE="2"), PATIENCE_S)
    assert result.output_tail == "2\n"


def test_babble_is_cut_off_on_the_disk(laboratory: _Laboratory) -> None:
    benchmark = laboratory.benchmark('head -c 80000000 /dev/zero > "$1"')
    result = benchmark.measure(request(), 60)
    assert result.outcome is Outcome.MALFORMED
    assert benchmark.records_of("run1").stat().st_size == 2**20


def test_a_missing_program_is_its_own_outcome(laboratory: _Laboratory) -> None:
    benchmark = laboratory.benchmark("true")
    benchmark.mpi.launcher.unlink()
    result = benchmark.measure(request(), PATIENCE_S)
    assert result.outcome is Outcome.MISSING_PROGRAM
    assert result.detail == f"can't start {benchmark.mpi.launcher}: No such file or directory"


@pytest.mark.parametrize(("script", "said"), MACHINE_FAULTS.values(), ids=MACHINE_FAULTS)
def test_what_the_machine_lacks_is_no_fault_of_the_configuration(
    laboratory: _Laboratory, script: str, said: str
) -> None:
    result = laboratory.benchmark(script).measure(request(A="1"), PATIENCE_S)
    assert re.fullmatch(said, result.detail), (result.detail, result.output_tail)
    assert result.outcome is Outcome.NODE_FAILURE


@pytest.mark.parametrize("fault", ["missing program", "missing script"])
def test_what_is_missing_here_without_any_setting_is_no_failure_of_a_node(
    laboratory: _Laboratory, fault: str
) -> None:
    script, said = MACHINE_FAULTS[fault]
    result = laboratory.benchmark(script).measure(request(), PATIENCE_S)
    assert result.outcome is Outcome.MISSING_PROGRAM
    assert re.fullmatch(said, result.detail)


@pytest.mark.parametrize(
    ("code", "output", "detail"),
    [
        # As Open MPI 5.0.11 and 4.1.4 say under limits of 1 to 6 processes.
        (
            213,
            "[n:7] PMIX ERROR: PMIX_ERROR in file src/pmix_progress_threads.c at line 274\n"
            "  pmix_progress_thread_start failed\n  --> Returned value -1\n",
            "no process can be started: pmix_progress_thread_start failed",
        ),
        (
            213,
            "[prterun-n-7@0,0] Unable to start listen thread\n",
            "no process can be started: [prterun-n-7@0,0] Unable to start listen thread",
        ),
        (
            185,
            "PRTE ERROR: Unknown error in file odls/default/odls_default_module.c at line 579\n",
            "no process can be started: PRTE ERROR: Unknown error in file "
            "odls/default/odls_default_module.c at line 579",
        ),
        (
            137,
            "Error: system limit exceeded on number of processes that can be started\n",
            "no process can be started: Error: system limit exceeded on number of processes that "
            "can be started",
        ),
        (
            127,
            f"{'-' * 74}\nprterun was unable to find the specified executable file.\n{'-' * 74}\n",
            "a program is missing (status 127): "
            "prterun was unable to find the specified executable file.",
        ),
        # Of a program that starts another one.
        (
            126,
            f"./b.sh: 2: exec: ./c.sh: Permission denied\n{'-' * 74}\nPrimary job  terminated "
            f"normally, but 1 process returned\na non-zero exit code.\n{'-' * 74}\n",
            "a program can't be executed (status 126): ./b.sh: 2: exec: ./c.sh: Permission denied",
        ),
    ],
)
def test_what_a_launcher_lacks_is_no_fault_of_the_configuration(
    code: int, output: str, detail: str
) -> None:
    judged = judge_run(Records(), completed(code, output), 2.5)
    assert judged == (Outcome.NODE_FAILURE, detail)


@pytest.mark.parametrize(
    "output", ["Too many open files", "Cannot allocate memory", "Input/output error"]
)
def test_what_a_setting_can_use_up_counts_as_its_failure(output: str) -> None:
    assert judge_run(Records(), completed(1, output), 2.5)[0] is Outcome.FAILED


def test_a_full_disk_is_named(laboratory: _Laboratory) -> None:
    with small_disk(laboratory.folder):
        disk = laboratory.folder / SMALL
        require_component("rights to mount", disk.is_mount())
        benchmark = replace(laboratory.benchmark("head -c9 /dev/zero >/dev/full"), folder=disk)
        fill(disk)
        result = benchmark.measure(request(), PATIENCE_S)
    assert result.outcome is Outcome.NODE_FAILURE
    assert re.fullmatch(f"a disk is full: {disk}; .*: No space left on device", result.detail)


def test_a_bus_error_names_shared_memory(laboratory: _Laboratory) -> None:
    result = laboratory.benchmark("sh -c 'kill -BUS $$'; exit $?").measure(request(), PATIENCE_S)
    assert result.outcome is Outcome.CRASHED
    assert "/dev/shm is most likely full or too small" in result.detail


def test_a_run_without_records_is_not_recovered_and_its_processes_are_ended(
    laboratory: _Laboratory,
) -> None:
    benchmark = laboratory.benchmark("")
    word = f"orphan-{laboratory.folder.name}-{id(laboratory)}"
    # Names that no other worker's runs have: those are ended, too.
    other, own = (f"{word}-{number}" for number in (1, 2))
    orphan = subprocess.Popen(
        [sys.executable, "-S", "-c", "import time; time.sleep(600)", word],
        env={process_trees.MARKER: own},
        start_new_session=True,
    )
    wait_until_living(word, 1)
    assert benchmark.recover(request(other)) is None
    assert living(word) != {}
    assert benchmark.recover(request(own)) is None
    assert living(word) == {}
    orphan.wait()


def test_a_run_that_was_cut_short_is_not_recovered(laboratory: _Laboratory) -> None:
    benchmark = laboratory.benchmark("")
    benchmark.folder.mkdir()
    run_id = f"short-{laboratory.folder.name}-{id(laboratory)}"
    benchmark.records_of(run_id).write_text(json.dumps({"record": "header"}) + "\n")
    assert benchmark.recover(request(run_id)) is None


def test_a_run_says_what_others_used_meanwhile(laboratory: _Laboratory) -> None:
    benchmark = laboratory.benchmark("sleep 0.1")
    result = benchmark.measure(request(), PATIENCE_S)
    assert result.other_load is not None and 0.0 <= result.other_load <= 1.0
    never_started = laboratory.benchmark("true")
    (laboratory.folder / "mpiexec").unlink()
    assert never_started.measure(request("run2"), PATIENCE_S).other_load is None


def test_a_run_says_how_long_its_launcher_took_to_end(laboratory: _Laboratory) -> None:
    script = 'echo > "$1"; touch -d "10 seconds ago" "$1"; exit 1'
    result = laboratory.benchmark(script).measure(request(), PATIENCE_S)
    assert result.end_s is not None and result.end_s > 9.9
    assert laboratory.benchmark("exit 1").measure(request("run2"), PATIENCE_S).end_s is None
    # Ranks on other nodes write by the clock of a file server.
    elsewhere = Launcher(lambda *words: words[1], is_local=False)
    benchmark = dataclasses.replace(laboratory.benchmark(script), launcher=elsewhere)
    assert benchmark.measure(request("run3"), PATIENCE_S).end_s is None


@dataclass(frozen=True)
class _TracingScript(_Script):
    def trace_arguments(
        self, request: RunRequest, records: Path, controls: Sequence[str]
    ) -> list[str]:
        return [*self.arguments(request, records), *controls]


def test_a_program_that_can_not_be_traced_tells_nothing(laboratory: _Laboratory) -> None:
    assert laboratory.benchmark("touch started").trace(request(), PATIENCE_S) is None
    assert not (laboratory.folder / "runs").exists()


@pytest.mark.parametrize("script", ["exit 1", "true", "sleep 60", 'echo "{}" > "$1"'])
def test_a_trace_that_failed_tells_nothing(laboratory: _Laboratory, script: str) -> None:
    benchmark = laboratory.benchmark("")
    traced = dataclasses.replace(benchmark, program=_TracingScript(script))
    assert traced.trace(request(), 0.5) is None


def test_a_trace_has_the_run_s_environment_and_what_makes_the_library_talk(
    laboratory: _Laboratory,
) -> None:
    talk = "MPIR_CVAR_COLLECTIVE_FALLBACK"
    benchmark = laboratory.benchmark("")
    folder = benchmark.folder / "seen"
    program = _TracingScript(f"env > {folder}-$2; exit 1")
    for run_id, watched, settings in [
        ("free", [], {"A": "1"}),
        ("set", [], {talk: "error"}),
        ("searched", [talk], {}),
    ]:
        traced = dataclasses.replace(benchmark, program=program, watched=watched)
        traced.trace(request(run_id, **settings), PATIENCE_S)

    def seen(run_id: str) -> list[str]:
        return (benchmark.folder / f"seen-{run_id}").read_text().splitlines()

    assert {"BASE=1", "A=1", f"{talk}=print", "COMMTUNE_RUN_ID=free"} <= set(seen("free"))
    assert f"{talk}=error" in seen("set")
    assert not [line for line in seen("searched") if line.startswith(talk)]
