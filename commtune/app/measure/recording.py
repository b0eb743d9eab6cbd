"""Records runs of all configurations of a space, for replays."""

from __future__ import annotations

import math
import random
import secrets
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from statistics import median

from commtune import formatting
from commtune.campaign.loading import CampaignSpec
from commtune.campaign.plan import Plan
from commtune.cluster.local.benchmark import LocalBenchmark
from commtune.cluster.machine.description import describe_machine
from commtune.errors import CampaignChanged, EnvironmentFault, InvalidKey, UserError
from commtune.kernels.build import digest_of_sources
from commtune.model import DEFAULT, Configuration, MpiInstallation, Outcome, RunRequest, RunResult
from commtune.paths import exists, is_folder
from commtune.replay.recording import Grid, GridHeader, RecordedRun, Recorder
from commtune.tuner.execution.time_limits import first_limit, time_limit
from commtune.tuner.ports import Progress, Reporter
from commtune.wiring import campaign_records
from commtune.wiring.benchmark_setup import command_by_hand, find_named_mpi, prepare_benchmark
from commtune.wiring.gpu_toolchains import stack_of
from commtune.wiring.space_fitting import fit_campaign
from commtune.wiring.user_folders import data_folder

#: Runs of the default before all others: the first has cold caches, the rest give the time of one.
_FIRST = 4
#: One in this many runs is of the default.
_EVERY = 8


def record_campaign(
    spec: CampaignSpec, file: Path, reporter: Reporter, *, runs: int = 8, limit_s: float
) -> tuple[int, int]:
    """Records a campaign's whole space, or continues an interrupted recording.

    Returns the number of runs in the file, and of configurations.

    Args:
        file: the compressed recording, ``NAME.jsonl.gz``; an incomplete one is beside it.
        runs: number of runs of every configuration.
        limit_s: the longest acceptable duration, seconds.

    Raises:
        UserError: the campaign is for a scheduler.
        InvalidKey: the file's name is invalid, there are no runs, or it would take too long.
        CampaignChanged: the existing file is a recording of something else.
        EnvironmentFault: the default fails, or a file can't be written.
    """
    _check_target(file, runs)
    if request := spec.job_request:
        raise UserError(
            f"{spec.file} asks for {request.scheduler.label}, but recordings work on one machine "
            "only so far",
            hint=f"remove '{request.scheduler}:' and 'system:' to record on this machine",
        )
    mpi = find_named_mpi(spec.mpi, spec.plan.workload)
    spec = fit_campaign(spec, mpi)
    for remark in spec.remarks:
        reporter.say(remark)
    recording = _Recording(
        plan=spec.plan,
        header=_header(spec, mpi),
        benchmark=_benchmark(spec, mpi),
        tape=Recorder(file),
        tell=reporter,
        rounds=runs,
    )
    return recording.make(limit_s), spec.plan.space.count()


def _check_target(file: Path, runs: int) -> None:
    if not file.name.endswith(".gz"):
        raise InvalidKey("file", f"{file}: recordings are compressed", "end its name in .jsonl.gz")
    if not is_folder(file.parent):
        raise InvalidKey("file", f"{file}: there is no folder {file.parent}", "create it first")
    if file.is_symlink() and not exists(file):
        raise InvalidKey("file", f"{file}: the link leads to no file", "name the file itself")
    if runs < 1:
        raise InvalidKey("runs", f"{runs}: every configuration needs at least one run", "")


def _run_order(others: int, rounds: int, seed: int) -> Iterator[int]:
    """Yields indices of configurations in the order of their runs; 0 is the default."""
    # Each round has every other configuration once, in random order, and the default at a random
    # place among every eight runs. The order doesn't depend on the number of rounds, so that a
    # recording can be continued with more runs of each configuration.
    rng = random.Random(seed)
    yield from [0] * _FIRST
    for _ in range(rounds):
        shuffled = rng.sample(range(1, others + 1), others)
        for start in range(0, max(others, 1), _EVERY - 1):
            chunk = [*shuffled[start : start + _EVERY - 1], 0]
            yield from rng.sample(chunk, len(chunk))


def _count_of_runs(others: int, rounds: int) -> int:
    """Returns the number of indices that ``_run_order`` yields."""
    return _FIRST + rounds * (others + max(1, math.ceil(others / (_EVERY - 1))))


@dataclass
class _Recording:
    """A session of a recording, with ``rounds`` runs of every configuration."""

    plan: Plan
    # The header for a new recording; a continued one keeps its own.
    header: GridHeader
    benchmark: LocalBenchmark
    tape: Recorder
    tell: Reporter
    rounds: int
    _base_s: float = 0.0
    _began_at: float = field(default=0.0, init=False)

    def make(self, longest_s: float) -> int:
        """Makes missing runs, and compresses the recording; returns the number of its runs."""
        others = self.plan.space.count() - 1
        total = _count_of_runs(others, self.rounds)
        grid = self.tape.load() or self._begin(total, longest_s)
        self._check_same(grid)
        self.tape.begin(grid)
        self._base_s, self._began_at = grid.span_s, 0.0
        walls = [run.wall_s for run in grid.runs if run.configuration == 0]
        done, wall_s = len(grid.runs), median(walls)
        if missing := max(0, total - done):
            self._refuse_too_long(missing, wall_s, longest_s)
            self.tell.say(
                f"{self.plan.name}: {missing:,} runs of {others + 1:,} configurations, "
                f"about {formatting.format_wall_time(missing * wall_s)}"
            )
        limit_s = time_limit(walls)
        started = time.monotonic()
        for index in islice(_run_order(others, self.rounds, grid.header.seed), done, None):
            result = self._measure(grid.configurations[index], limit_s, done)
            self.tape.add(RecordedRun.from_result(index, self._since(result), result))
            done += 1
            used_s, whole_s = time.monotonic() - started, total * wall_s
            self.tell.progress(
                Progress("record", others + 1, done, 1.0, used_s, whole_s, result.outcome)
            )
        self.tape.finish()
        return done

    def _begin(self, total: int, longest_s: float) -> Grid:
        """Starts a recording with runs of the default, if the rest won't take too long."""
        self.tell.say(f"{self.plan.name}: {_FIRST} runs of the default, to see how long one takes")
        limit_s = first_limit(self.plan.workload, self.plan.timing)
        results = [self._measure(DEFAULT, limit_s, number) for number in range(_FIRST)]
        good = [result for result in results if result.outcome is Outcome.OK]
        if not good:
            raise EnvironmentFault(
                f"the default configuration failed: {results[-1].outcome}, {results[-1].detail}\n"
                f"{results[-1].output_tail.strip()}".rstrip(),
                hint=command_by_hand(self.benchmark, self.plan)
                or "try 'commtune bench' with the same workload; it shows the whole output",
            )
        self._refuse_too_long(total - _FIRST, median(r.wall_s for r in good), longest_s)
        runs = tuple(RecordedRun.from_result(0, self._since(result), result) for result in results)
        configurations = tuple(self.plan.space.configurations())
        return Grid(_completed(self.header, good[0]), configurations, runs)

    def _refuse_too_long(self, missing: int, wall_s: float, longest_s: float) -> None:
        if missing * wall_s <= longest_s:
            return
        count = self.plan.space.count()
        raise InvalidKey(
            "limit",
            f"{missing:,} runs of {count:,} configurations would take about "
            f"{formatting.format_wall_time(missing * wall_s)} ({wall_s:.2g} s each), "
            f"over the limit of {formatting.format_wall_time(longest_s)}",
            "narrow or pin variables in the campaign file, ask for fewer runs, or raise the limit",
        )

    def _check_same(self, grid: Grid) -> None:
        """Refuses to continue a recording of another campaign, machine or benchmark."""
        names = ("system", "stack", "workload", "timing", "pinned")
        changed = [n for n in names if getattr(grid.header, n) != getattr(self.header, n)]
        known = grid.header.benchmark.get("sources")
        if known != self.header.benchmark.get("sources"):
            changed.append("benchmark")
        # The count is compared first, because a widened space may be too large to be listed.
        same_count = len(grid.configurations) == self.plan.space.count()
        if not same_count or grid.configurations != tuple(self.plan.space.configurations()):
            changed.append("space")
        if changed:
            raise CampaignChanged(
                f"{self.tape.known} was started with another {', '.join(changed)}",
                hint="record to another file, or remove the old one",
            )

    def _measure(self, configuration: Configuration, limit_s: float, number: int) -> RunResult:
        workload, timing = self.plan.workload, self.plan.timing
        # Recorded runs have no blocks, so that each has a block number of its own.
        request = RunRequest(uuid.uuid4().hex, configuration, workload, timing, block=number)
        try:
            result = self.benchmark.measure(request, limit_s)
        finally:
            self.benchmark.records_of(request.run_id).unlink(missing_ok=True)
        if result.outcome is Outcome.MISSING_PROGRAM:
            raise EnvironmentFault(result.detail, hint="run 'commtune doctor'")
        return result

    def _since(self, result: RunResult) -> float:
        """Returns the start of a run in recorded time (seconds), without time between sessions."""
        self._began_at = self._began_at or result.started_at
        return self._base_s + result.started_at - self._began_at


def _benchmark(spec: CampaignSpec, mpi: MpiInstallation) -> LocalBenchmark:
    folder = data_folder() / "recordings" / spec.plan.name
    space, workload, protected = spec.plan.space, spec.plan.workload, spec.protected_variables
    return prepare_benchmark(mpi, space.pinned, space.variables, workload, folder, protected)


def _header(spec: CampaignSpec, mpi: MpiInstallation) -> GridHeader:
    """Returns the header of a recording, as far as known before the first run."""
    machine = describe_machine()
    system = campaign_records.system_of(machine)
    return GridHeader(
        name=spec.plan.name,
        recorded=time.strftime("%Y-%m-%d", time.gmtime()),
        system={"name": system.name, **system.description},
        stack={
            "name": mpi.flavour.label,
            "flavour": str(mpi.flavour),
            "version": mpi.version,
            "os": machine.os_name,
            **stack_of(spec.plan.workload.backend),
            **({"loaded": dict(spec.versions)} if spec.versions else {}),
        },
        workload=spec.plan.workload,
        timing=spec.plan.timing,
        campaign=spec.file.read_text(encoding="utf-8") if spec.file else "",
        pinned=dict(spec.plan.space.pinned),
        benchmark={"sources": digest_of_sources()[:16]},
        seed=secrets.randbits(31),
    )


def _completed(header: GridHeader, result: RunResult) -> GridHeader:
    """Returns the header with the fields that are known only from a run."""
    said = (result.header or {}).get("benchmark", {})
    program = {name: said[name] for name in ("version", "compiler", "flags") if name in said}
    largest = result.measurements[-1]
    return replace(
        header,
        benchmark={**program, **header.benchmark},
        # Not busbw / algbw, because some operations move more bytes than the size.
        bus_factor=float(f"{largest.busbw * largest.median_s / largest.bytes:.6g}"),
        oversubscribed=result.oversubscribed,
    )
