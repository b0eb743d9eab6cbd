"""The picture of a confirmation by itself, for whom the rest of a report is not imported."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from commtune import formatting
from commtune.errors import NoAnswer
from commtune.model import Profile
from commtune.model.profile import ALL_SIZES
from commtune.report.figures.evidence import draw_speedups
from commtune.report.points import SizePoint
from commtune.tuner.outcome.displayed_points import displayed_points


def write_confirmation(campaign: str, profiles: Sequence[Profile], path: Path) -> None:
    """Draws what was confirmed alone: times, and speedups with their intervals.

    Raises:
        NoAnswer: no size has enough pairs.
        UserError: the file can't be written.
    """
    shown = [
        SizePoint(point, profile, None, ())
        for profile in profiles
        if profile.name != ALL_SIZES
        for point in displayed_points(profile.points)
        if profile.bytes_low <= point.bytes <= profile.bytes_high
    ]
    judged = sorted((p for p in shown if p.is_judged), key=lambda p: p.bytes)
    if not judged:
        raise NoAnswer(
            f"campaign {campaign} has too few pairs at every size to draw anything",
            hint="give it a larger budget for confirmation, and tune again",
        )
    first = judged[0].profile
    where = formatting.format_ranks(first.ranks, first.nodes)
    banner = "SIMULATED OR REPLAYED: no real system" if first.simulated else ""
    picture = draw_speedups(judged, first.minimum_gain)
    picture.write(path, heading=f"{campaign}: {first.operation}, {where}", banner=banner)
