"""How evidence is worded: the same figures in the same words in every table, sentence and file.

Tables of ``tune``, ``best``, ``verify``, reports and exported files take their cells from here.
Imports nothing slow: ``commtune best`` waits for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from commtune import formatting as text
from commtune.model import Outcome, PointEvidence, Verdict

if TYPE_CHECKING:
    from commtune.model.conclusion import Ablation

#: What stored data and JSON call ``undecided``.
INCONCLUSIVE = "inconclusive"
#: Where other values were tried, a configuration may gain more than the one that it began as.
_MORE_THAN_ALL = 1.05


def format_simultaneous(level: float | None, each: float = 0.0) -> str:
    """``simultaneous 95 % CI``: at this level, all intervals of a campaign hold together.

    Args:
        level: ``None`` where nobody knows it.
        each: the level of each interval, which is told instead.
    """
    return (
        f"{100 * each:.4g} % CI each" if level is None else f"simultaneous {100 * level:.6g} % CI"
    )


def format_finding(finding: StrEnum | str) -> str:
    """A verdict or finding in the words that users read."""
    return INCONCLUSIVE if finding == Verdict.UNDECIDED else str(finding)


def describe_verdict(verdict: Verdict) -> str:
    """What the evidence says of a speedup: ``faster``, ``no speedup shown``, ..."""
    words = {Verdict.DEFAULT: "no speedup shown", Verdict.LIKELY: "likely, not proven"}
    return words.get(verdict) or format_finding(verdict)


def describe_finding(point: PointEvidence) -> str:
    """What the evidence says of a speedup at one size; ``slower than the default`` included."""
    return "slower than the default" if point.is_slower else describe_verdict(point.verdict)


def _format_tuned_time(point: PointEvidence) -> str:
    """The candidate's time beside the default's: ``4.30 us``; ``~4.30 us`` where it is derived."""
    derived = "" if point.candidate_s == point.tuned_s else "~"
    return f"{derived}{text.format_duration(point.candidate_s)}"


def point_cells(point: PointEvidence) -> tuple[str, str, str, str]:
    """The cells that every table of evidence has: size, default, tuned, speedup."""
    return (
        text.format_size(point.bytes),
        text.format_duration(point.default_s),
        _format_tuned_time(point),
        text.format_speedup(point.gain),
    )


def format_outcomes(counts: Mapping[Outcome, int] | Mapping[str, int]) -> str:
    """``2 crashed, 1 node-failure``."""
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items())


def format_kept(share: float | None) -> str:
    """Which share of the gain a smaller configuration keeps; empty where nobody knows."""
    if share is None or share > _MORE_THAN_ALL:
        return "" if share is None else "more than the whole speedup kept"
    return f"{text.format_percent(share)} of the speedup kept"


def describe_dropped(ablation: Ablation, used: Collection[str] = ()) -> str:
    """``dropped by ablation: A (87 % of the speedup kept; A helped at 64 B by ...)``, if any was.

    Args:
        used: variables that are in use all the same, and not named.
    """
    dropped = [one for one in ablation.variables if not one.kept and not {*one.names} <= {*used}]
    found = [format_kept(ablation.gain_kept)]
    for one in dropped:
        if sizes := ", ".join(dict.fromkeys(text.format_sizes(s.low, s.high) for s in one.helps)):
            found.append(f"{', '.join(one.names)} helped at {sizes} by its 95 % interval")
    names = ", ".join(sorted(name for one in dropped for name in one.names))
    known = "; ".join(filter(None, found))
    return f"dropped by ablation: {names}{known and f' ({known})'}" if dropped else ""
