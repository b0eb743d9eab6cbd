"""How good recommendations are: regret by the half that no method saw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .halves import Floats, Halves
from .methods import Course
from .picks import RULES, pick_rows

#: Within this share of the grid's best a recommendation counts as the best; slower than the
#: default by more than it, as harm.
NEAR = 0.02


@dataclass(frozen=True)
class Score:
    """One seed of a method at one budget, under one rule of picking.

    Attributes:
        regret: logarithm of the picked configuration's time over the best's, by size.
        speedup: logarithm of the default's time over the picked one's, by size.
        is_false: a gain was claimed at a size where there is none; of campaigns only.
    """

    method: str
    percent: float
    rule: str
    runs: int
    regret: Floats
    speedup: Floats
    seconds: float
    is_false: bool | None = None


def score_course(name: str, halves: Halves, course: Course) -> list[Score]:
    """The course's scores, one a rule."""
    found = []
    for rule in RULES:
        picks = pick_rows(course.played, course.until, rule)
        if picks is None or (name.startswith("whole") and rule != "own"):
            continue
        sizes = np.arange(len(halves.sizes))
        times = halves.truth[picks, sizes]
        speedup = halves.truth[halves.default] - times
        claims = course.played.claims.get(course.until)
        is_false = None if claims is None else bool((speedup[claims > 0] <= 0).any())
        seconds = course.played.seconds[course.until - 1]
        found.append(
            Score(name, course.percent, rule, course.until, times - halves.best, speedup,
                  seconds, is_false)
        )  # fmt: skip
    return found


def summarize(scores: Sequence[Score]) -> dict[str, Any]:
    """One row of the table, from the scores of all seeds of one method, budget and rule."""
    regret = np.array([score.regret for score in scores])
    near = (regret <= math.log1p(NEAR)).mean(axis=1)
    speedup = np.array([score.speedup for score in scores])
    median, ninth = np.quantile(regret, [0.5, 0.9])
    claims = [score.is_false for score in scores if score.is_false is not None]
    return {
        "method": scores[0].method,
        "percent": scores[0].percent,
        "pick": scores[0].rule,
        "runs": round(float(np.mean([score.runs for score in scores])), 1),
        "seeds": len(scores),
        "near": round(float(near.mean()), 4),
        "near_error": round(float(near.std(ddof=1) / math.sqrt(len(near))), 4)
        if len(near) > 1
        else None,
        "median_regret": round(math.expm1(median), 5),
        "ninth_regret": round(math.expm1(ninth), 5),
        "slower_than_default": round(float((speedup < -math.log1p(NEAR)).mean()), 4),
        "false_claims": sum(claims) if claims else None,
        "seconds": round(float(np.mean([score.seconds for score in scores])), 3),
    }
