"""Jobs of a scheduler, which make runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class JobScheduler(StrEnum):
    """The scheduler of jobs, by its key in campaign files and in stored campaigns."""

    SLURM = "slurm"
    PBS = "pbs"

    @property
    def label(self) -> str:
        return {"slurm": "Slurm", "pbs": "PBS"}[self]

    @classmethod
    def find_in(cls, stored: Mapping[str, Any]) -> JobScheduler | None:
        """Finds the scheduler in a stored campaign's question or settings; ``None`` for none."""
        return next((scheduler for scheduler in cls if scheduler in stored), None)


class JobKind(StrEnum):
    """What a scheduler's job is for."""

    BLOCK = "block"
    ALLOCATION = "allocation"
    TRACE = "trace"


class JobStage(StrEnum):
    """The stage of a job, as stored; it only ever advances, in this order."""

    PREPARED = "prepared"  # stored, its script written; perhaps submitted, perhaps not
    SUBMITTED = "submitted"  # the scheduler's number for it is known
    OVER = "over"  # it ended, and what came of it is stored


@dataclass(frozen=True)
class JobRecord:
    """One job of a campaign, stored before it is submitted.

    Attributes:
        key: unique, assigned by commtune; part of the job's name, by which it is found again.
        block: number of the block whose runs it makes; ``None`` for other kinds.
        folder: of its script, its output and its exit files.
        number: the scheduler's own number; empty until it is known.
        word, reason: the last state that the scheduler reported, and its reason.
        nodes: names in the scheduler's short form.
        node_count: nodes requested, then those that it got.
        prepared_at, started_at, ended_at: seconds since 1970; ``None`` while unknown.
        node_hours: nodes times hours that it had them; as far as known while it runs.
        detail: what went wrong, for a person.
    """

    key: str
    kind: JobKind
    folder: str
    prepared_at: float
    node_count: int
    block: int | None = None
    stage: JobStage = JobStage.PREPARED
    number: str = ""
    word: str = ""
    reason: str = ""
    nodes: str = ""
    started_at: float | None = None
    ended_at: float | None = None
    node_hours: float = 0.0
    detail: str = ""
