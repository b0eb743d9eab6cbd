"""Runs of the search that follow each other in one launch.

Launcher and MPI start once. For each run the ranks fork processes, in which NCCL or RCCL reads its
variables anew. What follows the search is measured in launches of its own, as programs have them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from commtune import process
from commtune.model import Backend, Phase, RunRequest

if TYPE_CHECKING:  # `build` reads no campaign file
    from commtune.campaign.plan import Plan

#: What rank 0 prints after a run (the benchmark's contract).
SIGN = "commtune-bench: run ended"
#: Variables that NCCL, RCCL and their plugins read when they start. Others may be the launcher's
#: or MPI's, which have started by then.
_READ_ANEW = ("NCCL_", "RCCL_", "OFI_NCCL_")
#: The first runs of a session are launches of their own: what later phases cost is told from them.
_OWN_FIRST = 4
#: Runs that failed in a launch and not by themselves, before no launch is shared any more: one, if
#: it was the launch's first.
_MOST_FAULTS = 3
#: What a launcher that keeps a time limit is told, seconds: each run has a limit of its own.
LONGEST_S = 1e5
#: srun (by either name, as it is old or new) gives its input to rank 0 only. It would stop where
#: another rank's is kept open and not read, as runtimes of containers do.
INPUT_OF_FIRST = {"SLURM_STDINMODE": "0", "SRUN_INPUT": "0"}
#: Ranks give up a run themselves so long after it should have ended: the controller may be gone.
_BEYOND_LIMIT_S = 20.0
#: Fields of an order have tabs between them, and orders are lines.
_SEPARATORS = frozenset("\t\n\r\0")


def can_share_launches(plan: Plan) -> bool:
    """Whether runs of a campaign's search can follow each other in one launch, and may."""
    workload, space = plan.workload, plan.space
    return (
        plan.shares_launches
        and workload.own is None
        and {workload.backend, *workload.shape.backends} == {Backend.XCCL}
        and plan.aggressor is None
        and all(n.startswith(_READ_ANEW) for n in space.variables if n not in space.pinned)
    )


@dataclass
class SharedLaunch:
    """Makes runs in a launch that stays, until ``close``.

    A run that fails ends the launch, and the next one begins another.

    Attributes:
        say: tells a person.
    """

    say: Callable[[str], None] = lambda _: None
    _standing: process.StandingProcess | None = None
    _own_runs: int = 0
    _faults: int = 0
    _was_first: bool = False

    def takes(self, request: RunRequest, words: Sequence[str]) -> bool:
        """Whether a run is one for it; any other ends the launch, so as to have nothing beside."""
        is_search = request.phase is Phase.SEARCH and self._faults < _MOST_FAULTS
        if is_search and self._own_runs >= _OWN_FIRST and not _SEPARATORS & set("".join(words)):
            return True
        self._own_runs += is_search
        self.close()
        return False

    def make(
        self,
        order: Sequence[str],
        start: Callable[[], process.StandingProcess],
        limit_s: float,
    ) -> process.Completed | None:
        """Makes a run; ``None`` where it failed, and the launch may be to blame.

        Then it is to be made by itself, and ``judge`` told how that ended. One that hangs is not
        made again, unless it was the launch's first.
        """
        self._was_first = self._standing is None or not self._standing.is_running
        if self._standing is None or self._was_first:
            self.close()  # it may have ended by itself, after a long time without a run
            self._standing = start()
        line = "\t".join([f"{limit_s + _BEYOND_LIMIT_S:.3f}", *order])
        completed = self._standing.ask(line, limit_s)
        is_settled = completed.ok or (completed.timed_out and not self._was_first)
        return completed if is_settled else None

    def judge(self, alone: process.Completed) -> None:
        """How a run ended by itself for which ``make`` had no answer."""
        if not alone.ok:
            return  # the configuration is to blame
        self._faults += _MOST_FAULTS if self._was_first else 1
        if self._faults >= _MOST_FAULTS:
            self.say("runs can't share a launch here: each has one of its own")

    def used_s(self) -> float:
        """CPU seconds of the launch that is there."""
        return self._standing.used_s() if self._standing else 0.0

    def close(self) -> None:
        """Ends the launch, if there is one."""
        if self._standing is not None:
            self._standing.end()
