"""Steps of an operation, each measured by itself beside the whole: shown, and not tuned for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from commtune.model import DEFAULT, Configuration, Phase
from commtune.report.points import SizePoint
from commtune.report.record import CampaignRecord


@dataclass(frozen=True)
class OperationStep:
    """One step at one size: medians over the confirmation's runs, seconds.

    Attributes:
        part: the benchmark's word.
        configuration: the candidate's; ``None`` where only the default was confirmed.
        tuned_s: with it; ``None`` where no such run was good.
    """

    bytes: int
    part: str
    default_s: float
    configuration: Configuration | None
    tuned_s: float | None


def operation_steps(
    record: CampaignRecord, points: Sequence[SizePoint]
) -> tuple[OperationStep, ...]:
    """All steps, by size, in the order in which they are measured."""
    times = _times(record)
    candidates = {point.bytes: point.configuration for point in points}
    found = []
    for (configuration, size, part), defaults in times.items():
        if not configuration.is_default:
            continue
        other = candidates.get(size)
        tuned = times.get((other, size, part)) if other is not None else None
        found.append(
            OperationStep(size, part, median(defaults), other, median(tuned) if tuned else None)
        )
    return tuple(sorted(found, key=lambda step: step.bytes))


def _times(record: CampaignRecord) -> dict[tuple[Configuration, int, str], list[float]]:
    runs = [run for run in record.runs if run.run_id in record.parts]
    confirmed = [run for run in runs if run.phase is Phase.CONFIRM]
    found: defaultdict[tuple[Configuration, int, str], list[float]] = defaultdict(list)
    # Without a confirmation, the search's runs of the default are all that there is.
    for run in confirmed or [run for run in runs if run.configuration == DEFAULT]:
        for part in record.parts[run.run_id]:
            key = (run.configuration, int(part["bytes"]), str(part["part"]))
            found[key].append(float(part["median_s"]))
    return dict(found)
