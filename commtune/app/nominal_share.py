"""What share of the nominal bandwidth was reached, for commands that print times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from commtune import formatting as text
from commtune.db.connection.location import database_url
from commtune.db.queries.description import benchmark_header
from commtune.db.records import BestRow, CampaignDescription, CampaignSummary
from commtune.model import Operation, RunResult, Verdict, Workload
from commtune.systems.nominal.collectives import Nominal, bus_bandwidth
from commtune.systems.nominal.operations import (
    FABRIC,
    nominal_bandwidth,
    stored_fabric,
    stored_nominal,
    stored_question,
)
from commtune.systems.units import short_bandwidth

#: Settings of a campaign that are a part of its workload.
_OF_THE_WORKLOAD = ("emulated_nodes", "shape", "window", "flows")


@dataclass(frozen=True)
class Share:
    """A share of a nominal bandwidth; never shown without what it is of."""

    share: float
    nominal: Nominal

    def __str__(self) -> str:
        whole = short_bandwidth(self.nominal.bytes_per_s or 0)
        return f"{text.format_percent(self.share)} of nominal {whole}"

    def plain(self) -> dict[str, Any]:
        """For programs; bytes per second."""
        return {"share": self.share, **nominal_plain(self.nominal)}


def nominal_plain(nominal: Nominal) -> dict[str, Any]:
    """For programs; bytes per second."""
    return {
        "nominal_Bps": nominal.bytes_per_s, "model": nominal.model, "why": nominal.why,
        "origin": nominal.origin, "assumptions": list(nominal.assumptions),
    }  # fmt: skip


def of_best(campaign: CampaignSummary, db: str | None) -> Share | None:
    """Of a campaign's surest gain; ``None`` where nothing is known of the machine's links.

    Args:
        db: the database that the campaign is in, as the user named it.
    """
    best = campaign.best
    if best is None or campaign.simulated:
        return None
    said = None
    if FABRIC not in campaign.settings and best.backend != "mpi-host":
        said = benchmark_header(database_url(db), campaign.id)
    workload = {
        "operation": best.operation, "ranks": best.ranks, "nodes": best.nodes,
        "backend": best.backend,
    }  # fmt: skip
    return _of_time(workload, campaign.settings, said, best.bytes, best.tuned_s)


def of_answer(answer: BestRow, stored: CampaignDescription, db: str | None) -> Share | None:
    """Of the time that the best configuration takes at the size that was asked for, or the
    nearest; ``None`` where the campaign knows nothing of its machine's links.

    Args:
        stored: the answer's campaign.
        db: the database that it is in, as the user named it.
    """
    points = [point for point in answer.points if point.speed == "all"] or list(answer.points[:1])
    if not points or answer.simulated:
        return None
    said = None
    if FABRIC not in stored.settings and answer.backend != "mpi-host":
        said = benchmark_header(database_url(db), stored.id)
    taken_s = points[0].tuned_s if answer.verdict == Verdict.FASTER else points[0].default_s
    workload = {
        "operation": answer.operation, "ranks": answer.ranks, "nodes": answer.nodes,
        "backend": answer.backend,
    }  # fmt: skip
    return _of_time(workload, stored.settings, said, points[0].bytes, taken_s)


def _of_time(
    workload: Mapping[str, Any],
    settings: Mapping[str, Any],
    said: Mapping[str, Any] | None,
    size: int,
    seconds: float,
) -> Share | None:
    """Of a time of a campaign's workload; ``None`` where nothing can be said.

    Args:
        settings: of the campaign; they know its shape and its links.
        said: the header of a run, where the settings know of no links.
    """
    fabric = stored_fabric(settings, said)
    if fabric is None:
        return None
    known = {name: settings[name] for name in _OF_THE_WORKLOAD if name in settings}
    whole = {**workload, **known}
    found = stored_nominal(whole, fabric, said)
    reached = bus_bandwidth(stored_question(whole, said), size, seconds)
    share = None if reached is None else found.share(reached)
    return None if share is None else Share(share, found)


def of_pairs(workload: Workload, result: RunResult) -> dict[tuple[int, int], float]:
    """The nominal bandwidth of each pair of ranks, bytes per second, where it is known.

    Empty for all operations but ``pairs``.
    """
    said: Mapping[str, Any] = result.header or {}
    fabric = stored_fabric({}, said)
    if workload.operation is not Operation.PAIRS or fabric is None or workload.emulated_nodes:
        return {}
    question = stored_question(workload.plain(), said)
    found = {
        (first, second): nominal_bandwidth(
            fabric, replace(question, first=first, second=second)
        ).bytes_per_s
        for first in range(workload.ranks)
        for second in range(workload.ranks)
        if first != second
    }
    return {pair: whole for pair, whole in found.items() if whole}


def _plain(workload: Workload) -> dict[str, Any]:
    """A workload as plain data, with the messages of its matrix."""
    content = workload.shape.content
    return {**workload.plain(), **({"flows": content.flows} if content else {})}


def nominal_of_run(workload: Workload, result: RunResult) -> Nominal | None:
    """What the links could carry in a run, as bus bandwidth; ``None`` where nobody names links.

    Where they are named and nothing can be said, it says why.
    """
    said: Mapping[str, Any] = result.header or {}
    fabric = stored_fabric({}, said)
    if fabric is None or not result.measurements:
        return None
    return stored_nominal(_plain(workload), fabric, said)


def of_run(workload: Workload, result: RunResult) -> str:
    """How a run's largest size compares with what the links could carry, in words.

    Empty where nothing is known of them: a run by itself knows what its driver names.
    """
    found = nominal_of_run(workload, result)
    if found is None:
        return ""
    largest = max(result.measurements, key=lambda m: m.bytes)
    words = found.reached(largest.busbw)
    if found.bytes_per_s is None:
        return words
    assumed = "".join(f"; assumed: {assumption}" for assumption in found.assumptions)
    return f"largest size: {words}\n  {found.why}; {found.origin}{assumed}"
