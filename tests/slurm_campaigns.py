"""Campaigns on the tests' Slurm, as a person runs them, and what must hold when they are done."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from command_line import CommandLine, Said, has_footer
from left_over import living
from slurm_cluster import Cluster

#: Two nodes, a rank on each; a run takes about a fifth of a second.
TWO_NODES = """\
campaign: 1
name: small
space: mpich-host-allreduce
mpi: wheel:mpich
workload: {nodes: 2, ranks: 2, sizes: [8, 64KiB]}
timing: {max_samples: 10, time_cap: 2ms}
budget: {search: 4s, ablation: 10ms, confirmation: 1s, trials: 2}
narrow:
  MPIR_CVAR_DEVICE_COLLECTIVES: [all]
  MPIR_CVAR_ALLREDUCE_POSIX_INTRA_ALGORITHM: [mpir]
slurm: {mpi: pmi2, poll: 0.3s}
"""
#: Search that is over with the first runs of the default, four in one job.
ONE_BLOCK = TWO_NODES.replace("search: 4s", "search: 100ms")
#: Timing with which each of two sizes takes so many seconds.
LONG = "{{max_samples: 1000000, time_cap: {}s, relative_ci: 0}}"
#: Slurm's words for jobs that are there no longer; of faults as well.
_OVER = {"CANCELLED", "COMPLETED", "FAILED", "NODE_FAIL", "TIMEOUT"}


def with_long_runs(text: str, seconds: float) -> str:
    """The campaign with runs that take so many seconds."""
    half = LONG.format(seconds / 2)
    return text.replace("{max_samples: 10, time_cap: 2ms}", half)


@dataclass(frozen=True)
class Seen:
    """A job of the campaign as squeue shows it."""

    number: str
    key: str
    word: str

    @property
    def is_over(self) -> bool:
        return self.word in _OVER


@dataclass(frozen=True, kw_only=True)
class OnSlurm(CommandLine):
    """``commtune`` beside a cluster, with data, cache and settings of its own."""

    cluster: Cluster

    def jobs(self) -> list[Seen]:
        """The campaigns' jobs that Slurm still knows, also those that are over."""
        question = ("squeue", "--noheader", "--states=all", "--array", "--format=%A %T %j")
        lines = [line.split(maxsplit=2) for line in self.cluster.call(*question).splitlines()]
        folders = {folder.name for folder in self.folder.glob("data/commtune/campaigns/*/jobs/*")}
        found = [Seen(number, name.rpartition("-")[2], word) for number, word, name in lines]
        return [job for job in found if job.key in folders]

    def running(self) -> str:
        """Number of a job of the campaign that runs; empty if none does."""
        return next((job.number for job in self.jobs() if job.word == "RUNNING"), "")

    def until(self, condition: Callable[[], object], what: str, limit_s: float = 60.0) -> None:
        """Waits for a condition."""
        deadline = time.monotonic() + limit_s
        while not condition():
            assert time.monotonic() < deadline, f"waited {limit_s:g} s for {what}"
            time.sleep(0.05)

    def until_over(self, limit_s: float = 120.0) -> None:
        """Waits until none of the campaign's jobs is with Slurm."""
        self.until(lambda: all(j.is_over for j in self.jobs()), "the jobs to end", limit_s)

    def dies(
        self, method: str, when: str, *arguments: str, holds: str = "", count: int = 1
    ) -> None:
        """Runs a command that dies at a point: see ``dying``.

        Args:
            method: ``module:Class.method``.
            when: ``before`` or ``after`` it.
            holds: of the calls, only those whose arguments hold this count.
        """
        self.order_death(method, when, holds=holds, count=count)
        said = self(*arguments)
        assert said.code == -signal.SIGKILL, f"{method} {when}: {said}"
        self.died()

    def order_death(self, method: str, when: str, *, holds: str = "", count: int = 1) -> None:
        """The next command that comes to this point dies there."""
        order = {"method": method, "when": when, "holds": holds, "count": count}
        (self.folder / "die").write_text(json.dumps(order))

    def died(self) -> None:
        """Checks that the last order to die was obeyed, and that nothing was doubled by it."""
        assert not (self.folder / "die").exists()
        self.check_once()

    def interrupt(self, child: object) -> None:
        """Ends a command like Ctrl-C does."""
        os.kill(child.pid, signal.SIGINT)  # type: ignore[attr-defined]

    def check_once(self) -> None:
        """No job was handed in twice, and no block measured by two."""
        twice = {key: n for key, n in Counter(job.key for job in self.jobs()).items() if n > 1}
        assert not twice, f"jobs that Slurm has twice: {twice}"
        if not self.database.exists():
            return
        jobs = self.query("SELECT block, folder FROM jobs WHERE kind = 'block'")
        began = [block for block, folder in jobs if (Path(folder) / "started").exists()]
        twice = {block: n for block, n in Counter(began).items() if n > 1}
        assert not twice, f"blocks that two jobs measured: {twice}"

    def check_whole(self, *, name: str = "small", lost: bool = True) -> None:
        """Nothing is lost, doubled or left behind; the campaign is done.

        Args:
            lost: runs may have been lost to what befell their jobs.
        """
        self.check_once()
        assert [job for job in self.jobs() if not job.is_over] == []
        assert living(str(self.folder)) == {}
        assert self.query("SELECT * FROM locks") == []
        assert self.query("SELECT finished IS NULL FROM campaigns") == [(0,)]
        assert self.query("SELECT count(*) > 0 FROM conclusions") == [(1,)]
        open_jobs = self.query("SELECT key, kind, stage FROM jobs WHERE stage != 'over'")
        assert open_jobs == []
        self.check_runs(name=name, lost=lost)

    def check_runs(self, *, name: str = "small", lost: bool = True) -> None:
        """All runs are stored, once, and as their record and exit files say."""
        runs = self.query("SELECT run_id, state, outcome FROM runs")
        assert len({run_id for run_id, *_ in runs}) == len(runs)
        assert {state for _, state, _ in runs} == {"stored"}
        outcomes = Counter(outcome for *_, outcome in runs)
        allowed = {"ok", "interrupted", "cancelled", "node-failure"} if lost else {"ok"}
        assert set(outcomes) <= allowed, outcomes
        good = {run_id for run_id, _, outcome in runs if outcome == "ok"}
        whole = {file.stem for file in self.records(name) if has_footer(file)}
        assert good <= whole, "runs that are called good, and were cut short"
        assert whole <= {run_id for run_id, *_ in runs}, "runs that nobody read"
        measured = self.query(
            "SELECT runs.run_id, bytes FROM runs JOIN measurements "
            "ON measurements.run_id = runs.id WHERE outcome = 'ok'"
        )
        assert sorted(measured) == sorted((run_id, size) for run_id in good for size in (8, 65536))
        self._check_times()

    def _check_times(self) -> None:
        """A run's times are those of its own exit file."""
        found = self.query(
            "SELECT jobs.folder, position, runs.started_at, wall_s FROM runs "
            "JOIN jobs ON jobs.kind = 'block' AND jobs.block = runs.block WHERE outcome = 'ok'"
        )
        for folder, position, started_at, wall_s in found:
            _, began, ended = (Path(folder) / f"{position}.exit").read_text().split()
            assert abs(float(began) - started_at) < 1e-3, (folder, position)
            assert abs(float(ended) - float(began) - wall_s) < 1e-3, (folder, position)


def message(said: Said) -> str:
    """What a command said when it ended with an error."""
    assert "Traceback" not in said.err, said.err
    return said.err[said.err.index("commtune: ") :] if "commtune: " in said.err else said.err
