"""What the tuner needs from outside, as protocols; adapters implement them, wiring connects them."""

from __future__ import annotations

from typing import Protocol

from commtune.model import RunRequest, RunResult


class Benchmark(Protocol):
    """Makes runs. Implemented by a launcher with the native benchmark, and by replay.

    Laws: ``measure`` returns a result for every way that a run can end, and raises only for
    faults of the surroundings (EnvironmentFault) and KeyboardInterrupt; when it returns or
    raises, no process of the run is left. ``recover`` reads the result of a run that an earlier
    controller started and never read; it returns ``None`` where the run wrote no footer.
    """

    simulated: bool

    def measure(self, request: RunRequest) -> RunResult:
        """Makes one run and waits for its end."""
        ...

    def recover(self, request: RunRequest) -> RunResult | None:
        """Reads what is left of a run after its controller died, ending its processes first."""
        ...
