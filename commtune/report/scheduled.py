"""What a scheduler gave a campaign: its jobs, their node-hours, and where the runs were made."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from commtune.db.records import excluded_nodes, node_hours_budget
from commtune.model import JobRecord, JobStage
from commtune.report.record import CampaignRecord


@dataclass(frozen=True)
class JobGroup:
    """Jobs of one kind that came to the same.

    Attributes:
        kind: what they are for.
        came_to: the scheduler's last word, and whether they are still in flight.
        wait_s: median seconds between writing one down and its start; ``None`` where none started.
        example: what was said of one of them.
    """

    kind: str
    came_to: str
    jobs: int
    node_hours: float
    wait_s: float | None
    example: str


@dataclass(frozen=True)
class Scheduled:
    """A campaign's share of a machine.

    Attributes:
        budget: node-hours that it may use; ``None`` where nobody set a limit.
        nodes: how many different ones its runs were made on.
        placed: runs of which the nodes are known.
        distances: share of these runs by how far apart their nodes stand, the most frequent first.
        excluded: nodes that it does without.
    """

    groups: tuple[JobGroup, ...]
    node_hours: float
    budget: float | None
    nodes: int
    placed: int
    distances: Mapping[str, float]
    excluded: tuple[str, ...]

    @property
    def jobs(self) -> int:
        """All of them."""
        return sum(group.jobs for group in self.groups)


def scheduler_share(record: CampaignRecord) -> Scheduled | None:
    """What the record says of jobs and nodes; ``None`` where no scheduler was asked."""
    placed = [run for run in record.runs if run.nodes]
    if not record.jobs and not placed:
        return None
    settings = record.campaign.settings
    distances = Counter(run.distance for run in placed if run.distance)
    return Scheduled(
        groups=_groups(record.jobs),
        node_hours=math.fsum(job.node_hours for job in record.jobs),
        budget=node_hours_budget(settings),
        nodes=len({node for run in placed for node in run.nodes}),
        placed=len(placed),
        distances={name: runs / len(placed) for name, runs in distances.most_common()},
        excluded=excluded_nodes(settings),
    )


def _groups(jobs: Sequence[JobRecord]) -> tuple[JobGroup, ...]:
    """By kind and what they came to, the most frequent first."""
    found: defaultdict[tuple[str, str], list[JobRecord]] = defaultdict(list)
    for job in jobs:
        found[str(job.kind), _came_to(job)].append(job)
    groups = [_group(*name, members) for name, members in found.items()]
    return tuple(sorted(groups, key=lambda group: (-group.jobs, group.kind, group.came_to)))


def _group(kind: str, came_to: str, jobs: Sequence[JobRecord]) -> JobGroup:
    waits = [job.started_at - job.prepared_at for job in jobs if job.started_at is not None]
    return JobGroup(
        kind=kind,
        came_to=came_to,
        jobs=len(jobs),
        node_hours=math.fsum(job.node_hours for job in jobs),
        wait_s=median(waits) if waits else None,
        example=next((job.detail for job in jobs if job.detail), ""),
    )


def _came_to(job: JobRecord) -> str:
    if job.stage is JobStage.OVER:
        return job.word or "over"
    return f"{job.word or job.stage}, in flight"
