"""One job under way: what stands in the book of it, and what is known besides."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from commtune.cluster.job_states import JobState, ObservedState
from commtune.cluster.jobs.job_folder import JobFolder
from commtune.model import JobRecord, RunRequest

_PREFIX = "commtune-"
_NAME = re.compile(_PREFIX + r"(?:.*-)?([0-9a-f]{16})", re.ASCII)


def new_key() -> str:
    """A job's key: ours, unique for ever."""
    return uuid.uuid4().hex[:16]


def job_name(campaign: str, key: str) -> str:
    """A job's name: people see whose it is, and we find it by its key."""
    return f"{_PREFIX}{re.sub(r'[^A-Za-z0-9_.-]', '-', campaign)[:40]}-{key}"


def key_in(name: str) -> str:
    """The key in a job's name; empty where the job is not ours."""
    found = _NAME.fullmatch(name)
    return found[1] if found else ""


@dataclass
class TrackedJob:
    """A job under way.

    Attributes:
        job: as it stands in the book.
        requests: the runs of its block, in order; one for a trace.
        limit_s: seconds that each run may take.
        expected_s: seconds that the job will likely have its nodes.
        observed: what the scheduler said last.
        perhaps_known: the scheduler may know the job although no number was written down.
        adopted: an earlier controller made it, and nobody watched it meanwhile.
        attempts, next_attempt_at: how often it was submitted without success, and when to try
            again, seconds since 1970.
        absences, forgotten: how many complete answers of the queue in a row, and how many of the
            accounts, didn't name it.
        over_at: when it was first seen to be over; ``None`` before.
    """

    job: JobRecord
    requests: tuple[RunRequest, ...]
    limit_s: float
    expected_s: float = 0.0
    observed: ObservedState = field(default_factory=lambda: ObservedState(JobState.UNKNOWN))
    perhaps_known: bool = False
    adopted: bool = False
    attempts: int = 0
    next_attempt_at: float = 0.0
    absences: int = 0
    forgotten: int = 0
    over_at: float | None = None

    @property
    def folder(self) -> JobFolder:
        """Where it keeps its things."""
        return JobFolder(Path(self.job.folder))

    def update(self, **changes: Any) -> JobRecord:
        """The job's record with changes, which is also kept here."""
        self.job = replace(self.job, **changes)
        return self.job


def job_numbers(tracked_jobs: Sequence[TrackedJob]) -> list[str]:
    """The scheduler's numbers of those that have one."""
    return [tracked.job.number for tracked in tracked_jobs if tracked.job.number]
