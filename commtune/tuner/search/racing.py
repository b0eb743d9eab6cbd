"""Which configurations deserve another run: a race per size range.

One run of a configuration is off by what runs of the default differ from one another, which the
campaign measures as it goes. A configuration that is further behind than that explains has lost
after one run; those that may still be the best get more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from commtune.model import Configuration
from commtune.tuner.search.scores import Score, Scoreboard

#: How many standard errors of doubt a configuration gets: more keeps more in the race.
_DOUBT = 1.5
#: More runs than this tell the search nothing that the confirmation would not tell better.
MOST_RUNS = 8


def find_contenders(board: Scoreboard, label: str, most: int | None = None) -> list[Configuration]:
    """The configurations that may be the best of a size range, the most promising first."""
    spread = board.spread(label)
    scores = {
        configuration: by_range[label]
        for configuration, by_range in board.scores.items()
        if label in by_range and not configuration.is_default
    }
    if not scores:
        return []
    mark = max(score.mean - _doubt(score, spread) for score in scores.values())
    racing = [c for c, score in scores.items() if score.mean + _doubt(score, spread) >= mark]
    racing.sort(key=lambda c: -scores[c].mean)
    return racing[:most]


def find_surest(board: Scoreboard, label: str, enough: int) -> list[Configuration]:
    """The best configuration of a size range, if there is one.

    It is the best of those with so many runs, unless one with fewer is ahead of it beyond doubt.
    """
    tried = board.best(label, 1, fewest_runs=enough)
    mark = board.scores[tried[0]][label].mean if tried else 0.0
    spread = board.spread(label)
    ahead = {
        configuration: by_range[label].mean - _doubt(by_range[label], spread)
        for configuration, by_range in board.scores.items()
        if label in by_range and not configuration.is_default
    }
    best = max(ahead, key=lambda one: ahead[one], default=None)
    if best is None or (tried and ahead[best] <= mark):
        return tried
    return [best]


def to_repeat(board: Scoreboard, labels: Sequence[str], most: int) -> list[Configuration]:
    """The configurations whose next run would tell most, from all ranges in turn."""
    queues = [
        sorted(
            (c for c in find_contenders(board, label) if board.scores[c][label].runs < MOST_RUNS),
            key=partial(_hope, board, label),
            reverse=True,
        )
        for label in labels
    ]
    found: dict[Configuration, None] = {}
    for place in range(most):
        for queue in queues:
            if place < len(queue) and len(found) < most:
                found.setdefault(queue[place])
    return list(found)


def _hope(board: Scoreboard, label: str, configuration: Configuration) -> float:
    score = board.scores[configuration][label]
    return score.mean + _doubt(score, board.spread(label))


def _doubt(score: Score, spread: float) -> float:
    return _DOUBT * spread / math.sqrt(score.runs)
