"""Every method by its name, and how one plays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from .halves import Halves
from .lists import Method, halve, play_hyperband, play_random, race, with_reruns
from .models import MODELS
from .ours import search_alone, whole_campaign
from .player import DEFAULTS, Played, Player, Spent
from .samplers import OPTUNA

#: Those whose course doesn't depend on how many runs there will be: one course serves all budgets.
_ANYTIME: dict[str, Method] = {
    "random": play_random,
    "racing": race,
    **OPTUNA,
    **{name: play for name, (play, package) in MODELS.items() if find_spec(package)},
}
_BOUNDED: dict[str, Method] = {
    "random+rerun": with_reruns(play_random),
    **{f"{name}+rerun": with_reruns(play) for name, play in OPTUNA.items()},
    "halving": halve,
    "hyperband": play_hyperband,
}
#: Repeats of every configuration by the grid that tries them all; they need no budget.
EXHAUSTIVE = {"exhaustive": 1, "exhaustive-3": 3}
#: What each gives by the name of the method that it is shown as.
_OURS: dict[str, Callable[..., dict[str, Played]]] = {
    "search": search_alone,
    "whole": whole_campaign,
}
KNOWN = (*EXHAUSTIVE, *_ANYTIME, *_BOUNDED, *_OURS)


@dataclass(frozen=True)
class Course:
    """What a method did, to be judged after a number of runs.

    Attributes:
        method: its name in the table.
        percent: of the grid's runs; 0 for those that have no budget.
        until: the number of runs.
    """

    method: str
    percent: float
    until: int
    played: Played


def play_method(
    name: str, halves: Halves, seed: int, percents: Sequence[float]
) -> Iterator[Course]:
    """Plays a method at every budget.

    Args:
        name: of ``KNOWN``; one of commtune's own may have a strategy after a colon.
        percents: budgets in per cent of the grid's runs, ascending.
    """
    runs = [halves.runs(percent) for percent in percents]
    own, _, strategy = name.partition(":")
    if name in EXHAUSTIVE:
        until = EXHAUSTIVE[name] * (len(halves.grid.index) - 1) + len(DEFAULTS)
        yield Course(name, 0, until, _play(play_random, halves, seed, [until]))
    elif name in _ANYTIME:
        played = _play(_ANYTIME[name], halves, seed, runs)
        yield from (Course(name, p, n, played) for p, n in zip(percents, runs, strict=True))
    elif own in _OURS:
        for percent, limit in zip(percents, runs, strict=True):
            for method, played in _OURS[own](halves, seed, limit, strategy).items():
                shown = f"{method}:{strategy}" if strategy else method
                yield Course(shown, percent, len(played.configurations), played)
    else:
        for percent, limit in zip(percents, runs, strict=True):
            yield Course(name, percent, limit, _play(_BOUNDED[name], halves, seed, [limit]))


def _play(method: Method, halves: Halves, seed: int, runs: Sequence[int]) -> Played:
    player = Player(halves, seed, max(runs), frozenset(runs))
    try:
        method(player)
    except Spent:
        return player.played
    raise AssertionError("a method ended before its runs")
