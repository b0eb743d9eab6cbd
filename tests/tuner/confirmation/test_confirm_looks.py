"""Looks at a confirmation: what each may get wrong, and how they are stored."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from confirmed_blocks import RULES, A, B
from hypothesis import given
from hypothesis import strategies as st

from commtune.db.codec import dump_model, load_model
from commtune.model import Configuration
from commtune.model.conclusion import (
    _LOOK_TIMES,
    CONFIRMATION_SHARES,
    Decision,
    Look,
    error_share,
)


@pytest.mark.parametrize("shares", [CONFIRMATION_SHARES, Decision().look_shares])
def test_the_looks_spend_no_more_than_the_error_rate(shares: tuple[float, ...]) -> None:
    assert math.fsum(shares) <= 1 + 1e-12
    assert all(share > 0 for share in shares)
    assert len(shares) == len(_LOOK_TIMES)


def test_the_last_look_is_at_the_end() -> None:
    assert _LOOK_TIMES[-1] == 1.0
    assert list(_LOOK_TIMES) == sorted(set(_LOOK_TIMES))


@given(st.integers(0, 500), st.floats(0.5, 0.999), st.integers(1, 60))
def test_all_intervals_of_all_looks_together_keep_the_level(
    blocks: int, level: float, comparisons: int
) -> None:
    decision = Decision((A,), blocks, 0, 1.0)
    assert len(decision.shares) == len(decision.times)
    spent = sum(
        (1 - replace(RULES, level=level, comparisons=comparisons, share=share).interval_level)
        * comparisons
        for share in decision.shares
    )
    assert spent <= (1 - level) * (1 + 1e-9)
    assert decision.times[-1] == 1.0


def test_the_level_of_each_look_by_hand() -> None:
    rules = [replace(RULES, comparisons=24, share=share) for share in CONFIRMATION_SHARES]
    assert [1 - r.interval_level for r in rules] == pytest.approx(
        [0.05 * 0.02 / 24, 0.05 * 0.08 / 24, 0.05 * 0.9 / 24]
    )


def test_further_confirmations_share_what_is_left_of_the_error_rate() -> None:
    shares = [error_share(number) for number in range(50)]
    assert math.fsum(shares) <= 1 + 1e-12
    assert shares == sorted(shares, reverse=True)
    second = Decision((A,), 30, 0, 1.0, number=1, error_share=error_share(1))
    assert math.fsum(second.shares) == pytest.approx(0.1)
    assert load_model(Decision, dump_model(second)) == second


def test_few_blocks_are_looked_at_once() -> None:
    assert Decision((A,), 11, look_shares=CONFIRMATION_SHARES).shares == (1.0,)
    assert Decision((A,), 12, look_shares=CONFIRMATION_SHARES).shares == CONFIRMATION_SHARES


_looks = st.builds(
    Look,
    st.integers(0, 400),
    st.integers(0, 400),
    st.dictionaries(st.integers(0, 2), st.sampled_from(["decided", "futile", "budget"])),
)


@given(
    st.lists(st.dictionaries(st.sampled_from("ABC"), st.sampled_from("12")), max_size=3),
    st.integers(0, 400),
    st.integers(0, 9999),
    st.floats(0, 1e6),
    st.lists(_looks, max_size=3),
)
def test_a_decision_survives_the_store(
    candidates: list[dict[str, str]], blocks: int, first: int, budget_s: float, looks: list[Look]
) -> None:
    made = tuple(Configuration(values) for values in candidates)
    decision = Decision(made, blocks, first, budget_s, tuple(looks))
    again = load_model(Decision, json.loads(json.dumps(dump_model(decision))))
    assert again == decision
    assert again.open() == decision.open()


def test_a_candidate_ends_at_the_first_look_that_says_so() -> None:
    decision = Decision((A, B), 20, 0, 1.0)
    assert decision.open() == (A, B)
    decision = decision.after(Look(8, 20, {1: "futile"}))
    assert decision.open() == (A,)
    decision = decision.after(Look(14, 24, {0: "decided"}))
    assert decision.open() == ()
    assert decision.stop_of(0) == (1, "decided")
    assert decision.stop_of(1) == (0, "futile")
    assert decision.stop_of(2) is None
