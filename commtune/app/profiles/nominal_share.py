"""What share of the nominal bandwidth was reached, for commands that print times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from commtune import formatting as text
from commtune.db.connection.location import database_url
from commtune.db.queries.description import benchmark_header
from commtune.db.records import BestGain, BestRow, CampaignDescription, CampaignSummary
from commtune.documents.quantities import short_bandwidth
from commtune.model import Backend, Operation, RunResult, Verdict, Workload
from commtune.systems.nominal import operations
from commtune.systems.nominal.collectives import Nominal, bus_bandwidth

#: Settings of a campaign that are a part of its workload.
_OF_THE_WORKLOAD = ("emulated_nodes", "shape", "window", "flows")


@dataclass(frozen=True)
class Share:
    """A share of a nominal bandwidth; never shown without what it is of."""

    share: float
    nominal: Nominal

    @classmethod
    def of_best(cls, campaign: CampaignSummary, db: str | None) -> Share | None:
        """The share for a campaign's surest gain; ``None`` where nobody knows the links."""
        best = campaign.best
        if best is None or campaign.simulated:
            return None
        return _of_stored(best, campaign, db, best.bytes, best.tuned_s)

    @classmethod
    def of_answer(
        cls, answer: BestRow, stored: CampaignDescription, db: str | None
    ) -> Share | None:
        """Of the time that the best configuration takes at the size that was asked for, or the
        nearest; ``None`` where the campaign knows nothing of its machine's links.

        Args:
            stored: the answer's campaign.
        """
        overall = [point for point in answer.points if point.speed == "all"]
        points = overall or list(answer.points[:1])
        if not points or answer.simulated:
            return None
        taken_s = points[0].tuned_s if answer.verdict == Verdict.FASTER else points[0].default_s
        return _of_stored(answer, stored, db, points[0].bytes, taken_s)

    def __str__(self) -> str:
        whole = short_bandwidth(self.nominal.bytes_per_s or 0)
        return f"{text.format_percent(self.share)} of nominal {whole}"

    def plain(self) -> dict[str, Any]:
        """Plain data for programs; bytes per second."""
        return {"share": self.share, **self.nominal.plain()}


def _of_stored(
    measured: BestRow | BestGain,
    campaign: CampaignSummary | CampaignDescription,
    db: str | None,
    size: int,
    seconds: float,
) -> Share | None:
    """The share for a time of a campaign's workload; ``None`` where nothing can be said."""
    settings, said = campaign.settings, None
    if operations.FABRIC not in settings and measured.backend != Backend.MPI_HOST:
        # Where no system is described, a run's header has the links that the driver names.
        said = benchmark_header(database_url(db), campaign.id)
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
    """The nominal bandwidth of each pair of ranks, bytes per second, where it is known.

    Empty for all operations but ``pairs``.
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
    """What the links could carry in a run, as bus bandwidth; ``None`` where nobody names links.

    Where they are named and nothing can be said, it says why.
    """
    said: Mapping[str, Any] = result.header or {}
    fabric = operations.stored_fabric({}, said)
    if fabric is None or not result.measurements:
        return None
    content = workload.shape.content  # of a matrix: its messages are no part of plain()
    flows = {"flows": content.flows} if content else {}
    return operations.stored_nominal({**workload.plain(), **flows}, fabric, said)


def of_run(workload: Workload, result: RunResult) -> str:
    """How a run's largest size compares with what the links could carry; empty if unknown."""
    # A run by itself knows only the links that its driver names.
    found = nominal_of_run(workload, result)
    if found is None:
        return ""
    largest = max(result.measurements, key=lambda m: m.bytes)
    words = found.reached(largest.busbw)
    if found.bytes_per_s is None:
        return words
    assumed = "".join(f"; assumed: {assumption}" for assumption in found.assumptions)
    return f"largest size: {words}\n  {found.why}; {found.origin}{assumed}"
