"""What a report works out before it is drawn."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import database_values as given
import pytest
from stored_campaigns import Made
from stored_conclusions import IDLE

from commtune import formatting
from commtune.db.codec import load_model
from commtune.db.queries.description import describe_campaign
from commtune.db.queries.profiles import load_profiles
from commtune.db.storage.store import Store
from commtune.model import Interval, PointEvidence, Verdict, VerificationVerdict
from commtune.model.conclusion import Conclusion
from commtune.model.profile import ALL_SIZES
from commtune.report.figures.evidence import _ticks
from commtune.report.points import size_points
from commtune.report.recommendations import (
    _format_confidence,
    answer_cards,
    method_paragraphs,
)
from commtune.report.record import read_record
from commtune.wording import point_cells


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.02, "2 %"), (0.042, "4.2 %"), (0.39, "39 %"), (0.0996, "10 %"), (0, "0 %"),
     (-0.004, "-0.4 %"), (0.00012, "0.01 %")],
)  # fmt: skip
def test_shares_have_two_digits(share: float, said: str) -> None:
    assert formatting.format_percent(share) == said


@pytest.mark.parametrize(
    ("ratio", "said"), [(1.414, "1.41"), (0.1, "0.10"), (0.00421, "0.0042"), (0.0, "0.00")]
)
def test_small_ratios_are_told_from_nothing(ratio: float, said: str) -> None:
    assert formatting.format_ratio(ratio) == said


@pytest.mark.parametrize(
    ("level", "said"), [(0.95, "95%"), (0.999, "99.9%"), (1 - 1e-5, "99.999%"), (0.5, "50%")]
)
def test_no_confidence_is_said_to_be_a_certainty(level: float, said: str) -> None:
    assert _format_confidence(level) == said
    assert said.replace("%", " % each") in formatting.each_by_itself(level)
    assert "%" not in formatting.each_by_itself(None)


def test_no_conclusion_is_the_empty_one() -> None:
    assert load_model(Conclusion, {"version": 1}) == Conclusion()


def test_nulls_everywhere_are_taken() -> None:
    keys = (
        "replayed", "method", "budget", "spent", "noise", "confirmed", "ablations", "answers",
        "detectable", "more", "not_followed", "set_aside",
    )  # fmt: skip
    nothing = dict.fromkeys(keys)
    assert load_model(Conclusion, nothing) == Conclusion()
    row = {"bytes": 8, "speed": None, "share": None, "spread": None, "runs": None,
           "drift_per_hour": None}  # fmt: skip
    (noise,) = load_model(Conclusion, {"noise": [row]}).noise
    assert (noise.speed, noise.runs, noise.spread) == ("all", 0, None)


def test_open_ends_of_intervals_come_as_null() -> None:
    point = {"bytes": 8, "speed": "all", "ratio": 1.1, "low": None, "high": None, "pairs": 2}
    unknown = {**point, "ratio": None}
    single = {**point, "pairs": 1}
    (confirmed,) = load_model(
        Conclusion, {"confirmed": [{"points": [point, unknown, single]}]}
    ).confirmed
    (effect,) = confirmed.effects
    assert effect.gain == Interval(1.1, 0.0, math.inf, 2)


def test_sizes_where_a_variable_helps_are_put_together() -> None:
    ratios = {8: 0.9, 64: 1.0, 1024: 1.2, 4096: 1.3, 65536: 1.0, 1 << 20: 1.1}
    points = [{"bytes": size, "speed": "all", "ratio": r, "low": r - 0.05, "high": r + 0.05,
               "pairs": 9} for size, r in ratios.items()]  # fmt: skip
    row = {"names": ["A"], "values": {"A": "1"}, "kept": True, "points": points}
    (ablation,) = load_model(Conclusion, {"ablations": [{"variables": [row]}]}).ablations
    (variable,) = ablation.variables
    assert [(s.low, s.high, s.least, s.most) for s in variable.helps] == [
        (1024, 4096, 1.2, 1.3),
        (1 << 20, 1 << 20, 1.1, 1.1),
    ]
    assert [(s.low, s.high) for s in variable.hurts] == [(8, 8)]
    assert variable.label == "A=1"


@pytest.mark.parametrize(("low", "high"), [(0.97, 1.04), (0.8, 1.6), (0.3, 9), (0.99, 1.01)])
def test_ticks_hold_1_and_keep_apart(low: float, high: float) -> None:
    ticks = _ticks(low, high)
    assert 1 in ticks and len(ticks) >= 3
    assert all(low <= tick <= high for tick in ticks)
    gaps = [math.log(b / a) for a, b in pairwise(ticks)]
    assert min(gaps) >= math.log(high / low) / 8


def test_what_later_phases_made_was_not_tried_by_the_search(store: Store, url: str) -> None:
    campaign_id = Made(trials=1, blocks=0).store(store)
    store.add_trial(campaign_id, 2, IDLE, "ablated")
    said = "\n".join(method_paragraphs(read_record(store, url, describe_campaign(url, "made-up"))))
    assert "The search tried 1 configuration besides the default." in said
    assert "timed" not in said


def test_what_was_withdrawn_is_not_recommended(store: Store, url: str) -> None:
    campaign_id = Made(trials=5).store(store)
    ranges = load_profiles(url, "made-up")
    whole = [replace(one, name=ALL_SIZES) for one in ranges if one.verdict is Verdict.FASTER][:1]
    store.save_profiles(campaign_id, [*ranges, *whole])

    def cards() -> list[bool]:
        record = read_record(store, url, describe_campaign(url, "made-up"))
        found = answer_cards(record, size_points(record))
        return [bool(card.configuration or card.command) for card in found]

    assert cards()[-1]
    record = read_record(store, url, describe_campaign(url, "made-up"))
    used = [card for card in answer_cards(record, size_points(record)) if card.command]
    assert len(used) > 1
    assert all(card.detail[-1].endswith("session, 1 node; no verification.") for card in used)
    for profile in load_profiles(url, "made-up"):
        worse = given.verification(
            profile=profile.name,
            configuration=profile.configuration,
            finding=VerificationVerdict.WORSE,
        )
        store.add_verification(campaign_id, worse)
    assert not any(cards())


@pytest.mark.parametrize(("speed", "is_said"), [("all", True), ("slow", False)])
def test_slower_is_no_claim_from_a_single_machine_state(
    store: Store, url: str, speed: str, is_said: bool
) -> None:
    slower = replace(given.point(8, speed), gain=Interval(0.98, 0.97, 0.99, 12))
    guards = (replace(slower, operation="broadcast"),)
    points = (given.point(1024, "all"), slower)
    one = given.profile(ALL_SIZES, points=points)
    campaign_id = Made(trials=5).store(store)
    store.save_profiles(campaign_id, [given.profile("p", guards=guards), one])
    record = read_record(store, url, describe_campaign(url, "made-up"))
    ranged, whole = answer_cards(record, size_points(record))
    assert ("It is slower than the default at 8 B." in whole.detail) == is_said
    assert ("It slows down broadcast of 8 B." in ranged.detail) == is_said


def test_how_a_timing_was_chosen_is_a_part_of_the_method(store: Store, url: str) -> None:
    chosen = {"said": "operations are timed one by one: so", "spent_s": 0.0}
    Made(trials=1, blocks=0, settings={"timing_choice": chosen}).store(store)
    said = method_paragraphs(read_record(store, url, describe_campaign(url, "made-up")))
    assert "Operations are timed one by one: so." in said


def test_times_that_stand_beside_a_ratio_agree_with_it() -> None:
    """Medians over two machine states: each by itself they would say the opposite."""
    gain = Interval(1.42, 1.21, 1.66, 20)
    point = PointEvidence("allreduce", 64, "all", 6.10e-6, 7.34e-6, gain, Verdict.FASTER)
    assert point_cells(point) == (
        "64 B",
        "6.10 us",
        "~4.30 us",
        "1.21x to 1.66x (1.42x, 20 pairs)",
    )
