"""Decides whether the machine, rather than a configuration, is to blame for failures."""

from __future__ import annotations

from dataclasses import dataclass, field

from commtune.model import Outcome, Run

#: Failures in a row after which a run of the default shows whether the machine is to blame.
_FAILURES_TO_DOUBT = 2
#: The longest pause between failures, seconds.
_LONGEST_PAUSE_S = 8.0


def blames_machine(run: Run) -> bool:
    """Whether the machine is to blame for a failure: the default has no setting that could be."""
    if run.configuration.is_default and run.outcome.blames_configuration:
        return True
    return run.outcome is Outcome.NODE_FAILURE


@dataclass
class FailingRuns:
    """Consecutive failures of runs that are made one by one, of any configuration.

    Attributes:
        waited_s: seconds so far that no budget pays for: waits for faults to pass, and lost runs.
    """

    waited_s: float = 0.0
    _ever_worked: bool = False
    _failing: list[Run] = field(default_factory=list)

    def add(self, run: Run) -> None:
        """Adds a run that ended; one that was ended from outside counts for nothing."""
        self.waited_s += run.wall_s if run.outcome.is_lost else 0.0
        if run.outcome is Outcome.OK:
            self._ever_worked = True
            self._failing.clear()
        elif run.outcome is Outcome.NODE_FAILURE or not run.outcome.is_lost:
            self._failing.append(run)

    @property
    def in_doubt(self) -> bool:
        """Whether the machine may be to blame, so that the default has to run.

        After one failure of a single value, since a second one would set it aside for good.
        """
        failing = self._failing
        return len(failing) >= _FAILURES_TO_DOUBT or any(
            blames_machine(run) or len(run.configuration) == 1 for run in failing
        )

    @property
    def pause_s(self) -> float:
        """Seconds to wait for a fault of the machine to pass, twice as long each time.

        0 if no run ever worked, since then it won't pass.
        """
        if (
            not self._ever_worked
            or len(self._failing) < 2
            or not blames_machine(self._failing[-1])
        ):
            return 0.0
        return min(_LONGEST_PAUSE_S, 2.0 ** (len(self._failing) - 2))
