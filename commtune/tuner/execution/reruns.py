"""Decides which runs are repeated because background load disturbed them."""

from __future__ import annotations

from collections import Counter

from commtune.model import Outcome, Run
from commtune.tuner.execution.runner import Runner
from commtune.tuner.ports import Reporter

#: A run is disturbed if others used more than this share of the cores' time, and more seconds of
#: each core than the error of the kernel's counters, which count ticks of 10 ms.
DISTURBED, _COUNTABLE_S = 0.1, 0.025
#: The most re-runs of one place in a block; and of the campaign, ten plus a share of its runs.
_MOST_RERUNS, _RERUNS_FLOOR, _RERUNS_SHARE = 2, 10, 0.1
#: The number of re-runs that are reported.
_RERUNS_REPORTED = 3


def is_disturbed(run: Run) -> bool:
    """Whether background load disturbed a run."""
    load = run.other_load or 0.0
    return load > DISTURBED and load * run.wall_s > _COUNTABLE_S


class Reruns:
    """The re-runs of a session; the last run of a place in a block counts.

    Attributes:
        count: number of re-runs so far.
    """

    def __init__(self, runner: Runner, reporter: Reporter) -> None:
        self.count = 0
        self._runner = runner
        self._reporter = reporter
        self._of_place: Counter[tuple[int, int]] = Counter()

    def take_rerun(self, run: Run) -> bool:
        """Decides whether to repeat a run, and counts that re-run.

        The decision considers none of the benchmark's times; the length of the run enters
        slightly, through the error of the counters (see ``is_disturbed``).
        """
        # A job has given its nodes back by now.
        if self._runner.batches.is_detached or run.outcome is not Outcome.OK:
            return False
        evidence, place = self._runner.evidence, (run.block, run.position)
        most = _RERUNS_FLOOR + _RERUNS_SHARE * len(evidence.runs)
        if not is_disturbed(run) or evidence.rerun_count >= most:
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
