"""What share of the nominal bandwidth was reached, for commands that print times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from commtune.commands import text
from commtune.db.describing import header
from commtune.db.location import database_url
from commtune.db.records import CampaignSummary
from commtune.model import RunResult, Workload
from commtune.systems import (
    FABRIC,
    Nominal,
    bus_bandwidth,
    short_bandwidth,
    stored_fabric,
    stored_nominal,
)


@dataclass(frozen=True)
class Share:
    """A share of a nominal bandwidth; never shown without what it is of."""

    share: float
    nominal: Nominal

    def __str__(self) -> str:
        whole = short_bandwidth(self.nominal.bytes_per_s or 0)
        return f"{text.percent(self.share)} of nominal {whole}"

    def plain(self) -> dict[str, Any]:
        """For programs; bytes per second."""
        nominal = self.nominal
        return {
            "share": self.share, "nominal_Bps": nominal.bytes_per_s, "model": nominal.model,
            "why": nominal.why, "origin": nominal.origin,
            "assumptions": list(nominal.assumptions),
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
        said = header(database_url(db), campaign.id)
    workload = {
        "operation": best.operation, "ranks": best.ranks, "nodes": best.nodes,
        "backend": best.backend, "emulated_nodes": campaign.settings.get("emulated_nodes"),
    }  # fmt: skip
    nominal = stored_nominal(workload, stored_fabric(campaign.settings, said), said)
    reached = bus_bandwidth(best.operation, best.ranks, best.bytes, best.tuned_s)
    share = None if reached is None else nominal.share(reached)
    return None if share is None else Share(share, nominal)


def of_run(workload: Workload, result: RunResult) -> str:
    """How a run's largest size compares with what the links could carry, in words.

    Empty where nothing is known of them: a run by itself knows what its driver names.
    """
    said: Mapping[str, Any] = result.header or {}
    fabric = stored_fabric({}, said)
    if fabric is None or not result.measurements:
        return ""
    largest = max(result.measurements, key=lambda m: m.bytes)
    nominal = stored_nominal(workload.plain(), fabric, said)
    words = nominal.reached(largest.busbw)
    if nominal.bytes_per_s is None:
        return words
    assumed = "".join(f"; assumed: {assumption}" for assumption in nominal.assumptions)
    return f"largest size: {words}\n  {nominal.why}; {nominal.origin}{assumed}"
