"""What the tuner needs from outside, as protocols; adapters implement them, wiring connects them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from commtune.model import Measurement, RunRequest, RunResult


class Benchmark(Protocol):
    """Makes runs. Implemented by a launcher with the native benchmark, and by replay.

    Laws: ``measure`` returns a result for every way that a run can end, and raises only for
    faults of the surroundings (EnvironmentFault) and KeyboardInterrupt; when it returns or
    raises, no process of the run is left. ``recover`` reads the result of a run that an earlier
    controller started and never read; it returns ``None`` where the run wrote no footer.
    """

    simulated: bool

    def measure(self, request: RunRequest, time_limit_s: float) -> RunResult:
        """Makes one run and waits for its end, or ends it after ``time_limit_s`` seconds."""
        ...

    def recover(self, request: RunRequest) -> RunResult | None:
        """Reads what is left of a run after its controller died, ending its processes first."""
        ...


class Records(Protocol):
    """What a benchmark's record file holds, as far as it could be read."""

    @property
    def header(self) -> Mapping[str, Any] | None: ...
    @property
    def measurements(self) -> tuple[Measurement, ...]: ...
    @property
    def footer(self) -> Mapping[str, Any] | None: ...
    @property
    def problems(self) -> tuple[str, ...]: ...


class Program(Protocol):
    """A benchmark program: arguments out, records in. It starts nothing."""

    def arguments(self, request: RunRequest, records: Path) -> list[str]:
        """The command line of one rank."""
        ...

    def read(self, records: Path, request: RunRequest) -> Records:
        """Reads a record file, whatever its state; a missing file gives empty records."""
        ...
