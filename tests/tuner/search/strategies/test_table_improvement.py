"""What commtune's own strategy proposes, and in which order."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest
from made_up_spaces import made_up_space

from commtune.model import DEFAULT, Configuration
from commtune.spaces.space import Space
from commtune.tuner.search.model import TableModel
from commtune.tuner.search.strategies.table_gp import TableImprovement

SIZES = (8, 65536)


def space_of(parameters: int) -> Space:
    """Of ``V0``, ``V1``, ..., each unset or one of three values."""
    return made_up_space(
        "".join(
            f"  - {{name: V{number}, kind: integer, values: [1, 2, 3], source: made up}}\n"
            for number in range(parameters)
        )
    )


SPACE = space_of(8)


def proposed(count: int, *, gain: float, seed: int, space: Space = SPACE) -> list[Configuration]:
    """Proposals of a search in which one value of one variable gains."""
    model = TableModel(space, SIZES)
    model.add([(DEFAULT, np.zeros(2))])
    strategy = TableImprovement(model, np.full(2, 0.5), random.Random(seed))
    found: list[Configuration] = []
    for _ in range(count):
        proposal = strategy.ask(lambda one: not one.is_default and one not in found)
        assert proposal is not None
        found.append(proposal.configuration)
        strategy.wait_for(found[-1])
        speedups = np.full(2, math.log1p(gain) * (found[-1].get("V3") == "2"))
        model.add([(found[-1], speedups)])
        strategy.tell(found[-1], speedups)
    return found


@pytest.mark.parametrize(("parameters", "count"), [(4, 4), (8, 16)])
def test_at_first_each_value_is_met_as_often_as_any_other(parameters: int, count: int) -> None:
    # 256 configurations are looked through whole, 65,536 are not.
    space = space_of(parameters)
    for seed in (0, 1, 2, 4):  # of the four of seed 3 one is the default, which runs anyway
        first = proposed(count, gain=0.0, seed=seed, space=space)
        for name in space.by_name:
            met = Counter(one.get(name, "") for one in first)
            assert met == dict.fromkeys(["", *"123"], count // 4)


def test_the_one_value_that_gains_is_soon_found_by_itself() -> None:
    alone = Configuration({"V3": "2"})
    # Of 24 single values and 65,535 configurations: by halves, not by luck.
    assert sum(alone in proposed(24, gain=0.3, seed=seed) for seed in range(10)) >= 7


def test_where_nothing_open_is_left_of_the_candidates_others_come_from_the_same_fit() -> None:
    space, rng, speedups = space_of(5), random.Random(1), np.zeros(2)
    model = TableModel(space, SIZES)
    model.add([(one, speedups) for one in (DEFAULT, *(space.sample(rng) for _ in range(20)))])
    strategy = TableImprovement(model, np.full(2, 0.5), rng)
    assert strategy.ask(lambda one: not one.is_default) is not None
    fitted = model.fitted
    model.add([(space.sample(rng), speedups)])
    assert strategy.ask(lambda _: False) is None
    assert model.fitted is fitted
