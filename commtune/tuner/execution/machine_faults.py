"""Whether the machine, and no configuration, is to blame for what fails."""

from __future__ import annotations

from dataclasses import dataclass, field

from commtune.model import Outcome, Run

#: After so many failures in a row a run of the default tells whether the machine is to blame.
_DOUBTED = 2
_LONGEST_PAUSE_S = 8.0


def blames_machine(run: Run) -> bool:
    """Whether a run failed through the machine, or may have: the default fails by no setting."""
    if run.configuration.is_default and run.outcome.blames_configuration:
        return True
    return run.outcome is Outcome.NODE_FAILURE


@dataclass
class FailingRuns:
    """Runs in a row that failed where they were made one by one, whatever they were runs of.

    Attributes:
        waited_s: seconds so far that no budget pays for: waits for faults to pass, and runs that
            were lost.
    """

    waited_s: float = 0.0
    _ever_worked: bool = False
    _failing: list[Run] = field(default_factory=list)

    def add(self, run: Run) -> None:
        """Takes in a run that ended; what was ended from outside says nothing."""
        self.waited_s += run.wall_s if run.outcome.is_lost else 0.0
        if run.outcome is Outcome.OK:
            self._ever_worked = True
            self._failing.clear()
        elif run.outcome is Outcome.NODE_FAILURE or not run.outcome.is_lost:
            self._failing.append(run)

    @property
    def in_doubt(self) -> bool:
        """Whether the machine may be to blame: a run of the default tells."""
        return len(self._failing) >= _DOUBTED or any(map(blames_machine, self._failing))

    @property
    def pause_s(self) -> float:
        """Seconds in which a fault of the machine may pass, longer each time.

        0 where nothing ever worked: it will not pass.
        """
        if (
            not self._ever_worked
            or len(self._failing) < 2
            or not blames_machine(self._failing[-1])
        ):
            return 0.0
        return min(_LONGEST_PAUSE_S, 2.0 ** (len(self._failing) - 2))
