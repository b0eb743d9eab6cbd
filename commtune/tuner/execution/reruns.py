"""Which runs are measured again at their place: those during which others used the cores."""

from __future__ import annotations

from collections import Counter

from commtune.model import Outcome, Run
from commtune.tuner.execution.runner import Runner
from commtune.tuner.ports import Reporter

#: A run is disturbed when others used more than this share of the cores' time meanwhile, and
#: more seconds of each core than the kernel's counting in ticks of 10 ms can be wrong by.
DISTURBED, _COUNTABLE_S = 0.1, 0.025
#: How often one place is re-run, and all of a session together: a floor, and a share of its runs.
_MOST_RERUNS, _RERUNS_FLOOR, _RERUNS_SHARE = 2, 10, 0.1
_RERUNS_REPORTED = 3


def is_disturbed(run: Run) -> bool:
    """Whether others used the cores during a run so much that its times say little."""
    load = run.other_load or 0.0
    return load > DISTURBED and load * run.wall_s > _COUNTABLE_S


class Reruns:
    """The re-runs of a session; of a place that is re-run, the last run counts.

    Attributes:
        count: re-runs so far.
    """

    def __init__(self, runner: Runner, reporter: Reporter) -> None:
        self.count = 0
        self._runner = runner
        self._reporter = reporter
        self._of_place: Counter[tuple[int, int]] = Counter()

    def wants(self, run: Run) -> bool:
        """Whether a run is to be re-run at its place, which is then counted as done.

        No time that the benchmark measured enters; how long the whole run took does a little,
        through what the counters can resolve (see ``is_disturbed``).
        """
        # A job's nodes are elsewhere by now.
        if self._runner.batches.is_detached or run.outcome is not Outcome.OK:
            return False
        evidence, place = self._runner.evidence, (run.block, run.position)
        most = _RERUNS_FLOOR + _RERUNS_SHARE * len(evidence.runs)
        if not is_disturbed(run) or evidence.made_again >= most:
            return False
        if self._of_place[place] == _MOST_RERUNS:
            return False
        self._of_place[place] += 1
        self.count += 1
        self._report(run)
        return True

    def _report(self, run: Run) -> None:
        if self.count <= _RERUNS_REPORTED:
            more = "" if self.count < _RERUNS_REPORTED else "; further ones are only counted"
            self._reporter.say(
                f"background load used {run.other_load:.0%} of the cores: re-run{more}"
            )
