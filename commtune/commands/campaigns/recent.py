"""``commtune status --since``: what happened, on one screen."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from datetime import datetime
from enum import IntEnum
from typing import Any

from commtune import formatting as text
from commtune.app.campaigns.recent import RecentCampaign, list_recent, parse_since
from commtune.app.campaigns.stored import CampaignSummary
from commtune.commands.campaigns.state import describe_kind, describe_speedup, describe_state
from commtune.commands.options import print_json
from commtune.model import Verdict

#: Campaigns that are told one by one: what a screen has room for.
_MOST = 7


class _ExitCode(IntEnum):
    """What a script in the morning wants to know."""

    FINE = 0
    NOTHING_RAN = 4
    LOOK = 20


def print_recent(since: str, db: str | None, *, json_output: bool) -> None:
    """Prints the summary, and exits with the code that says whether to look."""
    now = datetime.now()
    moment = parse_since(since, now)
    found = list_recent(moment, db)
    if json_output:
        print_json(_plain(found, moment, now.timestamp()))
    else:
        print(_describe(found, moment, now.timestamp(), db))
    sys.exit(_exit_code(found))


def _exit_code(found: Sequence[RecentCampaign]) -> _ExitCode:
    if not found:
        return _ExitCode.NOTHING_RAN
    return _ExitCode.LOOK if any(one.need for one in found) else _ExitCode.FINE


def _describe(found: Sequence[RecentCampaign], since: float, until: float, db: str | None) -> str:
    window = f"commtune, {_minute(since)} to {_minute(until)}"
    if not found:
        return f"{window}: no campaign ran"
    # Those that somebody should look at first.
    ordered = sorted(found, key=lambda one: not one.need)
    measured = text.format_wall_time(sum(one.campaign.wall_s for one in found))
    lines = [
        f"{window}: {text.format_count(len(found), 'campaign')}, "
        f"{_runs([one.campaign for one in found])}, {measured} measured"
    ]
    for one in ordered[:_MOST]:
        lines += _lines(one, db)
    if rest := ordered[_MOST:]:
        lines.append(f"and {text.format_count(len(rest), 'further campaign')}: commtune status")
    return "\n".join(lines)


def _lines(one: RecentCampaign, db: str | None) -> list[str]:
    campaign = one.campaign
    named = f"{campaign.name}{describe_kind(campaign)}"
    lines = [f"{named}: {describe_state(campaign)}; {_runs([campaign])}"]
    if one.need:
        said = f"; the last job said: {one.words}" if one.words else ""
        lines.append(f"  LOOK: {one.need}{said}")
    if one.profiles:
        lines.append(f"  {_result(one, db)}")
    return lines


def _result(one: RecentCampaign, db: str | None) -> str:
    campaign = one.campaign
    proven = [p for p in one.profiles if p.verdict == Verdict.FASTER]
    gone = sum(p.verdict == Verdict.WITHDRAWN for p in one.profiles)
    withdrawn = f"; {text.format_count(gone, 'profile')} withdrawn" if gone else ""
    if not proven or campaign.best is None:
        likely = sum(p.verdict == Verdict.LIKELY for p in one.profiles)
        more = f"; {text.format_count(likely, 'likely speedup')}" if likely else ""
        return f"keep the default{more}{withdrawn}"
    count = text.format_count(len(proven), "profile")
    best = f"{campaign.name}/{campaign.best.profile}"
    return f"{count} faster than the default; {best}: {describe_speedup(campaign, db)}{withdrawn}"


def _runs(campaigns: Sequence[CampaignSummary]) -> str:
    runs, failed, lost = (
        sum(getattr(campaign, name) for campaign in campaigns)
        for name in ("runs", "failed", "lost")
    )
    counted = text.format_count(runs, "run")
    return f"{counted} ({failed} failed, {lost} lost)" if failed or lost else counted


def _minute(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))


def _plain(found: Sequence[RecentCampaign], since: float, until: float) -> dict[str, Any]:
    return {
        "since": since,
        "until": until,
        "exit_code": int(_exit_code(found)),
        "campaigns": [
            {
                "campaign": one.campaign.name,
                "simulated": one.campaign.simulated,
                "state": str(one.campaign.state),
                "look": str(one.need) or None,
                "last_job_said": one.words,
                "outcomes": dict(one.campaign.outcomes),
                "runs": one.campaign.runs,
                "failed": one.campaign.failed,
                "lost": one.campaign.lost,
                "measured_s": one.campaign.wall_s,
                "finished": one.campaign.finished,
                "profiles": [
                    {"profile": f"{p.campaign}/{p.name}", "verdict": str(p.verdict)}
                    for p in one.profiles
                ],
                "best": _best(one),
            }
            for one in found
        ],
    }


def _best(one: RecentCampaign) -> dict[str, Any] | None:
    best = one.campaign.best
    if best is None or best.profile not in {p.name for p in one.profiles}:
        return None
    names = ("profile", "operation", "bytes", "ratio", "low", "high", "pairs")
    return {name: getattr(best, name) for name in names}
