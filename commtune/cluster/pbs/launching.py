"""What an MPI's own launcher says of ranks that it could not start in a job of PBS's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from commtune.cluster.placement import Topology
from commtune.model import Outcome

#: Words of hydra and of PBS where nothing could be started on a node.
_NOT_LAUNCHED = re.compile(r"(.*(?:pbs_tmrsh|tm_\w+): .*|.*(?:Launch proxy|launch proxy).*)")
#: Words of hydra and of Open MPI for a node whose helper is gone; a rank's own end has others.
_NODE_FAILED = re.compile(
    r"(.*assert \(!closed\) failed|.*lost communication with a remote daemon.*)"
)


@dataclass(frozen=True)
class MpiLauncher:
    """Implements ``cluster.scheduler.StepLauncher``."""

    ends_steps: ClassVar[bool] = False

    def judge_failure(
        self, output: str, began: bool, timed_out: bool
    ) -> tuple[Outcome, str] | None:
        # A launcher that was ended calls its own helpers lost.
        if not timed_out and (said := _NODE_FAILED.search(output)):
            return Outcome.NODE_FAILURE, f"the launcher lost a node: {said[1].strip()}"
        if not began and (said := _NOT_LAUNCHED.search(output)):
            return Outcome.NEVER_STARTED, f"not started: {said[1].strip()}"
        return None

    def lost_nodes(self, output: str) -> frozenset[str]:
        """None: which nodes it lost, PBS is asked."""
        del output
        return frozenset()

    def steps(self, job: str) -> list[str]:
        """None: PBS knows no steps."""
        del job
        return []

    def end_steps(self, job: str) -> None:
        """The job itself ends after a launch that had to be killed; so do its ranks."""

    def place_command(self, nodes: int) -> tuple[str, ...]:
        """None: PBS's jobs are not told where their nodes stand."""
        del nodes
        return ()

    def read_places(self, printed: str) -> Topology:
        del printed
        return Topology({})
