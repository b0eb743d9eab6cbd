"""Computes the reached share of the nominal bandwidth, for commands that print times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from commtune import formatting as text
from commtune.db.queries.description import benchmark_header
from commtune.db.records import BestGain, BestRow, CampaignDescription, CampaignSummary
from commtune.documents.quantities import short_bandwidth
from commtune.model import Backend, Operation, RunResult, Verdict, Workload
from commtune.systems.nominal import operations
from commtune.systems.nominal.collectives import Nominal, bus_bandwidth

#: The settings of a campaign that are a part of its workload.
_OF_THE_WORKLOAD = ("emulated_nodes", "shape", "window", "flows")


@dataclass(frozen=True)
class Share:
    """A reached share of a nominal bandwidth, with that bandwidth."""

    share: float
    nominal: Nominal

    @classmethod
    def of_best(cls, campaign: CampaignSummary, db: str | None) -> Share | None:
        """Returns the share for a campaign's best gain; ``None`` if its links are unknown."""
        best = campaign.best
        if best is None or campaign.simulated:
            return None
        return _of_stored(best, campaign, db, best.bytes, best.tuned_s)

    @classmethod
    def of_answer(
        cls, answer: BestRow, stored: CampaignDescription, db: str | None
    ) -> Share | None:
        """Returns the share for the time of an answer's configuration at its measured size.

        ``None`` if the links of the machine are unknown.
        """
        overall = [point for point in answer.points if point.speed == "all"]
        points = overall or list(answer.points[:1])
        if not points:
            return None
        taken_s = points[0].tuned_s if answer.verdict == Verdict.FASTER else points[0].default_s
        return _of_stored(answer, stored, db, points[0].bytes, taken_s)

    def __str__(self) -> str:
        whole = short_bandwidth(self.nominal.bytes_per_s or 0)
        return f"{text.format_percent(self.share)} of nominal {whole}"

    def plain(self) -> dict[str, Any]:
        """Returns JSON data; bandwidths are in bytes per second."""
        return {"share": self.share, **self.nominal.plain()}


def _of_stored(
    measured: BestRow | BestGain,
    campaign: CampaignSummary | CampaignDescription,
    db: str | None,
    size: int,
    seconds: float,
) -> Share | None:
    """Returns the share for a time (seconds) of a campaign's workload; ``None`` if unknown."""
    settings, said = campaign.settings, None
    if operations.FABRIC not in settings and measured.backend != Backend.MPI_HOST:
        # Without a described system, the header of a run has the links that the driver reports.
        said = benchmark_header(db, campaign.id)
    fabric = operations.stored_fabric(settings, said)
    if fabric is None:
        return None
    workload = {
        "operation": measured.operation,
        "ranks": measured.ranks,
        "nodes": measured.nodes,
        "backend": measured.backend,
        **{name: settings[name] for name in _OF_THE_WORKLOAD if name in settings},
    }
    found = operations.stored_nominal(workload, fabric, said)
    reached = bus_bandwidth(operations.stored_question(workload, said), size, seconds)
    share = None if reached is None else found.share(reached)
    return None if share is None else Share(share, found)


def of_pairs(workload: Workload, result: RunResult) -> dict[tuple[int, int], float]:
    """Returns the known nominal bandwidths (bytes per second) of pairs of ranks.

    It is empty for all operations but ``pairs``.
    """
    said: Mapping[str, Any] = result.header or {}
    fabric = operations.stored_fabric({}, said)
    if workload.operation is not Operation.PAIRS or fabric is None or workload.emulated_nodes:
        return {}
    question = operations.stored_question(workload.plain(), said)
    found = {
        (first, second): operations.nominal_bandwidth(
            fabric, replace(question, first=first, second=second)
        ).bytes_per_s
        for first in range(workload.ranks)
        for second in range(workload.ranks)
        if first != second
    }
    return {pair: whole for pair, whole in found.items() if whole}


def nominal_of_run(workload: Workload, result: RunResult) -> Nominal | None:
    """Returns the nominal bus bandwidth of a run; ``None`` if its links are unknown.

    If the links are known, but no bandwidth follows from them, it has the reason.
    """
    # Without a campaign, only the links that the driver reports are known.
    said: Mapping[str, Any] = result.header or {}
    fabric = operations.stored_fabric({}, said)
    if fabric is None or not result.measurements:
        return None
    content = workload.shape.content  # a matrix, whose messages plain() leaves out
    flows = {"flows": content.flows} if content else {}
    return operations.stored_nominal({**workload.plain(), **flows}, fabric, said)
