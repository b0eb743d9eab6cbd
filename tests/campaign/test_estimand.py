"""What speedups are about: a key of the campaign file."""

from __future__ import annotations

from pathlib import Path

import pytest

from commtune.campaign.loading import parse_campaign
from commtune.errors import CampaignError
from commtune.model import Estimand

TEXT = "campaign: 1\nname: slow-runs\nspace: mpich\n"


@pytest.mark.parametrize("word", ["median", "mean"])
def test_what_speedups_are_about_is_a_key(word: str, tmp_path: Path) -> None:
    assert parse_campaign(TEXT, tmp_path).plan.estimand is Estimand.MEDIAN
    assert parse_campaign(f"{TEXT}estimand: {word}\n", tmp_path).plan.estimand == word


def test_a_95th_percentile_is_refused_with_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(CampaignError) as refused:
        parse_campaign(f"{TEXT}estimand: p95\n", tmp_path)
    assert "59 launches" in str(refused.value) and "'mean'" in (refused.value.hint or "")


def test_other_words_are_refused_with_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(CampaignError, match="'average' is not a known value"):
        parse_campaign(f"{TEXT}estimand: average\n", tmp_path)
