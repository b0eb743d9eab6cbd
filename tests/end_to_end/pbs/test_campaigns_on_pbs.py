"""A campaign of which each block is a job of PBS's."""

from __future__ import annotations

from campaign_texts import ONE_BLOCK
from pbs_campaigns import OnPbs


def test_a_campaign_comes_to_its_end(campaign: OnPbs) -> None:
    campaign.write(ONE_BLOCK)
    with campaign.tuning() as tuning:
        tuning.ended()
    campaign.check_whole(lost=False)
    assert campaign.outcomes() == {"ok": 4}
