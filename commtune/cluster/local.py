"""Runs of the benchmark as processes of this machine."""

from __future__ import annotations

import re
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from commtune import process
from commtune.cluster.launch import mpi_command
from commtune.cluster.load import between, snapshot
from commtune.cluster.shared_memory import sweep
from commtune.cluster.tracing import run as tracing
from commtune.cluster.tracing.libraries import library_of
from commtune.errors import EnvironmentFault, MissingComponent
from commtune.model import Execution, MpiInstallation, Outcome, RunRequest, RunResult
from commtune.tuner.ports import Program, Records

#: Exit status of the benchmark for wrong data (its contract).
_WRONG_RESULT = 3
#: Launchers turn a rank's death by signal into words, each its own.
_SIGNAL_WORDS = re.compile(r"exited on signal|KILLED BY SIGNAL|EXIT STRING: .*\(signal", re.I)
#: How long before its last record a lost run may have made its shared memory, seconds.
_RECENT_S = 600.0
_LARGEST_KEPT = 64 * 2**20


@dataclass(frozen=True)
class LocalBenchmark:
    """The benchmark port over local processes (see ``tuner.ports.Benchmark``).

    Attributes:
        environment: what every run gets, before its configuration.
        watched: names of all variables of the space; what ranks see of them is compared with
            what was asked for.
        folder: where record files go, one a run, named by its identifier.
    """

    mpi: MpiInstallation
    program: Program
    environment: Mapping[str, str]
    watched: Sequence[str]
    folder: Path
    simulated: bool = False

    def measure(self, request: RunRequest, time_limit_s: float) -> RunResult:
        """Makes one run and waits for its end."""
        records = self.records_of(request.run_id)
        _make_folder(records.parent)
        arguments = self.program.arguments(request, records)
        started_at = time.time()
        try:
            self._require(arguments[0])
            before = snapshot()
            completed = process.run(
                mpi_command(self.mpi, request.workload.ranks, arguments),
                environment={**self.environment, **request.configuration},
                timeout_s=time_limit_s,
                cwd=records.parent,
                marker=request.run_id,
            )
            others = between(before, snapshot())
        except MissingComponent as error:
            return _never_started(request, started_at, error)
        except KeyboardInterrupt:
            sweep(started_at)
            raise
        if not completed.ok:
            sweep(started_at)
        found = self.program.read(records, request)
        _shorten(records)
        result = self._result(request, found, completed, started_at, time_limit_s)
        return replace(result, other_load=others.share if others else None)

    def trace(self, request: RunRequest, time_limit_s: float) -> Execution | None:
        """Makes an untimed run in which the library says what it does."""
        if not isinstance(self.program, tracing.TracingProgram):
            return None
        library = library_of(self.mpi.flavour)
        names = tracing.names_of(request, self.watched)
        # Apart from those of runs: a trace is no run, and nothing looks for it later.
        records = self.folder / "traces" / f"{request.run_id}.jsonl"
        _make_folder(records.parent)
        controls = tracing.controls_for(library, names)
        program = self.program.trace_arguments(request, records, controls)
        environment = {**self.environment, **request.configuration}
        started_at = time.time()
        try:
            completed = process.run(
                mpi_command(self.mpi, request.workload.ranks, program),
                environment={**tracing.diagnosing(library, names, environment), **environment},
                timeout_s=time_limit_s,
                cwd=records.parent,
                marker=request.run_id,
                whole_output=True,
            )
        except MissingComponent:
            return None
        except KeyboardInterrupt:
            sweep(started_at)
            raise
        if not completed.ok:
            sweep(started_at)
            return None
        found = self.program.read(records, request)
        return tracing.execution_of(library, request, names, found, completed.output)

    def recover(self, request: RunRequest) -> RunResult | None:
        """Reads a run that an earlier controller started; ends what is left of its processes."""
        process.end_marked({request.run_id})
        records = self.records_of(request.run_id)
        found = self.program.read(records, request)
        if found.footer is None:
            sweep(_last_sign(records) - _RECENT_S)
            return None
        finished_at = records.stat().st_mtime
        elapsed_s = float(found.footer.get("elapsed_s", 0.0))
        ended = process.Completed(_status(found), None, False, elapsed_s, "")
        return self._result(request, found, ended, finished_at - elapsed_s, 0.0)

    def _require(self, program: str) -> None:
        # Launchers say this each in their own words, and as if the configuration were to blame.
        if shutil.which(program, path=self.environment.get("PATH")) is None:
            raise MissingComponent(f"the benchmark is not there (any more): {program}")

    def records_of(self, run_id: str) -> Path:
        """The record file of a run."""
        return self.folder / f"{run_id}.jsonl"

    def _result(
        self,
        request: RunRequest,
        found: Records,
        completed: process.Completed,
        started_at: float,
        time_limit_s: float,
    ) -> RunResult:
        outcome, detail = judge(found, completed, time_limit_s)
        if outcome is Outcome.OK:
            outcome, detail = self._judge_content(request, found)
        return RunResult(
            run_id=request.run_id,
            outcome=outcome,
            started_at=started_at,
            wall_s=completed.wall_s,
            measurements=found.measurements,
            header=found.header,
            footer=found.footer,
            detail=detail,
            output_tail=completed.output if outcome is not Outcome.OK else "",
            exit_code=completed.exit_code,
            oversubscribed=bool((found.header or {}).get("oversubscribed", False)),
        )

    def _judge_content(self, request: RunRequest, found: Records) -> tuple[Outcome, str]:
        missing = set(request.workload.sizes) - {m.bytes for m in found.measurements}
        if missing:
            sizes = ", ".join(str(size) for size in sorted(missing))
            return Outcome.MALFORMED, f"no record for these sizes: {sizes} bytes"
        expected = {**self.environment, **request.configuration}
        strange = strange_environment(found.header or {}, expected, self.watched)
        if strange:
            return Outcome.FAILED, strange
        return Outcome.OK, ""


def judge(
    found: Records, completed: process.Completed, time_limit_s: float
) -> tuple[Outcome, str]:
    """How a run ended, from its process and its records, and why in words."""
    if completed.timed_out:
        count = len(found.measurements)
        finished = f"{count} size{'' if count == 1 else 's'} finished"
        return Outcome.TIMED_OUT, f"over its {time_limit_s:.1f} s, with {finished}"
    if completed.exit_code == _WRONG_RESULT or (found.footer or {}).get("status") == "wrong":
        wrong = sum(m.wrong for m in found.measurements)
        return Outcome.WRONG_RESULT, f"{wrong} elements of the result were wrong"
    if completed.signal is not None:
        return Outcome.CRASHED, f"the launcher was ended by signal {completed.signal}"
    if completed.exit_code and _SIGNAL_WORDS.search(completed.output):
        return Outcome.CRASHED, f"a rank was ended by a signal (status {completed.exit_code})"
    if completed.exit_code and 128 < completed.exit_code <= 128 + signal.SIGRTMAX:
        return Outcome.CRASHED, f"ended by signal {completed.exit_code - 128}"
    if completed.exit_code:
        return Outcome.FAILED, f"exit status {completed.exit_code}"
    if found.problems:
        return Outcome.MALFORMED, "; ".join(found.problems[:3])
    if found.footer is None:
        return Outcome.TRUNCATED, "the record file has no footer"
    return Outcome.OK, ""


def strange_environment(
    header: Mapping[str, object], expected: Mapping[str, str], watched: Sequence[str]
) -> str:
    """What ranks saw otherwise than they should, in words; empty where all is as it should be.

    Args:
        expected: pinned variables and the configuration; a watched variable that is not in it
            must be unset on every rank.
    """
    ranks = header.get("rank_info")
    for rank in ranks if isinstance(ranks, list) else []:
        seen = rank.get("environment", {})
        for name in watched:
            if seen.get(name) != expected.get(name):
                saw = f"{name}={seen[name]}" if name in seen else f"{name} unset"
                return f"rank {rank.get('rank')} saw {saw}, not {expected.get(name, 'unset')}"
    return ""


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentFault(
            f"the folder for record files can't be made: {folder}: {error.strerror}",
            hint="check your rights and the room there, or set XDG_DATA_HOME to another folder",
        ) from error


def _never_started(request: RunRequest, started_at: float, error: MissingComponent) -> RunResult:
    return RunResult(
        run_id=request.run_id,
        outcome=Outcome.MISSING_PROGRAM,
        started_at=started_at,
        wall_s=0.0,
        detail=error.message,
    )


def _last_sign(records: Path) -> float:
    """When a run that was cut short was last seen alive, as far as its records tell."""
    return records.stat().st_mtime if records.exists() else time.time()


def _status(found: Records) -> int:
    return _WRONG_RESULT if (found.footer or {}).get("status") == "wrong" else 0


def _shorten(records: Path) -> None:
    """A babbling benchmark must not fill the disk with what nobody reads."""
    if records.exists() and records.stat().st_size > _LARGEST_KEPT:
        with records.open("r+b") as file:
            file.truncate(2**20)
