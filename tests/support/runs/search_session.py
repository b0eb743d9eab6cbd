"""Runs of a search, one after the other, of which some end badly."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from waiting import PATIENCE_S

from commtune.kernels.bench import NativeProgram
from commtune.model import (
    DEFAULT,
    Configuration,
    Operation,
    Phase,
    RunRequest,
    RunResult,
    Timing,
    Workload,
)
from commtune.tuner.ports import Benchmark, Records

#: Runs of a session that are launches of their own.
OWN_RUNS = 4
VARIABLE = "NCCL_BUFFSIZE"
TIMING = Timing(warmup=1, min_samples=3, max_samples=5, time_cap_s=0.01)


@dataclass(frozen=True)
class FaultyProgram:
    """The native benchmark; where the variable's value is a word, a run has that fault."""

    native: NativeProgram
    variable: str = VARIABLE
    size: int = 64

    def arguments(self, request: RunRequest, records: Path) -> list[str]:
        words = self.native.arguments(request, records)
        fault = request.configuration.get(self.variable, "")
        return [*words, f"--fault={fault}@{self.size}"] if fault.isalpha() else words

    def read(self, records: Path, request: RunRequest) -> Records:
        return self.native.read(records, request)


@dataclass
class SearchSession:
    """Makes runs, one after the other."""

    benchmark: Benchmark
    ranks: int = 2
    made: int = 0

    def run(
        self, value: str = "", phase: Phase = Phase.SEARCH, limit_s: float = PATIENCE_S
    ) -> RunResult:
        self.made += 1
        configuration = Configuration({VARIABLE: value}) if value else DEFAULT
        workload = Workload(Operation.ALLTOALL, (8, 64), ranks=self.ranks, backend="xccl")
        request = RunRequest(
            f"run{self.made}", configuration, workload, TIMING, phase=phase, trial=0
        )
        return self.benchmark.measure(request, limit_s)

    def begin(self) -> None:
        """Past the runs that have launches of their own, and the first that shares one."""
        for _ in range(OWN_RUNS):
            assert not is_shared(self.run())
        assert is_shared(self.run("1"))


def is_shared(result: RunResult) -> bool:
    return bool((result.header or {}).get("in_shared_launch"))
