"""Makes runs of the benchmark as child processes."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from commtune import model, process, process_trees
from commtune.cluster import exit_codes
from commtune.cluster.environment_padding import pad_variables, padding_facts
from commtune.cluster.exit_codes import OVER_TIME, WRONG_RESULT, judge_run, judge_whole, result_of
from commtune.cluster.local.background_load import LoadSnapshot, load_between, read_load
from commtune.cluster.local.launch import Launcher, local_launcher
from commtune.cluster.local.shared_launch import INPUT_OF_FIRST, LONGEST_S, SIGN, SharedLaunch
from commtune.cluster.local.shared_memory import remove_stale_segments
from commtune.cluster.tracing.tracer import Tracer
from commtune.documents.packed_files import kept_file, record_file
from commtune.errors import EnvironmentFault, MissingComponent, UserError
from commtune.filesystems import has_room
from commtune.paths import exists
from commtune.private_files import writing_data
from commtune.tuner.ports import Program, Records

#: Seconds before its last record within which a lost run may have created shared memory.
_RECENT_S = 600.0
_LARGEST_KEPT = 64 * 2**20
_HERE = (
    "take the list of hosts from the launcher's settings, or measure on nodes: add `slurm:` or "
    "`pbs:` to the campaign"
)


@dataclass(frozen=True)
class LocalBenchmark:
    """Implements ``tuner.ports.Benchmark`` by child processes."""

    simulated = False
    mpi: model.MpiInstallation
    program: Program
    environment: Mapping[str, str]  # variables of every run, which configurations override
    #: Names of all variables of the space, whose values on each rank are checked.
    watched: Sequence[str]
    folder: Path  # of the record files, one for each run, named by its identifier
    #: Starts the ranks; ``None`` starts them on this machine.
    launcher: Launcher | None = None
    #: Makes runs of the search; ``None`` gives each a launch of its own. Its creator closes it.
    shared: SharedLaunch | None = None

    def measure(self, request: model.RunRequest, time_limit_s: float) -> model.RunResult:
        records = self.records_of(request.run_id)
        make_folder(records.parent)
        arguments = self.program.arguments(request, records)
        started_at = time.time()
        try:
            # Checked here: launchers have many messages for it, and would blame a configuration.
            if shutil.which(arguments[0], path=self.environment.get("PATH")) is None:
                raise MissingComponent(f"the benchmark is missing: {arguments[0]}")
            before = self._read_load()
            completed = self._run(request, arguments, time_limit_s)
            ended_at = time.time()
            others = load_between(before, self._read_load())
        except EnvironmentFault as error:
            if not (error.transient or isinstance(error, MissingComponent)):
                raise
            lost, missing = model.Outcome.NODE_FAILURE, model.Outcome.MISSING_PROGRAM
            outcome = lost if error.transient else missing
            return model.RunResult(request.run_id, outcome, started_at, 0.0, detail=error.message)
        end_s = ended_at - records.stat().st_mtime if exists(records) else None
        found = self.program.read(records, request)
        _shorten(records)
        result = self._result(request, found, completed, started_at, time_limit_s)
        said = result.detail.removeprefix("a disk is full: ")
        may_be_full = said != result.detail or result.outcome.blames_configuration
        if may_be_full and (full := self.full_disk()):
            # Programs have many messages for that, and seldom name the disk.
            why = f"a disk is full: {full}; {said}"
            result = replace(result, outcome=model.Outcome.NODE_FAILURE, detail=why)
        if not self._launcher.is_local:  # load and clock of this machine say nothing of others
            return result
        return replace(result, other_load=others, end_s=end_s)

    def trace(self, request: model.RunRequest, time_limit_s: float) -> model.Execution | None:
        folder = self.folder / "traces"
        tracer = Tracer(self.program, self.mpi.flavour, self.environment, self.watched, folder)
        if not tracer.can_trace:
            return None
        make_folder(folder)
        program, logging = tracer.prepare(request)
        variables = {**logging, **request.configuration}
        try:
            completed = self._launch(request, program, variables, time_limit_s, timed=False)
        except MissingComponent:
            return None
        if completed.ok and (elsewhere := self._find_elsewhere(tracer.records(request))):
            raise EnvironmentFault(elsewhere, hint=_HERE)
        return tracer.read(request, completed.output) if completed.ok else None

    def recover(self, request: model.RunRequest) -> model.RunResult | None:
        """Reads a run that an earlier controller started; ends its remaining processes."""
        process_trees.end_marked({request.run_id, self._marker})
        records = self.records_of(request.run_id)
        found = self.program.read(records, request)
        written = kept_file(records)
        if found.footer is None:
            # The time of its last sign of life.
            last_at = written.stat().st_mtime if exists(written) else time.time()
            self._sweep(last_at - _RECENT_S)
            return None
        finished_at = written.stat().st_mtime
        elapsed_s = float(found.footer.get("elapsed_s", 0.0))
        status = WRONG_RESULT if found.footer.get("status") == "wrong" else 0
        ended = process.Completed(status, None, False, elapsed_s, "")
        return self._result(request, found, ended, finished_at - elapsed_s, 0.0)

    @property
    def _launcher(self) -> Launcher:
        return self.launcher or local_launcher(self.mpi)

    def _run(
        self, request: model.RunRequest, program: Sequence[str], limit_s: float
    ) -> process.Completed:
        """Makes a timed run, in the shared launch if that accepts it and doesn't fail."""
        alone = partial(self._launch, request, program, request.configuration, limit_s)
        settings = [f"{name}={value}" for name, value in request.configuration.items()]
        order = [str(len(settings)), *settings, *program]
        if self.shared is None or not self.shared.takes(request, order):
            return alone()
        self._refuse_unguarded(request.configuration)
        start = partial(self._standing_launch, request.workload.ranks, program[0])
        return self.shared.make(order, start, alone, limit_s, self.records_of(request.run_id))

    def _standing_launch(self, ranks: int, executable: str) -> process.StandingProcess:
        process_trees.end_marked({self._marker})
        program = [executable, "--mode=serve", f"--expect-ranks={ranks}"]
        launcher = self._launcher
        return process.StandingProcess(
            launcher.command(ranks, program, LONGEST_S),
            environment={**self.environment, **INPUT_OF_FIRST},
            sign=SIGN,
            cwd=self.folder,
            marker=self._marker,
            grace_s=launcher.grace_s,
            at_end=partial(self._sweep, time.time()),
        )

    @property
    def _marker(self) -> str:
        """The marker of a shared launch's processes, also for a later controller."""
        return f"shared launch of {self.folder}"

    def _read_load(self) -> LoadSnapshot | None:
        return read_load(running_s=self.shared.used_s() if self.shared else 0.0)

    def _launch(
        self,
        request: model.RunRequest,
        program: Sequence[str],
        variables: Mapping[str, str],
        limit_s: float,
        *,
        timed: bool = True,
    ) -> process.Completed:
        """Starts the ranks for one run, and waits for their end."""
        self._refuse_unguarded(variables)
        variables = pad_variables(request, variables, self.environment, self.folder)
        launcher = self._launcher
        words = launcher.command(request.workload.ranks, program, limit_s)
        if launcher.around is not None and timed:
            words, variables = launcher.around(request.run_id, variables, words, limit_s), {}
        began_at, completed = time.time(), None
        try:
            completed = process.run_process(
                words,
                environment={**self.environment, **variables},
                timeout_s=limit_s + launcher.grace_s,
                cwd=self.folder,
                marker=request.run_id,
                whole_output=not timed,
            )
        finally:
            if completed is None or not completed.ok:
                self._sweep(began_at)
        kept = launcher.grace_s > 0 and completed.exit_code in OVER_TIME
        over = kept and completed.wall_s >= limit_s
        return replace(completed, timed_out=True) if over else completed

    def _refuse_unguarded(self, variables: Mapping[str, str]) -> None:
        """Refuses to change protected variables, as configurations given by hand may."""
        for name in model.PROTECTED_NAMES:
            kept = self.environment.get(name)
            if kept is not None and variables.get(name, kept) != kept:
                raise UserError(
                    f"{name}={kept} is set in this environment to keep hardware safe: no run may "
                    f"have {name}={variables[name]}",
                    hint=f"leave {name} out",
                )

    def _sweep(self, since: float) -> None:
        """Removes shared memory that failed ranks left on this machine."""
        if self._launcher.is_local:
            remove_stale_segments(since)

    def full_disk(self) -> Path | None:
        """Returns the folder, for records or for output, that has no room; ``None`` if none."""
        places = (self.folder, Path(tempfile.gettempdir()))
        return next((place for place in places if not has_room(place)), None)

    def records_of(self, run_id: str) -> Path:
        return record_file(self.folder, run_id)

    def _result(
        self,
        request: model.RunRequest,
        found: Records,
        completed: process.Completed,
        started_at: float,
        time_limit_s: float,
    ) -> model.RunResult:
        judged = judge_run(found, completed, time_limit_s, self._launcher.judge)
        # In a job, another node may have the program; with settings, they may be to blame.
        is_default_here = self._launcher.is_local and request.configuration.is_default
        if is_default_here and judged[1].startswith(exit_codes.MISSING):
            judged = model.Outcome.MISSING_PROGRAM, judged[1]
        if elsewhere := self._find_elsewhere(found):
            judged = model.Outcome.MISSING_PROGRAM, f"{elsewhere}: {_HERE}"
        expected = {**self.environment, **request.configuration}
        judged = judge_whole(request, found, judged, expected, self.watched)
        # Runs in a shared launch have the same environment, without padding.
        is_shared = (found.header or {}).get("in_shared_launch")
        padding = {} if is_shared else padding_facts(request, self.environment, self.folder)
        return result_of(request, found, judged, started_at, completed, padding)

    def _find_elsewhere(self, found: Records) -> str:
        """Returns a message if ranks of a local launch ran on several machines; else empty."""
        ranks = (found.header or {}).get("rank_info", ())
        hosts = list(dict.fromkeys(str(rank.get("host", "")) for rank in ranks))
        if len(hosts) < 2 or not self._launcher.is_local:
            return ""
        return f"ranks ran on {len(hosts)} machines ({', '.join(hosts)}), and all are to be here"


def make_folder(folder: Path) -> None:
    with writing_data("the folder for record files can't be created", folder):
        pass  # it is made and checked before anything is written


def _shorten(records: Path) -> None:
    """Cuts a huge record file, so that a broken benchmark doesn't fill the disk."""
    if exists(records) and records.stat().st_size > _LARGEST_KEPT:
        with records.open("r+b") as file:
            file.truncate(2**20)
