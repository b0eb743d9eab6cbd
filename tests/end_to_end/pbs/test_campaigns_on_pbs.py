"""Campaigns of which each block is a job of PBS's, and what a night brings to them."""

from __future__ import annotations

from pbs_campaigns import ONE_BLOCK, OnPbs, on_pbs


def test_a_campaign_comes_to_its_end(campaign: OnPbs) -> None:
    campaign.write(on_pbs(ONE_BLOCK, campaign.folder))
    with campaign.tuning() as tuning:
        tuning.ended()
    campaign.check_whole(lost=False)
    assert campaign.outcomes() == {"ok": 4}
