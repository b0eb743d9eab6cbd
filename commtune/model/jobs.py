"""Jobs of a batch system, as the database keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class JobKind(StrEnum):
    """What a scheduler's job is for."""

    BLOCK = "block"
    ALLOCATION = "allocation"
    TRACE = "trace"


class JobStage(StrEnum):
    """How far a job has come, as we wrote it down: the way is one, from left to right."""

    PREPARED = "prepared"  # stored, its script written; perhaps handed in, perhaps not
    SUBMITTED = "submitted"  # the scheduler's number for it is known
    OVER = "over"  # it ended, and what came of it is stored


@dataclass(frozen=True)
class JobRecord:
    """One job of a campaign, as the store keeps it; written before the scheduler hears of it.

    Attributes:
        key: ours, unique for ever; part of the job's name, by which the job is found again.
        block: number of the block whose runs it makes; ``None`` for other kinds.
        folder: where its script, its output and its exit files are.
        number: the scheduler's own number; empty until it is known.
        word, reason: the scheduler's last words on it.
        nodes: names in the scheduler's short form.
        node_count: nodes asked for, and had once it ran.
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
