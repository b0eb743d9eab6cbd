"""Nodes that failed under a campaign's jobs, kept over controllers."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

#: Jobs that a node may fail in before it is left out.
_MOST = 1


@dataclass
class FailedNodes:
    """Remembers which nodes failed in which jobs; a node that failed in two is left out.

    The file is read every time: several parts of a controller note what each of them sees. One
    job counts once, however often it is seen.

    Attributes:
        file: where that is kept.
        say: tells a person.
    """

    file: Path
    say: Callable[[str], None]
    _noted: dict[str, set[str]] = field(default_factory=dict, init=False)

    @property
    def excluded(self) -> tuple[str, ...]:
        """Nodes that jobs do without from now on, in order of name."""
        return tuple(sorted(n for n, jobs in self._known().items() if len(jobs) > _MOST))

    def add_failure(self, job: str, nodes: Collection[str]) -> None:
        """Notes that a job lost nodes."""
        known, excluded = self._known(), self.excluded
        if all(job in known.get(node, ()) for node in nodes):
            return
        for node in nodes:
            known.setdefault(node, set()).add(job)
        self._noted = known
        self.say(f"job {job} lost a node ({', '.join(sorted(nodes))}): its runs are re-run")
        for node in sorted(set(nodes) - set(excluded)):
            if len(known[node]) > _MOST:
                jobs = ", ".join(sorted(known[node]))
                self.say(
                    f"node {node} failed in {len(known[node])} jobs ({jobs}) and is left out "
                    "from now on"
                )
        try:
            _write(self.file, known)
        except OSError as error:
            self.say(f"which nodes failed can't be kept: {self.file}: {error.strerror}")

    def _known(self) -> dict[str, set[str]]:
        """By node, the jobs that it failed in: from the file, and what could not be written."""
        known = _read(self.file)
        for node, jobs in self._noted.items():
            known.setdefault(node, set()).update(jobs)
        return known


def _read(file: Path) -> dict[str, set[str]]:
    """What a file says; nothing where it can't be read or holds anything else."""
    try:
        known = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(known, dict):
        return {}
    return {node: set(jobs) for node, jobs in known.items() if _are_jobs(jobs)}


def _are_jobs(found: object) -> bool:
    return isinstance(found, list) and all(isinstance(job, str) for job in found)


def _write(file: Path, known: dict[str, set[str]]) -> None:
    part = file.with_suffix(".part")
    part.write_text(json.dumps({node: sorted(jobs) for node, jobs in known.items()}))
    part.replace(file)
