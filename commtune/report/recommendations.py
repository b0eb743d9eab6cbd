"""Writes the recommendations of a report by range of sizes, and the method behind them."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import geometric_mean

from commtune import formatting
from commtune.model import (
    DEFAULT,
    FEWEST_PAIRS,
    Configuration,
    PointEvidence,
    Profile,
    Verdict,
    is_searched,
)
from commtune.model.conclusion import error_share
from commtune.model.profile import ALL_SIZES, RangeBoundary
from commtune.report.points import SizePoint
from commtune.report.record import ReportedCampaign
from commtune.tuner.statistics.machine_states import ALL
from commtune.wording import describe_slower, describe_strength


@dataclass(frozen=True)
class _AnswerCard:
    """A recommendation.

    Attributes:
        configuration: the recommended one; empty if the default stays.
        command: the command that applies it; empty if there is none.
    """

    lead: str
    detail: tuple[str, ...]
    configuration: Configuration = DEFAULT
    command: str = ""


def answer_cards(record: ReportedCampaign, points: Sequence[SizePoint]) -> tuple[_AnswerCard, ...]:
    """Returns a card for each range of ascending sizes, then one for all sizes."""
    # Neighbouring ranges with the same configuration and verdict share a card.
    same = groupby(record.ranged, key=lambda profile: (profile.configuration, profile.verdict))
    ranged = [_card(record, tuple(profiles), points) for _, profiles in same]
    return (*ranged, *([_one(record)] if record.one else []))


def _card(
    record: ReportedCampaign, profiles: Sequence[Profile], points: Sequence[SizePoint]
) -> _AnswerCard:
    here = [p for p in points if p.profile in profiles and p.is_judged]
    sizes = formatting.format_sizes(profiles[0].bytes_low, profiles[-1].bytes_high)
    if profiles[0].verdict is not Verdict.FASTER:
        notes = dict.fromkeys(profile.note for profile in profiles if profile.note)
        kept = tuple(f"{_capitalize(note)}." for note in notes)
        return _AnswerCard(f"Keep the default for {sizes}.", kept)
    mean, extremes = _gain([p.evidence for p in here])
    return _AnswerCard(
        lead=f"Use this for {sizes}: {mean}.",
        detail=(
            *extremes,
            *_guarded(profiles),
            *dict.fromkeys(p.note for p in profiles if p.note),
            *_rests_on(record, profiles),
        ),
        configuration=profiles[0].configuration,
        command="" if record.is_unreal else _export(record, profiles[0].name),
    )


def _one(record: ReportedCampaign) -> _AnswerCard:
    profile = record.one
    assert profile is not None
    if profile.verdict is Verdict.WITHDRAWN:
        return _AnswerCard(
            "The one environment for all sizes was withdrawn: it is not recommended.",
            (f"{_capitalize(profile.note)}.",),
        )
    judged = [p for p in profile.points if p.gain.pairs >= FEWEST_PAIRS]
    mean, extremes = _gain(judged)
    slower = describe_slower(profile.points)
    said = f"It is {slower}." if slower else ""
    return _AnswerCard(
        lead=f"If every size has to share one environment, use this: {mean}.",
        detail=(*filter(None, (*extremes, said, profile.note)), *_rests_on(record, [profile])),
        configuration=profile.configuration,
        command="" if record.is_unreal else _export(record, ALL_SIZES),
    )


def _rests_on(record: ReportedCampaign, profiles: Sequence[Profile]) -> Iterator[str]:
    for said, group in groupby(profiles, lambda p: describe_strength(record.strengths[p.name])):
        members = list(group)
        sizes = formatting.format_sizes(members[0].bytes_low, members[-1].bytes_high)
        where = f" at {sizes}" if len(members) < len(profiles) else ""
        yield f"Rests{where} on {said}."


def _gain(points: Sequence[PointEvidence]) -> tuple[str, tuple[str, ...]]:
    """Describes the mean speedup over points, and the lowest and highest with intervals.

    Uses the points over all machine states, or if there are none those of single states.
    """
    points = [p for p in points if p.speed == ALL] or points
    if not points:
        return "faster", ()
    if len(points) == 1:
        return f"{formatting.format_speedup(points[0].gain)} as fast", ()
    low, mean = (geometric_mean(getattr(p.gain, end) for p in points) for end in ("low", "ratio"))
    least = min(points, key=lambda p: p.gain.ratio)
    most = max(points, key=lambda p: p.gain.ratio)
    pairs = formatting.format_count(min(p.gain.pairs for p in points), "pair")
    return (
        f"at least {low:.2f}x as fast on average over its sizes "
        f"({mean:.2f}x, {pairs} or more at each)",
        (f"Least: {_described(least)}. Most: {_described(most)}.",),
    )


def _described(point: PointEvidence) -> str:
    return formatting.describe_speedup(point.gain, point.bytes, point.speed)


def _capitalize(said: str) -> str:
    return f"{said[:1].upper()}{said[1:]}"


def _guarded(profiles: Sequence[Profile]) -> list[str]:
    operations = sorted({p.operation for profile in profiles for p in profile.guards})
    if not operations:
        return []
    hurt = [p for profile in profiles for p in profile.guards if p.speed == ALL and p.is_slower]
    if not hurt:
        return [f"Also measured: {', '.join(operations)}; not surely slower at any size."]
    where = sorted({f"{p.operation} of {formatting.format_size(p.bytes)}" for p in hurt})
    return [f"It slows down {', '.join(where)}."]


def _export(record: ReportedCampaign, profile: str) -> str:
    return f"commtune export {shlex.quote(f'{record.campaign.name}/{profile}')} --format sh"


def find_boundaries(profiles: Iterable[Profile]) -> tuple[RangeBoundary, ...]:
    """Returns the boundaries between size ranges of profiles, ascending, without duplicates."""
    found: dict[int, RangeBoundary] = {}
    for boundary in (boundary for profile in profiles for boundary in profile.boundaries):
        # A side with an unbounded interval has no information.
        telling = [side for side in boundary.sides if math.isfinite(side.high)]
        telling.sort(key=lambda side: (side.configuration.key, side.bytes))
        found.setdefault(boundary.below, replace(boundary, sides=tuple(telling)))
    return tuple(found[below] for below in sorted(found))


_STOPPED = {
    "decided": "it was decided",
    "futile": "the blocks left could not have decided it",
    "budget": "the planned blocks were made",
}
_UNIT = (
    "The unit of evidence is the run, one launch of the benchmark, and not the iteration: "
    "launches differ by more than the iterations inside one. Runs are compared in blocks: the "
    "default and every candidate once, close together in time, in random, balanced order. A block "
    "gives each candidate one ratio, default time over its own, so drift and slow changes of "
    "the machine meet both alike."
)


def method_paragraphs(record: ReportedCampaign) -> list[str]:
    """Returns paragraphs on the method, from what is stored about this campaign."""
    parts = (_UNIT, _timing(record), _candidates(record), _intervals(record), _looks(record),
             _again(record), _speeds(record), _threshold(record))  # fmt: skip
    return [part for part in parts if part]


def _timing(record: ReportedCampaign) -> str:
    """Describes how operations are timed, if the campaign chose it."""
    chosen = record.campaign.settings.get("timing_choice")
    return f"{_capitalize(chosen['said'])}." if chosen else ""


def _candidates(record: ReportedCampaign) -> str:
    confirmed = record.conclusion.confirmed
    tried = sum(map(is_searched, record.origins))
    said = (
        f"The search tried {tried:,} configuration{'' if tried == 1 else 's'} besides the "
        "default. Its scores choose candidates and are reported nowhere as speedups: the best of "
        "many noisy runs looks better than it is."
    )
    if not confirmed:
        return f"{said} Speedups come from fresh blocks that the search never saw."
    ends = Counter((c.blocks, _STOPPED.get(c.stopped, c.stopped or "the end")) for c in confirmed)
    blocks = [f"{number} in {made} blocks, until {why}" for (made, why), number in ends.items()]
    return (
        f"{said} Speedups come from fresh blocks that the search never saw, of "
        f"{formatting.format_count(len(confirmed), 'candidate')}: {'; '.join(blocks)}."
    )


def _intervals(record: ReportedCampaign) -> str:
    level = record.held_against("level")
    if level is None:
        return ""
    named = record.conclusion.method.interval
    each = {p.level for p in record.profiles}
    is_corrected = bool(each) and min(each) > level
    single = f" (each single one at {_format_confidence(min(each))})" if is_corrected else ""
    made = f" Each is {named}." if named else ""
    return (
        f"All intervals of the confirmation together hold with "
        f"{_format_confidence(level)}{single}: "
        f"the level is corrected for every candidate, size and look.{made} An interval allows "
        "for the variation between sessions too, which more pairs don't reduce. It is about "
        "the mean ratio on this machine, under the load that it had, with this "
        f"software.{_alone(record)}"
    )


def _alone(record: ReportedCampaign) -> str:
    speeds = {point.speed for profile in record.profiles for point in profile.points}
    is_mixed = ALL in speeds and len(speeds) > 1
    level = record.held_against("level")
    return f" {formatting.each_by_itself(level)}" if is_mixed else ""


def _looks(record: ReportedCampaign) -> str:
    looks = record.conclusion.method.looks
    if not looks:
        return ""
    if looks == 1:
        return "The evidence was looked at once, at the end."
    return (
        f"The evidence was looked at up to {looks} times, at points that were fixed before. Each "
        "look has its own share of the error rate, so stopping early is paid for."
    )


def _again(record: ReportedCampaign) -> str:
    """Describes the error rate that repeated confirmations may spend."""
    number = record.conclusion.method.confirmations
    if number < 2:
        return ""
    return (
        f"This was confirmation number {number} of the campaign, in fresh blocks. It may spend "
        f"{formatting.format_percent(error_share(number - 1))} of the error rate, so that "
        "asking again until the answer pleases finds no speedups that are not there; its "
        "intervals are wider for that."
    )


def _speeds(record: ReportedCampaign) -> str:
    limits = record.speeds.thresholds_s
    if not limits:
        return ""
    between = " and ".join(formatting.format_duration(limit) for limit in limits)
    return (
        f"The machine alternated between {len(limits) + 1} states, told apart by a core-to-core "
        f"round trip around each size (they part at {between}). No setting can change that round "
        "trip, so comparing within a state favours none."
    )


def _threshold(record: ReportedCampaign) -> str:
    least = record.held_against("minimum_gain")
    tolerance = record.held_against("tolerance")
    if least is None:
        return ""
    said = (
        "A configuration is recommended where the lower end of its interval is above "
        f"1 + {formatting.format_percent(least)}."
    )
    if tolerance is not None:
        said += (
            " A size that shows nothing, between sizes that share a configuration, goes with them "
            f"if the lower end there is not below 1 - {formatting.format_percent(tolerance)} "
            f"and the upper end "
            "not below 1. One environment for all sizes must, besides, be at no measured size "
            f"slower than the default by more than {formatting.format_percent(tolerance)}."
        )
    return said


def missing_parts(record: ReportedCampaign) -> list[str]:
    """Lists what this report can't show, with reasons."""
    said = []
    if not record.concluded:
        said.append(
            "No conclusion is stored: the campaign has not come to its end. "
            "So there is nothing on ablations, the minimum detectable effect, and "
            "the trade-off between one environment and several."
        )
    if not record.profiles:
        said.append("There are no profiles yet: nothing was confirmed.")
    if record.campaign.finished is None:
        said.append("The campaign is not finished; the same 'commtune tune' continues it.")
    if record.runs and all(run.other_load is None for run in record.runs):
        said.append("Nothing is known about background load during the runs.")
    return said


def _format_confidence(level: float) -> str:
    """Formats a confidence level without rounding it to 100 %: ``95%``, ``99.9%``."""
    return f"{100 * level:.6g}%"
