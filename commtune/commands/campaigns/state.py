"""What a campaign's state, its kind and its best speedup are called, wherever they are printed."""

from __future__ import annotations

import time

from commtune import formatting as text
from commtune.app.campaigns import stored
from commtune.app.campaigns.stored import CampaignState, CampaignSummary
from commtune.app.profiles.nominal_share import Share
from commtune.model import JobKind, JobStage


def describe_kind(campaign: CampaignSummary) -> str:
    """What must be said of a campaign that measured nothing, no real nodes, or not here."""
    return _describe_runs(campaign) + (f" (of {campaign.site})" if campaign.site else "")


def _describe_runs(campaign: CampaignSummary) -> str:
    if nodes := campaign.settings.get("emulated_nodes"):
        return f" ({text.describe_emulated(nodes)})"
    if recording := campaign.settings.get("replayed"):
        return f" (replayed from {recording})"
    return " (simulated)" if campaign.simulated else ""


def describe_state(campaign: CampaignSummary) -> str:
    """The state, and by whom or since when."""
    if campaign.state is CampaignState.RUNNING:
        return f"running ({campaign.locked_by})"
    for job in campaign.jobs:
        if job.kind is JobKind.ALLOCATION and job.stage is JobStage.SUBMITTED:
            word = job.word or "submitted"
            return f"{word} (job {job.number})" if job.number else word
    if campaign.state is CampaignState.FINISHED and campaign.finished is not None:
        return f"finished {describe_ago(campaign.finished)} ago"
    return str(campaign.state)


def describe_ago(moment: float) -> str:
    """How long ago a moment (seconds since 1970) was."""
    return text.format_wall_time(time.time() - moment)


def describe_speedup(campaign: CampaignSummary, db: str | None) -> str:
    """The best confirmed speedup, with its interval, pairs and share of the nominal bandwidth."""
    said, share = stored.describe_best_gain(campaign.best), Share.of_best(campaign, db)
    return f"{said}, {share}" if share else said
