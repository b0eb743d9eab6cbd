"""``commtune status``."""

from __future__ import annotations

import json
import time
from dataclasses import asdict

from commtune import wiring
from commtune.commands import text
from commtune.db.records import CampaignSummary
from commtune.db.store import Store


def run(db: str | None, *, json_output: bool) -> None:
    """Prints one line a campaign, newest first."""
    with wiring.database(db) as opened:
        campaigns = Store(opened).campaigns()
    if json_output:
        print(json.dumps([asdict(campaign) for campaign in campaigns], indent=2, default=dict))
        return
    if not campaigns:
        print("no campaigns yet; start one with: commtune tune")
        return
    header = ("campaign", "state", "trials", "runs", "failed", "measured", "surest gain")
    print(text.columns(header, [_row(c) for c in campaigns], right="trials,runs,failed"))


def _row(campaign: CampaignSummary) -> tuple[str, ...]:
    failed = sum(n for outcome, n in campaign.outcomes.items() if outcome != "ok")
    return (
        campaign.name + _made_up(campaign),
        _state(campaign),
        str(campaign.trials),
        str(sum(campaign.outcomes.values())),
        str(failed),
        text.wall(campaign.wall_s),
        _gain(campaign),
    )


def _made_up(campaign: CampaignSummary) -> str:
    """What must be said of a campaign that measured nothing."""
    if recording := campaign.settings.get("replayed"):
        return f" (replayed from {recording})"
    return " (simulated)" if campaign.simulated else ""


def _state(campaign: CampaignSummary) -> str:
    if campaign.locked_by:
        return f"running ({campaign.locked_by})"
    if campaign.finished is not None:
        return f"finished {_ago(campaign.finished)} ago"
    return "stopped"


def _ago(moment: float) -> str:
    return text.wall(time.time() - moment)


def _gain(campaign: CampaignSummary) -> str:
    best = campaign.best
    if best is None:
        return "none confirmed"
    speed = "" if best.speed == "all" else f" ({best.speed} speed)"
    return f"{best.ratio:.2f}x [{best.low:.2f}, {best.high:.2f}] at {text.size(best.bytes)}{speed}"
