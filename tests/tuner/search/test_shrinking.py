"""Halves of what is good by what the model learnt from search-like runs with planted effects.

And without the parameters that the runs don't speak for.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from made_up_spaces import made_up_space

from commtune.model import DEFAULT, Configuration
from commtune.tuner.search.model import TableModel
from commtune.tuner.search.shrinking import (
    _halve_configuration,
    drop_weak_variables,
    list_smaller_variants,
)

SPACE = made_up_space("""
  - {name: A, kind: choice, values: [x, y], source: made up}
  - {name: B, kind: integer, values: [1, 2, 3], source: made up}
  - {name: C, kind: bool, source: made up}
  - {name: PARENT, kind: choice, values: ['on', 'off'], source: made up}
  - {name: CHILD, kind: integer, values: [1, 2], when: {PARENT: 'on'}, source: made up}
  - {name: GRANDCHILD, kind: integer, values: [1, 2], when: {CHILD: 2}, source: made up}
  - {name: D, kind: integer, values: [1, 2, 3], source: made up}
  - {name: E, kind: integer, values: [1, 2, 3], source: made up}
""")
WINNER = Configuration(
    {"A": "x", "B": "2", "C": "1", "PARENT": "on", "CHILD": "2", "GRANDCHILD": "1", "D": "3"}
)
Effect = Callable[[Configuration], float]


SIZES = (8, 65536)


def searched(
    effect: Effect, seed: int, runs: int = 100, noise: float = 0.05
) -> list[tuple[Configuration, float]]:
    """Runs of a search: random ones, and neighbours of the winner."""
    rng = random.Random(seed)
    made: list[tuple[Configuration, float]] = []
    for number in range(runs):
        configuration = SPACE.sample(rng)
        if number % 2:  # near the winner, as a search that has found it stays
            changed = dict(SPACE.assignment(WINNER))
            for name in rng.sample(sorted(changed), 2):
                changed[name] = SPACE.assignment(configuration)[name]
            near = SPACE.configuration(SPACE.consistent(changed))
            configuration = near if not SPACE.check(near) else configuration
        if not configuration.is_default:
            made.append((configuration, effect(configuration) + rng.gauss(0, noise)))
    return made


def learnt(runs: Sequence[tuple[Configuration, float]]) -> TableModel:
    """A model of runs that gain at the larger of two sizes."""
    model = TableModel(SPACE, SIZES)
    for configuration, score in runs:
        model.add([(configuration, np.array([0.0, score]))])
    return model


def smaller(
    runs: Sequence[tuple[Configuration, float]], large: Configuration = WINNER
) -> Configuration:
    return _halve_configuration(learnt(runs), large, [1])


def bring(**gains: float) -> Effect:
    """The logarithm of the gain of the winner's values of some variables; they add up."""

    def effect(configuration: Configuration) -> float:
        return sum(
            math.log(gain)
            for name, gain in gains.items()
            if configuration.get(name) == WINNER[name]
        )

    return effect


def guesses(effect: Effect, count: int = 4) -> list[Configuration]:
    return [smaller(searched(effect, seed)) for seed in range(count)]


@pytest.mark.parametrize("names", [("A",), ("B", "D"), ("A", "B", "D")])
def test_half_of_what_matters_stays_and_little_else(names: tuple[str, ...]) -> None:
    found = guesses(bring(**dict.fromkeys(names, 1.2)))
    assert all(2 * len(set(names) & set(g)) >= len(names) for g in found)
    assert sum(len(set(g) - set(names)) for g in found) <= 4
    assert all({**WINNER, **g} == dict(WINNER) for g in found)


def test_what_a_variable_needs_comes_with_it() -> None:
    for found in guesses(bring(GRANDCHILD=1.4)):
        assert found["GRANDCHILD"] == "1"
        assert (found["PARENT"], found["CHILD"]) == ("on", "2")
        assert SPACE.check(found) == []


def test_a_parent_alone_does_not_bring_its_children() -> None:
    found = guesses(bring(PARENT=1.4))
    assert all("PARENT" in g for g in found)
    assert sum("GRANDCHILD" in g for g in found) <= 1


def test_a_guess_is_legal_part_of_the_winner_and_never_empty() -> None:
    for found in guesses(lambda _: 0.0):
        assert len(found) >= 1
        assert SPACE.check(found) == []
        assert found.items() <= WINNER.items()


def test_two_of_which_either_suffices_are_not_both_lost() -> None:
    def either(configuration: Configuration) -> float:
        hit = configuration.get("A") == "x" or configuration.get("D") == "3"
        return math.log(1.3) * hit

    assert all({"A", "D"} & set(found) for found in guesses(either))


def test_small_next_to_large_effects_is_left_out() -> None:
    found = guesses(bring(A=2.0, B=1.02))
    assert all("A" in g for g in found)
    assert sum("B" in g for g in found) <= 1


def test_one_variable_is_not_made_smaller() -> None:
    only = Configuration({"A": "x"})
    assert smaller(searched(bring(A=1.3), 1), only) == only


def test_a_tenth_of_wild_runs_does_not_hide_what_matters() -> None:
    found = 0
    for seed in range(4):
        rng = random.Random(seed)
        runs = [
            (one, score - rng.uniform(0.2, 2.0) if rng.random() < 0.1 else score)
            for one, score in searched(bring(D=1.1), seed, noise=0.03)
        ]
        found += "D" in smaller(runs)
    assert found >= 3


def test_what_came_together_is_halved_until_one_variable_is_left() -> None:
    effect = bring(A=1.5)
    runs = [(WINNER, effect(WINNER))]
    for _ in range(6):
        model = learnt(runs)
        model.fit()
        for one in list_smaller_variants(model):
            runs.append((one, effect(one)))
    tried = [one for one, _ in runs]
    assert Configuration({"A": "x"}) in tried
    assert set(list_smaller_variants(model)) <= set(tried)


@pytest.mark.parametrize("seed", range(5))
def test_what_looks_best_after_a_few_runs_is_halved_before_it_is_sure(seed: int) -> None:
    rng = random.Random(seed)
    others = [DEFAULT] * 3 + [SPACE.sample(rng) for _ in range(4)]
    model = learnt([(WINNER, 0.1), *((one, rng.gauss(0, 0.05)) for one in others)])
    model.fit()
    (mean,), (error,) = model.predict(model.encoding.rows([WINNER]))
    assert 0 < mean[1] < error[1]
    halves = [one for one in list_smaller_variants(model) if one.items() < WINNER.items()]
    assert halves
    assert all(SPACE.check(one) == [] and one for one in halves)


def test_what_gains_nothing_is_not_halved() -> None:
    assert list_smaller_variants(TableModel(SPACE, SIZES)) == []
    model = learnt([(WINNER, -0.1)])
    model.fit()
    assert list_smaller_variants(model) == []


def test_what_shows_little_at_the_sizes_of_a_candidate_is_dropped() -> None:
    found = []
    for seed in range(8):
        model = learnt(searched(bring(A=1.3, D=1.3), seed))
        model.fit()
        found.append(drop_weak_variables(model, WINNER, SIZES[1:]))
        # Nothing gains at the other size; one variable stays, since it is confirmed by itself.
        assert len(drop_weak_variables(model, WINNER, SIZES[:1])) < len(WINNER)
    assert all({"A", "D"} <= set(one) for one in found)
    assert all(one.items() < WINNER.items() and SPACE.check(one) == [] for one in found)


def test_of_variables_that_were_never_apart_one_stays() -> None:
    model = learnt([(WINNER, math.log(1.5)), (DEFAULT, 0.0)])
    model.fit()
    assert len(drop_weak_variables(model, WINNER, SIZES)) == 1


# Parameters that the runs don't speak for leave, and runs are pooled without them


def pooled(runs: list[tuple[Configuration, float]], *, is_strict: bool = False) -> TableModel:
    """A model that found idle parameters in these runs, and took the runs in again."""
    model = learnt(runs)
    model.find_idle(is_strict=is_strict)
    model.forget_all()
    for configuration, score in runs:
        model.add([(configuration, np.array([0.0, score]))])
    return model


@pytest.mark.parametrize("names", [("A",), ("A", "D")])
def test_what_matters_stays_and_what_does_nothing_goes(names: tuple[str, ...]) -> None:
    effect = bring(**dict.fromkeys(names, 1.3))
    found = [pooled(searched(effect, seed)).drop_idle(WINNER) for seed in range(8)]
    assert all(set(names) <= set(one) for one in found)
    # Of eight times six or seven that do nothing, some are kept by chance.
    assert sum(len(one) - len(names) for one in found) <= 4


def test_runs_that_differ_in_idle_parameters_only_are_of_one_configuration() -> None:
    runs = searched(bring(A=1.3), 1)
    model = pooled(runs)
    small = model.drop_idle(WINNER)
    assert small == Configuration({"A": "x"})
    alike = [one for one, _ in runs if one.get("A") == "x"]
    assert model.runs_of(small) == len(alike) > 10
    standing = {one.configuration: one for one in model.standings()}[small]
    assert standing.mean[SIZES[1]] == pytest.approx(math.log(1.3), abs=0.05)


def test_what_a_parameter_that_matters_needs_stays_with_it() -> None:
    for seed in range(4):
        small = pooled(searched(bring(GRANDCHILD=1.4), seed)).drop_idle(WINNER)
        assert small["GRANDCHILD"] == "1"
        assert (small["PARENT"], small["CHILD"]) == ("on", "2")
        assert SPACE.check(small) == []


def test_few_configurations_tell_no_parameter_from_another() -> None:
    """Two that were only ever set together: dropping the wrong one would lose all."""
    model = pooled([(WINNER, math.log(1.5)), (Configuration({"A": "y"}), 0.0)])
    assert model.drop_idle(WINNER) == WINNER


def test_where_nothing_matters_there_is_still_a_best() -> None:
    model = pooled(searched(lambda _: 0.0, 3, noise=0.02))
    assert any(one.configuration != DEFAULT for one in model.standings())


def test_every_parameter_counts_again_for_new_runs() -> None:
    model = pooled(searched(bring(A=1.3), 1))
    assert model.drop_idle(WINNER) != WINNER
    model.idle = ()
    assert model.drop_idle(WINNER) == WINNER


def test_where_time_is_short_more_has_to_speak_for_a_parameter() -> None:
    found = [searched(bring(A=1.3), seed, runs=24, noise=0.15) for seed in range(24)]
    before = [pooled(runs).drop_idle(WINNER) for runs in found]
    alone = [pooled(runs, is_strict=True).drop_idle(WINNER) for runs in found]
    # Of what was kept in doubt only the most likely one stays.
    assert sum(len(one) > 1 for one in before) >= 3
    assert sum(len(one) > 1 for one in alone) <= 1
    assert sum("A" in one for one in alone) >= 22
