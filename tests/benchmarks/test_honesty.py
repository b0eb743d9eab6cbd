"""A few of the campaigns of benchmarks/honesty.py, of each kind of noise that is made up."""

from __future__ import annotations

from multiprocessing import Pool

import pytest
from honesty import MADE_UP, UNSEEN, Case, run


@pytest.mark.slow
def test_campaigns_claim_nothing_false_and_find_what_is_there() -> None:
    cases = [
        Case(noise, gain, seed=0, run_s=1.5, runs=60)
        for noise in (*MADE_UP, *UNSEEN)
        for gain in (0.0, 0.1)
        if gain or noise != "slow-with-gain"
    ]
    with Pool(2) as pool:
        results = pool.map(run, cases, chunksize=1)

    assert not [one for one in results if one.claims and not one.gain]
    assert not [one for one in results if one.wrong]
    # By chance intervals miss in a few, and short campaigns do not find all.
    assert sum(one.together for one in results) >= 34
    assert sum(one.found for one in results if one.gain) >= 14
