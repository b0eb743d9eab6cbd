"""What speedups are about: a key of the campaign file."""

from __future__ import annotations

from pathlib import Path

import pytest

from commtune.campaign.loading import parse_campaign
from commtune.errors import CampaignError
from commtune.model import Estimand, Timing

TEXT = "campaign: 1\nname: slow-runs\nspace: mpich\n"


@pytest.mark.parametrize("word", ["median", "mean", "p95"])
def test_what_speedups_are_about_is_a_key(word: str, tmp_path: Path) -> None:
    assert parse_campaign(TEXT, tmp_path).plan.estimand is Estimand.MEDIAN
    assert parse_campaign(f"{TEXT}estimand: {word}\n", tmp_path).plan.estimand == word


@pytest.mark.parametrize(("timing", "samples"), [("", 60), ("timing: {max_samples: 25}\n", 25)])
def test_95th_percentiles_are_of_the_same_number_of_samples_in_every_run(
    timing: str, samples: int, tmp_path: Path
) -> None:
    spec = parse_campaign(f"{TEXT}{timing}estimand: p95\n", tmp_path)
    asked = spec.plan.timing
    assert (asked.percentile, asked.min_samples, asked.max_samples) == (95, samples, samples)
    assert asked.operations == 1
    # Nobody chooses batches for it.
    assert spec.timing_named
    assert Timing(**spec.plan.comparable({})["timing"]) == asked


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("timing: {max_samples: 19}\n", "20 samples or more"),
        ("workload: {backend: xccl}\ntiming: {mode: batched}\n", "hides its slowest operations"),
        ("benchmark: {command: [sh], output: osu}\n", "prints no time of each operation"),
    ],
)
def test_what_has_no_95th_percentile_is_refused(more: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(CampaignError, match=said):
        parse_campaign(f"{TEXT}{more}estimand: p95\n", tmp_path)


def test_other_words_are_refused_with_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(CampaignError, match="'average' is not a known value"):
        parse_campaign(f"{TEXT}estimand: average\n", tmp_path)
