"""What the links of a campaign's machine could carry, to judge what was reached."""

from __future__ import annotations

import math
from collections.abc import Callable

from commtune.model import Outcome
from commtune.report.points import SizePoint
from commtune.report.record import CampaignRecord
from commtune.systems.nominal.collectives import Nominal
from commtune.systems.nominal.operations import stored_fabric, stored_nominal
from commtune.systems.units import format_bandwidth

#: Key of a system's description that holds its nominal bus bandwidth, bytes per second.
_SAID = "nominal_bandwidth"


def nominal_of(record: CampaignRecord) -> Nominal:
    """The nominal bus bandwidth, or why there is none."""
    said = record.campaign.system.description.get(_SAID)
    if isinstance(said, int | float) and math.isfinite(said) and said > 0:
        return Nominal(float(said), "the system's description", origin="a number stored with it")
    fabric = stored_fabric(record.campaign.settings, record.header)
    flows = {"flows": record.campaign.settings.get("flows", ())}
    workload = {"ranks": 0, **record.workload, **flows, "operation": record.operation}
    return stored_nominal(workload, fabric, record.header)


def busbw_of(record: CampaignRecord) -> Callable[[SizePoint, float], float] | None:
    """Bus bandwidth from a time: bytes per time, by a factor that only the operation decides."""
    factors = (
        m.busbw * m.median_s / m.bytes
        for run in record.runs
        if run.outcome is Outcome.OK and run.operation == record.operation
        for m in run.measurements
    )
    factor = next(factors, None)
    return None if factor is None else lambda point, seconds: factor * point.bytes / seconds


def limit_words(nominal: Nominal) -> str:
    """What no way of doing it exceeds; empty where that is the nominal bandwidth itself."""
    if nominal.limit is None:
        return ""
    return f"{format_bandwidth(nominal.limit)}: {nominal.limit_why}"
