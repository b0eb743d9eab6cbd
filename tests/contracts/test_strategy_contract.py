"""One suite of laws over every search strategy (see ``tuner.search.strategies.strategy``)."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from made_up_spaces import made_up_space

from commtune.errors import UserError
from commtune.model import Configuration
from commtune.spaces.customizing import customize_space
from commtune.tuner.search.model import TableModel
from commtune.tuner.search.proposals import Search
from commtune.tuner.search.standings import Speedups
from commtune.tuner.search.strategies import check_strategy, make_strategy
from commtune.tuner.search.strategies.optuna_samplers import _SHORT_NAMES, _list_samplers
from commtune.tuner.search.strategies.strategy import DEFAULT_STRATEGY, Strategy

ROOT = Path(__file__).parents[2]

SPACE = made_up_space("""
  - {name: ALGORITHM, kind: integer, values: [1, 2], source: made up}
  - {name: BUFFER, kind: integer, values: [1, 2, 3], source: made up, when: {ALGORITHM: 2}}
  - {name: DEPTH, kind: integer, range: [1, 12], source: made up}
""")
SIZES = (8, 65536)
NAMES = [DEFAULT_STRATEGY, "exhaustive", "random", "tpe", "nsga-ii", "RandomSampler"]
NAMES.append("near_best:NearBest")


@pytest.fixture(autouse=True)
def _with_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples")


def made(name: str, seed: int = 1) -> Strategy:
    return make_strategy(name, TableModel(SPACE, SIZES), np.full(2, 0.5), seed)


def proposals(strategy: Strategy, count: int, *, fails: bool = False) -> list[Configuration]:
    """What a strategy proposes where more DEPTH is better, or where every third run fails."""
    known: list[Configuration] = []
    for number in range(count):
        proposal = strategy.ask(lambda configuration: configuration not in known)
        if proposal is None:
            break
        configuration = proposal.configuration
        known.append(configuration)
        strategy.wait_for(configuration)
        if fails and number % 3 == 0:
            strategy.tell_failed(configuration)
        elif fails and number % 3 == 1:
            strategy.forget(configuration)
        else:
            score = float(configuration.get("DEPTH", "0")) / 12
            strategy.tell(configuration, np.full(2, score))
    return known


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fails", [False, True])
def test_what_is_proposed_is_legal_and_open(name: str, fails: bool) -> None:
    found = proposals(made(name), 30, fails=fails)
    assert len(found) == len(set(found)) == 30
    assert not any(SPACE.check(configuration) for configuration in found)


@pytest.mark.parametrize("name", NAMES)
def test_equal_seeds_propose_equally(name: str) -> None:
    assert proposals(made(name), 20) == proposals(made(name), 20)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_left_after_the_whole_space(name: str) -> None:
    found = proposals(made(name), SPACE.count() + 5)
    assert set(found) == set(SPACE.configurations())
    assert made(name).ask(lambda _: False) is None


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("pin", [{"ALGORITHM": "1"}, {"ALGORITHM": "1", "BUFFER": "unset"}])
def test_nothing_is_proposed_where_nothing_can_vary(name: str, pin: dict[str, str]) -> None:
    space = customize_space(SPACE, pin={"DEPTH": "1", **pin})
    strategy = make_strategy(name, TableModel(space, SIZES), np.full(2, 0.5), 1)
    assert strategy.ask(lambda configuration: not configuration.is_default) is None


@pytest.mark.parametrize("name", NAMES)
def test_of_what_was_never_proposed_it_may_be_told(name: str) -> None:
    strategy, users = made(name), SPACE.configuration({"DEPTH": "12"})
    speedups = np.full(2, 0.5)
    strategy.tell(users, speedups)
    strategy.tell(users, speedups)
    strategy.tell_failed(SPACE.configuration({"DEPTH": "1"}))
    strategy.rebuild([], [{"ALGORITHM": "1", "DEPTH": "1"}])
    assert strategy.ask(lambda configuration: configuration != users) is not None


@pytest.mark.parametrize("name", NAMES)
def test_what_is_under_way_may_end_after_a_rebuild(name: str) -> None:
    strategy = made(name)
    proposal = strategy.ask(lambda _: True)
    assert proposal is not None
    strategy.wait_for(proposal.configuration)
    strategy.rebuild([], [])
    strategy.tell(proposal.configuration, np.full(2, 0.1))
    assert strategy.ask(lambda one: one != proposal.configuration) is not None


def _found(name: str, seed: int, told: Callable[[Configuration], Speedups]) -> list[int]:
    """DEPTH in proposals of a search that is told how each did."""
    model = TableModel(SPACE, SIZES)
    search = Search(model, make_strategy(name, model, np.full(2, 0.5), seed))
    search.rebuild([(Configuration({}), np.zeros(2))] * 4)
    found = []
    for _ in range(40):  # of 78; the default strategy begins with as many as 24 of its own choice
        proposal = search.ask()
        assert proposal is not None
        search.tell(proposal.configuration, told(proposal.configuration), "")
        found.append(int(proposal.configuration.get("DEPTH", "0")))
    return found


@pytest.mark.parametrize("name", [DEFAULT_STRATEGY, "tpe"])
def test_what_is_better_is_proposed_more(name: str) -> None:
    def deep(configuration: Configuration) -> Speedups:
        return np.full(2, int(configuration.get("DEPTH", "0")) / 12)

    made_deep = sum(sum(_found(name, seed, deep)) for seed in range(5))
    assert made_deep > 1.08 * sum(sum(_found("random", seed, deep)) for seed in range(5))


def test_the_best_at_each_size_is_looked_for() -> None:
    """What gains at one size and loses at another is no compromise, but half of the table."""

    def told(configuration: Configuration) -> Speedups:
        depth = int(configuration.get("DEPTH", "0"))
        return np.array([depth / 12, -depth / 12] if depth % 2 else [-0.2, depth / 12])

    found = _found(DEFAULT_STRATEGY, 1, told)
    assert {11, 12} <= set(found)


@pytest.mark.parametrize("name", ["tpee", "create_study", "BaseTrial", ""])
def test_an_unknown_name_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(UserError) as refused:
        made(name)
    assert "random" in refused.value.hint
    with pytest.raises(UserError) as before:
        check_strategy(name)
    assert (before.value.message, before.value.hint) == (
        refused.value.message,
        refused.value.hint,
    )


def test_the_nearest_name_is_said() -> None:
    for name, nearest in (("tpee", "tpe"), ("randm", "random"), ("TPESampler2", "TPESampler")):
        with pytest.raises(UserError) as refused:
            check_strategy(name)
        assert refused.value.hint.startswith(f"nearest: {nearest}\nknown: table-gp, ")


@pytest.mark.parametrize("name", ["BruteForceSampler", "GridSampler", "PartialFixedSampler"])
def test_samplers_that_cannot_be_used_are_refused_before_the_search(name: str) -> None:
    with pytest.raises(UserError, match=f"strategy: {name}"):
        check_strategy(name)
    assert name not in _list_samplers()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("near_best.py:NearBest", "can't be imported: No module named 'near_best.py'"),
        ("near_best:Nearest", "can't be imported: module 'near_best' has no attribute 'Nearest'"),
        (":NearBest", "can't be imported: Empty module name"),
        ("near_best:TrialState", "is no sampler"),
        ("optuna.samplers:GridSampler", "can't be made from a seed alone: .*'search_space'"),
        ("optuna.samplers:BaseSampler", "can't be made from a seed alone: "),
    ],
)
def test_an_unsuitable_class_of_the_users_is_refused(name: str, why: str) -> None:
    with pytest.raises(UserError, match=f"strategy: {name}:? (this sampler )?{why}"):
        check_strategy(name)


@pytest.mark.parametrize("name", [*NAMES, *_list_samplers(), *_SHORT_NAMES])
def test_what_passes_the_check_can_be_asked(name: str) -> None:
    with contextlib.suppress(UserError):  # a package that is not here
        check_strategy(name)
        assert len(proposals(made(name), 20)) == 20


@pytest.mark.parametrize(("name", "package"), [("gp", "torch"), ("CmaEsSampler", "cmaes")])
def test_a_missing_package_is_said_with_its_command(
    name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(UserError, match=f"needs the package {package}") as refused:
        check_strategy(name)
    assert refused.value.hint.endswith(f"-m pip install {package}")


@pytest.mark.parametrize(("name", "package"), [("gp", "torch"), ("cma-es", "cmaes")])
def test_a_sampler_without_its_package_is_refused_at_once(name: str, package: str) -> None:
    if importlib.util.find_spec(package) is not None:
        assert len(proposals(made(name), 5)) == 5
        return
    with pytest.raises(UserError, match=f"needs the package {package}"):
        made(name)
