"""What commtune's own strategy proposes, and in which order."""

from __future__ import annotations

import math
import random

import numpy as np

from commtune.documents.yaml_document import parse_document
from commtune.model import DEFAULT, Configuration
from commtune.spaces.loading import build_space
from commtune.tuner.search.model import TableModel
from commtune.tuner.search.strategies.table_gp import TableImprovement

NAMES = [f"V{number}" for number in range(8)]
SPACE = build_space(
    parse_document(
        "space: 1\nname: eight\nversion: 1\nlibrary: made-up\nparameters:\n"
        + "".join(
            f"  - {{name: {n}, kind: integer, values: [1, 2, 3], source: made up}}\n"
            for n in NAMES
        )
    )
)
SIZES = (8, 65536)


def proposed(count: int, *, gain: float, seed: int) -> list[Configuration]:
    """Proposals of a search in which one value of one variable gains."""
    model = TableModel(SPACE, SIZES)
    model.add([(DEFAULT, dict.fromkeys(SIZES, 0.0))])
    strategy = TableImprovement(model, np.full(2, 0.5), random.Random(seed))
    found: list[Configuration] = []
    for _ in range(count):
        proposal = strategy.ask(lambda one: not one.is_default and one not in found)
        assert proposal is not None
        found.append(proposal.configuration)
        strategy.wait_for(found[-1])
        speedups = dict.fromkeys(SIZES, math.log1p(gain) * (found[-1].get("V3") == "2"))
        model.add([(found[-1], speedups)])
        strategy.tell(found[-1], speedups)
    return found


def test_each_value_is_met_once_in_the_first_four() -> None:
    for seed in range(5):
        first = proposed(4, gain=0.0, seed=seed)
        for name in NAMES:
            assert sorted(one.get(name, "") for one in first) == ["", "1", "2", "3"]


def test_the_one_value_that_gains_is_soon_found_by_itself() -> None:
    alone = Configuration({"V3": "2"})
    # Of 24 single values and 65,535 configurations: by halves, not by luck.
    assert sum(alone in proposed(20, gain=0.3, seed=seed) for seed in range(10)) >= 7
