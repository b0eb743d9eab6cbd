"""Small configurations proposed from search-like data with planted effects."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from commtune.documents.yaml_document import parse_document
from commtune.model import DEFAULT, Configuration
from commtune.spaces.loading import build_space
from commtune.spaces.space import Space
from commtune.tuner.ablation.screening import Assignment, screen_parameters

SPACE = build_space(
    parse_document(
        """
space: 1
name: guesses
version: 1
library: made-up
parameters:
  - {name: A, kind: choice, values: [x, y], source: made up}
  - {name: B, kind: integer, values: [1, 2, 3], source: made up}
  - {name: C, kind: bool, source: made up}
  - {name: PARENT, kind: choice, values: ['on', 'off'], source: made up}
  - {name: CHILD, kind: integer, values: [1, 2], when: {PARENT: 'on'}, source: made up}
  - {name: GRANDCHILD, kind: integer, values: [1, 2], when: {CHILD: 2}, source: made up}
  - {name: D, kind: integer, values: [1, 2, 3], source: made up}
  - {name: E, kind: integer, values: [1, 2, 3], source: made up}
"""
    )
)
WINNER = Configuration(
    {"A": "x", "B": "2", "C": "1", "PARENT": "on", "CHILD": "2", "GRANDCHILD": "1", "D": "3"}
)
Effect = Callable[[Configuration], float]


def searched(
    effect: Effect, seed: int, runs: int = 250, noise: float = 0.05, space: Space = SPACE
) -> tuple[list[Assignment], list[float]]:
    """Runs of a search: the default now and then, random ones, and neighbours of the winner."""
    rng = random.Random(seed)
    assignments: list[Assignment] = []
    scores: list[float] = []
    for number in range(runs):
        configuration = space.sample(rng)
        if number % 8 == 0:
            configuration = DEFAULT
        elif number % 2:  # near the winner, as a search that has found it stays
            changed = dict(space.assignment(WINNER))
            for name in rng.sample(sorted(changed), 2):
                changed[name] = space.assignment(configuration)[name]
            near = space.configuration(space.consistent(changed))
            configuration = near if not space.check(near) else configuration
        assignments.append(space.assignment(configuration))
        scores.append(effect(configuration) + rng.gauss(0, noise))
    return assignments, scores


def bring(**gains: float) -> Effect:
    """The logarithm of the gain of the winner's values of some variables; they add up."""

    def effect(configuration: Configuration) -> float:
        return sum(
            math.log(gain)
            for name, gain in gains.items()
            if configuration.get(name) == WINNER[name]
        )

    return effect


def guesses(effect: Effect, count: int = 20) -> list[Configuration]:
    return [screen_parameters(SPACE, WINNER, *searched(effect, seed)) for seed in range(count)]


@pytest.mark.parametrize("names", [("A",), ("B", "D"), ("A", "B", "D")])
def test_the_planted_variables_are_found(names: tuple[str, ...]) -> None:
    found = guesses(bring(**dict.fromkeys(names, 1.2)))
    assert all(set(names) <= set(g) for g in found)
    extra = [len(g) - len(names) for g in found]
    # Of the 4 to 6 others each is proposed by chance, at two standard errors, now and then.
    assert sum(extra) <= 20
    assert all({**WINNER, **g} == dict(WINNER) for g in found)


def test_what_a_variable_needs_comes_with_it() -> None:
    for found in guesses(bring(GRANDCHILD=1.4)):
        assert found["GRANDCHILD"] == "1"
        assert (found["PARENT"], found["CHILD"]) == ("on", "2")
        assert SPACE.check(found) == []


def test_a_parent_alone_does_not_bring_its_children() -> None:
    found = guesses(bring(PARENT=1.4))
    assert all("PARENT" in g for g in found)
    assert sum("GRANDCHILD" in g for g in found) <= 6


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
    assert sum("B" in g for g in found) <= 2


def test_too_few_runs_propose_nothing() -> None:
    few = searched(bring(A=1.5), 1, runs=19)
    assert screen_parameters(SPACE, WINNER, *few) == WINNER
    assert screen_parameters(SPACE, WINNER, [], []) == WINNER


def test_one_variable_is_its_own_guess() -> None:
    only = Configuration({"A": "x"})
    assert screen_parameters(SPACE, only, *searched(bring(A=1.3), 1)) == only
    assert screen_parameters(SPACE, only, *searched(lambda _: 0.0, 1)) == only


def test_values_that_the_search_never_met_propose_nothing() -> None:
    assignments, scores = searched(bring(A=1.3), 1)
    unset: list[Assignment] = [dict.fromkeys(a) for a in assignments]
    assert screen_parameters(SPACE, WINNER, unset, scores) == WINNER


def test_one_wild_run_does_not_decide() -> None:
    """A machine that sleeps for a moment makes one run a hundred times longer."""
    assignments, scores = searched(bring(A=1.3), 3)
    scores[17] -= math.log(100)
    assert "A" in screen_parameters(SPACE, WINNER, assignments, scores)


def test_a_tenth_of_wild_runs_does_not_hide_what_matters() -> None:
    found = 0
    for seed in range(10):
        assignments, scores = searched(bring(D=1.1), seed, noise=0.03)
        rng = random.Random(seed)
        wild = [s - rng.uniform(0.2, 2.0) if rng.random() < 0.1 else s for s in scores]
        found += screen_parameters(SPACE, WINNER, assignments, wild).items() == {"D": "3"}.items()
    assert found >= 8
