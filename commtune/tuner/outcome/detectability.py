"""Describes which speedups a confirmation could not rule out where the default stays.

Imports nothing slow: fast commands need it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from commtune import formatting
from commtune.model import FEW_PAIRS, PointEvidence
from commtune.tuner.outcome.displayed_points import overall_points, slower_state

#: A gain so large (900 %) that not to exclude it, or not to detect less, says nothing.
UNINFORMATIVE_GAIN = 9.0


def describe_detectability(
    sizes: Sequence[int],
    points: Sequence[PointEvidence],
    minimum_gain: float,
    found: Mapping[int, float],
) -> str:
    """Describes the largest speedup that is not ruled out at some sizes, and at which of them.

    Also which machine state vetoed one, and the minimum detectable effects: each size has its own.
    Empty if nothing is known.

    Args:
        sizes: bytes, at least one.
        points: at each size, those of the candidate with the highest upper end; none if no
            candidate was compared there.
        found: by size, the gain that the confirmation would have found there in 9 of 10 cases.
    """
    states = {size: slower_state(size, points, minimum_gain) for size in sizes}
    slower = [_describe_slower(state) for state in states.values() if state is not None]
    rest = [size for size, state in states.items() if state is None]
    said = _describe_rest(rest, points, minimum_gain, found) if rest else ""
    return "; ".join(part for part in (*slower, said) if part)


def _describe_slower(state: PointEvidence) -> str:
    # Two pairs are enough for a veto, so they are shown.
    said = formatting.describe_speedup(state.gain, state.bytes, state.speed, fewest=2)
    return f"faster at {formatting.format_size(state.bytes)}, but not in every state: {said}"


def _describe_rest(
    sizes: Sequence[int],
    points: Sequence[PointEvidence],
    minimum_gain: float,
    found: Mapping[int, float],
) -> str:
    compared = {point.bytes for point in points} & set(sizes)
    known = {size: point for size, point in overall_points(points).items() if size in sizes}
    could = _describe_power(sizes, found, known)
    at = f"at {formatting.format_size(sizes[0])}" if len(sizes) == 1 else ""
    if not compared:
        # No candidate for these sizes was left after ablation.
        return could and f"no candidate kept a speedup in fresh runs{at and f' {at}'}; {could}"
    if len(known) < len(sizes):
        where = at or "at some of these sizes"
        return f"too few pairs {where} to say anything{could and f'; {could}'}"
    most = max(known, key=lambda size: known[size].gain.high)
    gain = known[most].gain.high - 1
    where = at or "here"
    if gain < minimum_gain:
        return f"a speedup of {formatting.format_percent(minimum_gain)} is ruled out {where}"
    if gain > UNINFORMATIVE_GAIN:
        return (
            f"nothing is known at {formatting.format_size(most)}: too noisy; make more runs, on "
            "a quieter machine"
        )
    # This holds for what was compared, not for configurations that were never tried.
    of = f" at {formatting.format_size(most)}" if len(sizes) > 1 else ""
    hidden = f"up to {formatting.format_percent(gain)}{of}"
    said = f"no speedup was shown {where}; {hidden} is not ruled out"
    return f"{said}; {could}" if could else said


def is_ruled_out(size: int, points: Sequence[PointEvidence], minimum_gain: float) -> bool:
    """Whether the minimum gain is ruled out at a size (bytes) for all compared candidates."""
    point = overall_points(points).get(size)
    return point is not None and point.gain.high - 1 < minimum_gain


def _describe_power(
    sizes: Sequence[int], found: Mapping[int, float], known: Mapping[int, PointEvidence]
) -> str:
    here = [size for size in sizes if size in found and not _has_few_pairs(known.get(size))]
    if not here:
        return ""
    worst = max(here, key=lambda size: found[size])
    most = f"{formatting.format_percent(found[worst])} at {formatting.format_size(worst)}"
    if len(here) == 1:
        return f"minimum detectable effect {most} (found in 9 of 10 cases)"
    of = f" at {len(here)} of {len(sizes)} sizes" if len(here) < len(sizes) else ""
    # The largest of several is too large by chance, and the smallest too small (docs/method.md).
    return f"minimum detectable effects{of} up to {most} (each found in 9 of 10 cases)"


def _has_few_pairs(point: PointEvidence | None) -> bool:
    """Whether a number is of an older version, which stated it for any number of pairs."""
    return point is not None and point.gain.pairs < FEW_PAIRS
