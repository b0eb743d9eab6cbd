"""How the decision was made, in words for somebody who doubts it."""

from __future__ import annotations

from collections import Counter

from commtune import formatting
from commtune.model.conclusion import error_share
from commtune.report.record import CampaignRecord
from commtune.tuner.execution.runner import is_searched
from commtune.tuner.statistics.machine_states import ALL

_STOPPED = {
    "decided": "it was decided",
    "futile": "the blocks left could not have decided it",
    "budget": "the planned blocks were made",
}
_UNIT = (
    "The unit of evidence is the run, one launch of the benchmark, and not the iteration: "
    "launches differ by more than the iterations inside one. Runs are compared in blocks: the "
    "default and every candidate once, close together in time, in random order. A block gives "
    "each candidate one ratio, default time over its own, so drift and slow changes of "
    "the machine meet both alike."
)


def method_paragraphs(record: CampaignRecord) -> list[str]:
    """The method, one thought a paragraph; only what is stored of this campaign."""
    parts = (_UNIT, _candidates(record), _intervals(record), _looks(record), _again(record),
             _speeds(record), _threshold(record))  # fmt: skip
    return [part for part in parts if part]


def _candidates(record: CampaignRecord) -> str:
    confirmed = record.conclusion.confirmed
    tried = sum(is_searched(trial.origin) for trial in record.trials)
    said = (
        f"The search tried {tried:,} configuration{'' if tried == 1 else 's'} besides the "
        "default. Its scores choose candidates and are reported nowhere as speedups: the best of "
        "many noisy runs looks better than it is."
    )
    if not confirmed:
        return f"{said} Speedups come from fresh blocks that the search never saw."
    ends = Counter((c.blocks, _STOPPED.get(c.stopped, c.stopped or "the end")) for c in confirmed)
    blocks = [f"{number} in {made} blocks, until {why}" for (made, why), number in ends.items()]
    count = len(confirmed)
    return (
        f"{said} Speedups come from fresh blocks that the search never saw, of {count} "
        f"candidate{'s' if count != 1 else ''}: {'; '.join(blocks)}."
    )


def _intervals(record: CampaignRecord) -> str:
    level = record.held_against("level")
    if level is None:
        return ""
    named = record.conclusion.method.interval
    each = {p.level for p in record.profiles}
    is_corrected = bool(each) and min(each) > level
    single = (
        f" (each single one at {formatting.format_confidence(min(each))})" if is_corrected else ""
    )
    made = f" Each is {named}." if named else ""
    return (
        f"All intervals of the confirmation together hold with "
        f"{formatting.format_confidence(level)}{single}: "
        f"the level is corrected for every candidate, size and look.{made} An interval speaks of "
        "the mean ratio on this machine, under the load that it had, with this "
        f"software.{_alone(record)}"
    )


def _alone(record: CampaignRecord) -> str:
    speeds = {point.speed for profile in record.profiles for point in profile.points}
    is_mixed = ALL in speeds and len(speeds) > 1
    level = record.held_against("level")
    return f" {formatting.each_by_itself(level)}" if is_mixed else ""


def _looks(record: CampaignRecord) -> str:
    looks = record.conclusion.method.looks
    if not looks:
        return ""
    if looks == 1:
        return "The evidence was looked at once, at the end."
    return (
        f"The evidence was looked at up to {looks} times, at points that were fixed before. Each "
        "look has its own share of the error rate, so stopping early is paid for."
    )


def _again(record: CampaignRecord) -> str:
    """What asking more than once costs."""
    number = record.conclusion.method.confirmations
    if number < 2:
        return ""
    return (
        f"This was confirmation number {number} of the campaign, in fresh blocks. It may spend "
        f"{formatting.format_percent(error_share(number - 1))} of the error rate, so that "
        "asking again until the answer pleases finds no speedups that are not there; its "
        "intervals are wider for that."
    )


def _speeds(record: CampaignRecord) -> str:
    limits = record.speeds.thresholds_s
    if not limits:
        return ""
    between = " and ".join(formatting.format_duration(limit) for limit in limits)
    return (
        f"The machine alternated between {len(limits) + 1} states, told apart by a core-to-core "
        f"round trip around each size (they part at {between}). No setting can change that round "
        "trip, so comparing within a state favours none."
    )


def _threshold(record: CampaignRecord) -> str:
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


def missing_parts(record: CampaignRecord) -> list[str]:
    """What this report can't show, and why."""
    said = []
    if not record.concluded:
        said.append(
            "No conclusion is stored: the campaign has not come to its end, or an older version "
            "made it. So there is nothing on ablations, the minimum detectable effect, and "
            "the trade-off between one environment and several."
        )
    if not record.profiles:
        said.append("There are no profiles yet: nothing was confirmed.")
    if record.campaign.finished is None:
        said.append("The campaign is not finished; the same 'commtune tune' goes on with it.")
    if record.runs and all(run.other_load is None for run in record.runs):
        said.append("Nothing is known of other programs' load during the runs.")
    return said
