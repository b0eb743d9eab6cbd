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

    The file is read every time: several parts of a controller note what each of them sees.

    Attributes:
        file: where that is kept.
        say: tells a person.
    """

    file: Path
    say: Callable[[str], None]
    _noted: NodeFailures = field(default_factory=NodeFailures, init=False)

    @property
    def excluded(self) -> tuple[str, ...]:
        """Nodes that jobs do without from now on."""
        return self._known().excluded

    def failed(self, job: str, nodes: Collection[str]) -> None:
        """Notes that a job lost nodes; one job counts once."""
        before = self._known()
        self._noted = before.failed(job, nodes)
        if self._noted == before:
            return
        self.say(f"job {job} lost a node ({', '.join(sorted(nodes))}): its runs are made again")
        for node, words in zip(self._noted.excluded, self._noted.words(), strict=True):
            if node not in before.excluded:
                self.say(words)
        try:
            _write(self.file, self._noted)
        except OSError as error:
            self.say(f"which nodes failed can't be kept: {self.file}: {error.strerror}")

    def _known(self) -> NodeFailures:
        """What the file says, and what could not be written there."""
        known = _read(self.file)
        for node, jobs in self._noted.jobs.items():
            for job in jobs:
                known = known.failed(job, [node])
        return known


def _read(file: Path) -> NodeFailures:
    """What a file says; nothing where it can't be read or holds anything else."""
    try:
        known = json.loads(file.read_text())
    except (OSError, ValueError):
        return NodeFailures()
    if not isinstance(known, dict):
        return NodeFailures()
    return NodeFailures({n: frozenset(jobs) for n, jobs in known.items() if _are_jobs(jobs)})


def _are_jobs(found: object) -> bool:
    return isinstance(found, list) and all(isinstance(job, str) for job in found)


def _write(file: Path, failures: NodeFailures) -> None:
    part = file.with_suffix(".part")
    part.write_text(json.dumps({node: sorted(jobs) for node, jobs in failures.jobs.items()}))
    part.replace(file)
