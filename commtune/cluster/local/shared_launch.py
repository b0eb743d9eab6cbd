"""Makes the runs of a search one after the other in one launch, which saves start-up time.

Launcher and MPI start once. For each run the ranks fork processes, in which NCCL or RCCL reads its
variables anew. All runs after the search have a launch of their own, as in real programs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from commtune import process
from commtune.cluster.exit_codes import find_reason
from commtune.model import Backend, Phase, RunRequest

if TYPE_CHECKING:  # `build` reads no campaign file
    from commtune.campaign.plan import Plan

#: What rank 0 prints after a run (the benchmark's contract).
SIGN = "commtune-bench: run ended"
#: Prefixes of variables that NCCL, RCCL and their plugins read in the forked processes. Others may
#: be for the launcher or MPI, which have started by then.
_READ_ANEW = ("NCCL_", "RCCL_", "OFI_NCCL_")
#: Number of first runs in a session with a launch of their own, to learn what later phases cost.
_OWN_FIRST = 4
#: Number of runs that failed in a shared launch but not alone, after which no launch is shared any
#: more; a single one suffices if it was its launch's first run, and another launch did no better.
_MOST_FAULTS = 3
#: Time limit of the whole launch, seconds; each run has a limit of its own.
LONGEST_S = 1e5
#: Makes srun (older and newer versions) send stdin to rank 0 only. Else it blocks when another
#: rank's stdin is open and not read, as with container runtimes.
INPUT_OF_FIRST = {"SLURM_STDINMODE": "0", "SRUN_INPUT": "0"}
#: Seconds after a run's limit at which the ranks abort it themselves, if the controller is gone.
_BEYOND_LIMIT_S = 20.0
#: Characters that can't be in an order, a line with its fields separated by tabs.
_SEPARATORS = frozenset("\t\n\r\0")


def can_share_launches(plan: Plan) -> bool:
    """Whether the runs of a campaign's search can share a launch, and the campaign allows it."""
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
    """A launch that stays for further runs until ``close``.

    A failed run ends the launch; the next run starts another one.
    """

    say: Callable[[str], None] = lambda _: None  # tells a person
    _standing: process.StandingProcess | None = None
    _own_runs: int = 0
    _faults: int = 0

    def takes(self, request: RunRequest, words: Sequence[str]) -> bool:
        """Whether to make a run here; if not, ends the launch, which would disturb that run."""
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
        alone: Callable[[], process.Completed],
        limit_s: float,
        records: Path,
    ) -> process.Completed:
        """Makes a run; by ``alone`` if it failed and the shared launch may be to blame.

        A run that timed out is not repeated, unless it was the launch's first.

        Args:
            alone: makes it in a launch of its own.
            records: the file of its records, which is removed before it is repeated.
        """
        line = "\t".join([f"{limit_s + _BEYOND_LIMIT_S:.3f}", *order])
        # A launch may fail by chance, at its first run too: then another one is tried.
        for _ in range(2):
            was_first = self._standing is None or not self._standing.is_running
            if self._standing is None or was_first:
                self.close()  # it may have ended by itself, after a long time without a run
                self._standing = start()
            completed = self._standing.ask(line, limit_s)
            if completed.ok or (completed.timed_out and not was_first):
                return completed
            records.unlink(missing_ok=True)
            if completed.timed_out or not was_first:
                break
        by_itself = alone()
        if by_itself.ok:  # else the configuration is to blame
            self._faults += _MOST_FAULTS if was_first else 1
            if self._faults >= _MOST_FAULTS:
                why = _describe_end(completed)
                self.say(f"runs can't share a launch here, so each has one of its own: {why}")
        return by_itself

    def used_s(self) -> float:
        """Returns the CPU seconds of the current launch."""
        return self._standing.used_s() if self._standing else 0.0

    def close(self) -> None:
        """Ends the launch, if there is one."""
        if self._standing is not None:
            self._standing.end()


def _describe_end(completed: process.Completed) -> str:
    if completed.timed_out:
        return "a run took too long"
    status = f"signal {completed.signal}" if completed.signal else f"status {completed.exit_code}"
    return f"it ended with {status}: {find_reason(completed.output)}".removesuffix(": ")
