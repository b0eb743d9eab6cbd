"""Nodes that failed under a campaign's jobs, kept over controllers."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from commtune.cluster.slurm.states import NodeFailures


@dataclass
class FailedNodes:
    """Remembers which nodes failed in which jobs.

    Attributes:
        file: where that is kept.
        say: tells a person.
    """

    file: Path
    say: Callable[[str], None]
    _known: NodeFailures = field(init=False)

    def __post_init__(self) -> None:
        self._known = _read(self.file)

    @property
    def excluded(self) -> tuple[str, ...]:
        """Nodes that jobs do without from now on."""
        return self._known.excluded

    def failed(self, job: str, nodes: Collection[str]) -> None:
        """Notes that a job lost nodes; one job counts once."""
        before = self._known
        self._known = before.failed(job, nodes)
        if self._known == before:
            return
        self.say(f"job {job} lost a node ({', '.join(sorted(nodes))}): its runs are made again")
        for node, words in zip(self._known.excluded, self._known.words(), strict=True):
            if node not in before.excluded:
                self.say(words)
        _write(self.file, self._known)


def _read(file: Path) -> NodeFailures:
    try:
        known = json.loads(file.read_text())
        return NodeFailures({node: frozenset(jobs) for node, jobs in known.items()})
    except (OSError, ValueError, AttributeError, TypeError):
        return NodeFailures()


def _write(file: Path, failures: NodeFailures) -> None:
    part = file.with_suffix(".part")
    part.write_text(json.dumps({node: sorted(jobs) for node, jobs in failures.jobs.items()}))
    part.replace(file)
