"""Peers that propose from lists: random, exhaustive, halving, racing; and re-runs of leaders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

import numpy as np

from .halves import Floats
from .picks import average_runs
from .player import Picks, Player, Spent

Method = Callable[[Player], None]
#: Of each three configurations of a rung one goes on.
_ETA = 3
#: A challenger wins by this probability of being faster, and is out below the other.
_SUPERIOR, _INFERIOR, _FEWEST_RACED, _MOST_RACED = 0.9, 0.25, 3, 5
#: The last part of the runs, where leaders are run again; and the most that one gets.
_RERUN_SHARE, _MOST_RUNS = 0.25, 8


def play_random(player: Player) -> None:
    """Every configuration once in random order; then again."""
    while True:
        for row in player.rng.sample(player.others, len(player.others)):
            player.play(row)


def halve(player: Player) -> None:
    """Successive halving: as many configurations as let the runs suffice for all rungs."""
    _halve(player, _rungs(len(player.others), player.limit))
    _rerun(player)


def _rungs(configurations: int, runs: int) -> tuple[int, int]:
    """How many begin, and how many rungs follow: each costs about as many runs as the first."""
    for rungs in (4, 3, 2, 1):
        begin = min(configurations, runs // rungs)
        if begin >= _ETA ** (rungs - 1) or rungs == 1:
            return begin, rungs
    raise AssertionError


def _halve(player: Player, start: tuple[int, int], most_runs: int = 10**6) -> None:
    begin, rungs = start
    stop = min(player.limit, player.made + most_runs)
    rows = player.rng.sample(player.others, min(begin, len(player.others)))
    total = {row: np.zeros(len(player.halves.sizes)) for row in rows}
    for rung in range(rungs):
        for _ in range(_ETA**rung - _ETA**rung // _ETA):
            for row in rows:
                if player.made >= stop:
                    return
                total[row] += player.play(row)
        rows = _leaders(rows, total, max(1, len(rows) // _ETA))


def _leaders(rows: Sequence[int], total: dict[int, Floats], most: int) -> list[int]:
    """The best of every size in turn: by one mean over sizes, those that matter would leave."""
    table = np.array([total[row] for row in rows])
    orders = [[rows[place] for place in order] for order in table.argsort(axis=0).T]
    found: dict[int, None] = {}
    for place in range(len(rows)):
        for order in orders:
            if len(found) < most:
                found.setdefault(order[place])
    return list(found)


def play_hyperband(player: Player) -> None:
    """Brackets of successive halving, from many begun with one run to few with many."""
    for bracket in (4, 3, 2, 1):
        most_runs = (player.limit - player.made) // bracket
        begin = min(len(player.others), max(1, most_runs // bracket))
        _halve(player, (begin, bracket), most_runs)
    _rerun(player)


def race(player: Player) -> None:
    """One challenger after the other against the champion of each size.

    As the tuner of AMD's rccl has it: the probability that a run of the challenger is faster than
    one of the champion decides, over all pairs of their runs; while it is between the two gates
    the challenger gets another run.
    """
    times: dict[int, list[Floats]] = {player.halves.default: []}
    times[player.halves.default].append(player.play(player.halves.default))
    champions = np.full(len(player.halves.sizes), player.halves.default)
    player.own = champions.copy
    for row in player.rng.sample(player.others, len(player.others)):
        times[row] = []
        while len(times[row]) < _MOST_RACED:
            times[row].append(player.play(row))
            chances = _superiority(times, row, champions)
            undecided = (chances > _INFERIOR) & (chances < _SUPERIOR)
            is_proven = len(times[row]) >= _FEWEST_RACED
            if (chances <= _INFERIOR).all() or (is_proven and not undecided.any()):
                break
        if len(times[row]) >= _FEWEST_RACED:
            champions[chances >= _SUPERIOR] = row
    _rerun(player)


def _superiority(times: dict[int, list[Floats]], row: int, champions: Picks) -> Floats:
    """By size, the share of pairs of runs in which the challenger is the faster one."""
    mine = np.array(times[row])
    return np.array(
        [
            (mine[:, None, size] < np.array(times[champion])[None, :, size]).mean()
            for size, champion in enumerate(champions)
        ]
    )


def with_reruns(method: Method) -> Method:
    """The method, and the last quarter of its runs for those that may be the best at a size."""

    def play(player: Player) -> None:
        whole = player.limit
        player.limit = round(whole * (1 - _RERUN_SHARE))
        try:
            method(player)
        except Spent:
            player.limit = whole
            _rerun(player)

    return play


def _rerun(player: Player) -> None:
    """Runs what may be the best of each size in turn, the most hopeful of each first."""
    for turn in count():
        size = turn % len(player.halves.sizes)
        means = average_runs(player.played, player.made)
        hope = means.mean[:, size] - means.error[:, size]
        hope[means.runs >= _MOST_RUNS] = np.inf
        player.play(int(means.rows[hope.argmin()]))
