"""How good recommendations are: regret by the half that no method saw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .halves import Floats, Halves
from .methods import Course
from .picks import RULES, pick_rows

#: Within this share of the grid's best a recommendation counts as the best; slower than the
#: default by more than it, as harm.
NEAR = 0.02
_DIGITS = 4


@dataclass(frozen=True)
class Score:
    """One seed of a method at one budget, under one rule of picking.

    Attributes:
        percent: the budget in per cent of the grid's runs; 0 for those that have none.
        runs: how many were made.
        gain: logarithm of the default's time over the picked configuration's, mean over sizes.
        regret: logarithm of the picked configuration's time over the best's, by size.
        slower: share of sizes at which the pick is slower than the default.
        is_false: a gain was claimed at a size where what was played has none; of campaigns only.
        seconds: processor time.
    """

    method: str
    percent: float
    pick: str
    seed: int
    runs: int
    gain: float
    regret: tuple[float, ...]
    slower: float
    seconds: float
    is_false: bool | None = None

    @property
    def key(self) -> tuple[str, float, str, int]:
        """What there is one score of."""
        return self.method, self.percent, self.pick, self.seed

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def score_course(halves: Halves, seed: int, course: Course) -> list[Score]:
    """The course's scores, one a rule."""
    found, sizes = [], np.arange(len(halves.sizes))
    for rule in RULES:
        picks = pick_rows(course.played, course.until, rule)
        if picks is None or (course.method.startswith("whole") and rule != "own"):
            continue
        times = halves.truth[picks, sizes]
        speedup = halves.truth[halves.default] - times
        gain = halves.held_means[halves.default] - halves.held_means[picks, sizes]
        claims = course.played.claims.get(course.until)
        played = halves.expected[halves.default] - halves.expected[picks, sizes]
        found.append(
            Score(
                course.method, course.percent, rule, seed, course.until,
                round(float(gain.mean()), _DIGITS),
                tuple(round(float(r), _DIGITS) for r in times - halves.best),
                round(float((speedup < -math.log1p(NEAR)).mean()), _DIGITS),
                round(course.played.seconds[course.until - 1], 2),
                None if claims is None else bool((played[claims] <= 0).any()),
            )
        )  # fmt: skip
    return found


def summarize(scores: Sequence[Score]) -> dict[str, Any]:
    """One row of the table, from the scores of all seeds of one method, budget and rule."""
    regret = np.array([score.regret for score in scores])
    near = (regret <= math.log1p(NEAR)).mean(axis=1)
    gain = np.array([score.gain for score in scores])
    median, ninth = np.expm1(np.quantile(regret, [0.5, 0.9]))
    claims = [score.is_false for score in scores if score.is_false is not None]
    return {
        "method": scores[0].method,
        "percent": scores[0].percent,
        "pick": scores[0].pick,
        "runs": round(float(np.mean([score.runs for score in scores])), 1),
        "seeds": len(scores),
        "gain": float(np.expm1(gain.mean())),
        "gain_error": _error(gain),
        "near": float(near.mean()),
        "near_error": _error(near),
        "median_regret": float(median),
        "ninth_regret": float(ninth),
        "slower": float(np.mean([score.slower for score in scores])),
        "false_claims": sum(claims) if claims else None,
        "seconds": float(np.mean([score.seconds for score in scores])),
    }


def _error(values: Floats) -> float:
    """Standard error of a mean over seeds."""
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else 0.0
