"""A whole campaign, killed at random moments, over the real store: nothing said changes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from killed_campaigns import assert_sound, campaign, unharmed


def test_the_campaign_finds_what_is_there() -> None:
    assert_sound(unharmed())
    assert unharmed().calls > 100


@pytest.mark.parametrize("moment", range(15))
def test_a_kill_at_a_random_moment_changes_nothing_that_is_said(
    moment: int, tmp_path: Path
) -> None:
    # One in each fifteenth of the campaign, so that every phase is met.
    step = unharmed().calls / 15
    after = 1 + int(step * (moment + random.Random(moment).random()))
    assert_sound(campaign(tmp_path, [after]))


def test_many_kills_of_one_campaign(tmp_path: Path) -> None:
    rng = random.Random(5)
    assert_sound(campaign(tmp_path, [rng.randrange(3, 60) for _ in range(12)]), kills=12)
