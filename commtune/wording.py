"""Words evidence the same in every table, sentence and file.

The tables of ``tune``, ``best``, ``verify``, reports and exported files use these cells. Imports
nothing slow, since ``commtune best`` must start fast.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from commtune import formatting as text
from commtune.model import Outcome, PointEvidence, Strength, Tail, Verdict
from commtune.tuner.statistics.machine_states import ALL

if TYPE_CHECKING:
    from commtune.model.conclusion import Ablation, FurtherRuns

#: The word for the verdict ``undecided`` in output, stored data and JSON.
INCONCLUSIVE = "inconclusive"
#: From this share on, a smaller configuration keeps more than the whole gain. That occurs if
#: ablation tried other values.
_MORE_THAN_ALL = 1.05
#: Conditions on what a profile rests on (``Strength``): their parameters and options, in words.
LEAST_STRENGTH = {
    "min_pairs": "with so many pairs at each size, at least",
    "min_days": "confirmed or verified on so many days, at least",
    "min_sessions": "confirmed or verified in so many sessions, at least",
    "min_nodes": "confirmed or verified on so many nodes, at least",
}


def format_simultaneous(level: float | None, each: float = 0.0) -> str:
    """Words the level of confidence intervals: ``simultaneous 95 % CI``.

    Args:
        level: the level at which all intervals of a campaign hold simultaneously; ``None`` if
            unknown.
        each: the level of each interval, used if ``level`` is unknown.
    """
    return (
        f"{100 * each:.4g} % CI each" if level is None else f"simultaneous {100 * level:.6g} % CI"
    )


def format_common_level(levels: Collection[float | None]) -> str:
    """Words the level of the intervals of several campaigns in one table."""
    level = next(iter(levels), None)
    is_common = level is not None and set(levels) == {level}
    return format_simultaneous(level) if is_common else "simultaneous CI of its campaign"


def point_columns(interval: str) -> tuple[str, str, str, str]:
    """Returns the headers of ``point_cells``.

    Args:
        interval: the level of the intervals, as ``format_simultaneous`` words it.
    """
    return ("size", "default", "candidate", f"speedup, {interval}")


def format_finding(finding: StrEnum | str) -> str:
    """Words a verdict or finding."""
    return INCONCLUSIVE if finding == Verdict.UNDECIDED else str(finding)


def describe_verdict(verdict: StrEnum | str) -> str:
    """Words the verdict on a speedup: ``faster``, ``speedup ruled out``, ``inconclusive``, ..."""
    words = {"default": "speedup ruled out", "likely": "likely, not proven"}
    return words.get(verdict) or format_finding(verdict)


def describe_strength(strength: Strength) -> str:
    """Words what a profile rests on: ``12 pairs or more; 2 days, 2 sessions, 3 nodes; ...``."""
    counts = {"day": strength.days, "session": strength.sessions, "node": strength.nodes}
    seen = ", ".join(text.format_count(count, what) for what, count in counts.items())
    rests_on = f"{text.format_count(strength.pairs, 'pair')} or more at each size; {seen}"
    if not strength.verifications:
        return f"{rests_on}; no verification"
    last = ""
    if strength.last_finding is not None and strength.last_verified is not None:
        last = f", last {text.format_day(strength.last_verified)}: {strength.last_finding}"
    return f"{rests_on}; {text.format_count(strength.verifications, 'verification')}{last}"


def describe_finding(point: PointEvidence) -> str:
    """Words the verdict at one size, which may also be ``slower than the default``."""
    return "slower than the default" if point.is_slower else describe_verdict(point.verdict)


def describe_slower(points: Iterable[PointEvidence]) -> str:
    """Words the sizes at which a candidate is slower; empty without any.

    These are shown over all machine states: from a single one nothing is claimed.
    """
    slower = [text.format_size(p.bytes) for p in points if p.speed == ALL and p.is_slower]
    return f"slower than the default at {', '.join(slower)}" if slower else ""


def _format_candidate_time(point: PointEvidence) -> str:
    """Formats the candidate's time: ``4.30 us``, or ``~4.30 us`` if it is derived."""
    derived = "" if point.candidate_s == point.tuned_s else "~"
    return f"{derived}{text.format_duration(point.candidate_s)}"


def describe_use(profile: str, finding: str = "", *, withdrawn: str = "") -> str:
    """Words what to use at a size: a profile, or else the default, if its name is empty.

    Args:
        finding: what was found there, if that doesn't show it. By its interval alone, as it is
            printed, an inconclusive size can look like a decided one.
        withdrawn: the name of a profile that is no longer recommended there.
    """
    if withdrawn:
        return f"the default, {withdrawn} was withdrawn"
    return ", ".join(filter(None, [profile or "the default", finding]))


def suggest_verification(campaign: str, profile: str, program: str = "commtune") -> str:
    """Returns how a profile that was withdrawn is measured again."""
    return f"measure it again: {program} verify {shlex.quote(f'{campaign}/{profile}')}"


def list_warnings(site: str, *, simulated: bool) -> list[str]:
    """Returns why a result says nothing about this site, or about any real system."""
    said = [f"measured at {site}: says nothing about this site"] if site else []
    if simulated:
        said.append("SIMULATED OR REPLAYED: says nothing about a real system")
    return said


def point_cells(point: PointEvidence) -> tuple[str, str, str, str]:
    """Returns the cells of all tables of evidence, in the order of ``point_columns``."""
    return (
        text.format_size(point.bytes),
        text.format_duration(point.default_s),
        _format_candidate_time(point),
        text.format_speedup(point.gain),
    )


def tail_columns() -> tuple[str, str, str]:
    """Returns the headers of ``tail_cells``: what the ratios are of, and slow runs."""
    means = f"speedup of mean times, {format_simultaneous(None, 0.95)}"
    return (means, "of 95th percentiles", "slow runs")


def tail_cells(tail: Tail) -> tuple[str, str, str]:
    """Returns the cells of all tables of tails, in the order of ``tail_columns``."""
    slow = f"{tail.slow_runs} of {tail.pairs} (default: {tail.default_slow_runs})"
    return (text.format_speedup(tail.mean), f"{text.format_ratio(tail.p95_ratio)}x", slow)


def format_outcomes(counts: Mapping[Outcome, int] | Mapping[str, int]) -> str:
    """Words the counts of outcomes: ``2 crashed, 1 node-failure``."""
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items())


def format_kept(share: float | None) -> str:
    """Words the share of the gain that a smaller configuration keeps; empty if unknown."""
    if share is None or share > _MORE_THAN_ALL:
        return "" if share is None else "more than the whole speedup kept"
    return f"{text.format_percent(share)} of the speedup kept"


def describe_dropped(ablation: Ablation, used: Collection[str] = ()) -> str:
    """Words what ablation dropped, if anything:

    ``dropped by ablation in 9 blocks: A (87 % of the speedup kept; A helped at 64 B by ...)``.

    Args:
        used: variables that are in use anyway, and so are not named.
    """
    dropped = [one for one in ablation.variables if not one.kept and not {*one.names} <= {*used}]
    found = [format_kept(ablation.gain_kept)]
    for one in dropped:
        if sizes := ", ".join(dict.fromkeys(text.format_sizes(s.low, s.high) for s in one.helps)):
            found.append(f"{', '.join(one.names)} helped at {sizes} by its 95 % interval")
    names = ", ".join(sorted(name for one in dropped for name in one.names))
    known = "; ".join(filter(None, found))
    made = f" in {text.format_count(ablation.blocks, 'block')}" if ablation.blocks else ""
    return f"dropped by ablation{made}: {names}{known and f' ({known})'}" if dropped else ""


def describe_further_runs(more: FurtherRuns) -> str:
    """Words what would decide an inconclusive size."""
    time = text.format_wall_time(more.seconds)
    confirmation = f"a further confirmation of about {more.runs:,} runs ({time})"
    told = text.describe_deciding_runs(more.runs, confirmation)
    return ": ".join(filter(None, [more.why, told]))
