"""What an MPI's own launcher says of ranks that it could not start in a job of PBS's."""

from __future__ import annotations

import re
from dataclasses import dataclass

from commtune.cluster.placement import Topology
from commtune.model import Outcome

#: hydra's and PBS's words for a node on which nothing could be started, or that was lost.
_NOT_LAUNCHED = re.compile(
    r"((?:pbs_tmrsh|tm_\w+): .*|.*(?:unable to launch|launch proxy|error waiting for event).*)"
)
_LOST = re.compile(r"(?:proxy \S+ (?:at|on) host|connection to (?:host )?)\s*([\w.-]+)")


@dataclass(frozen=True)
class MpiLauncher:
    """Implements ``cluster.scheduler.StepLauncher``."""

    def judge_failure(
        self, output: str, began: bool, timed_out: bool
    ) -> tuple[Outcome, str] | None:
        del timed_out
        if not began and (said := _NOT_LAUNCHED.search(output)):
            return Outcome.NEVER_STARTED, f"not started: {said[1].strip()}"
        return None

    def lost_nodes(self, output: str) -> frozenset[str]:
        return frozenset(_LOST.findall(output))

    def end_steps(self, job: str) -> None:
        """The job's script ends itself after a launch that had to be killed; so do its ranks."""

    def place_command(self, nodes: int) -> tuple[str, ...]:
        """None: PBS's jobs are not told where their nodes stand."""
        del nodes
        return ()

    def read_places(self, printed: str) -> Topology:
        del printed
        return Topology({})
