"""Which variables of a winner probably matter, by all runs of the search together.

The search has run hundreds of configurations that share values with the winner. A sum of one
effect for each value, fitted to all of them, knows each far better than the few runs of the
winner do. It misses effects of variables together, and it was chosen among; so it only proposes a
small configuration, which the ablation then measures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from commtune.model import Configuration
from commtune.spaces.space import Space
from commtune.tuner.statistics.importance import design_of, drawn_in

#: A value is proposed when its effect is so many standard errors above 0 ...
_SURE = 2.0
#: ... and at least this share of all such effects of the configuration.
_LEAST_SHARE = 0.05
_RIDGE = 1.0
_FEWEST_RUNS = 20

#: Parameters with their values; ``None`` for unset.
Assignment = Mapping[str, str | None]


def screen_parameters(
    space: Space,
    configuration: Configuration,
    assignments: Sequence[Assignment],
    scores: Sequence[float],
) -> Configuration:
    """The configuration with only those parameters that seem to matter; itself if nobody knows.

    Args:
        assignments: of each run of the search, the values of all parameters.
        scores: logarithm of the gain of each run, in the same order; higher is better.
    """
    if len(scores) < _FEWEST_RUNS:
        return configuration
    mine = {n: v for n, v in space.assignment(configuration).items() if v is not None}
    found = _effects(mine, assignments, scores)
    sure = {name: mean for name, (mean, error) in found.items() if mean > _SURE * error}
    total = sum(sure.values())
    chosen = [name for name, mean in sure.items() if mean >= _LEAST_SHARE * total]
    if not chosen and found:
        chosen = [max(found, key=lambda name: found[name][0])]
    return _only(space, configuration, list(mine), chosen)


def _effects(
    mine: Mapping[str, str], assignments: Sequence[Assignment], scores: Sequence[float]
) -> dict[str, tuple[float, float]]:
    """Effect of each value against leaving it unset, with its standard error."""
    design, index = design_of(assignments)
    # One disturbed run must not decide, so wild scores are drawn in.
    observed = drawn_in(np.asarray(scores, dtype=np.float64))
    observed = observed - observed.mean()
    inverse = np.linalg.inv(design.T @ design + _RIDGE * np.eye(design.shape[1]))
    fitted = inverse @ design.T @ observed
    left = observed - design @ fitted
    freedom = max(1.0, len(scores) - float(np.trace(design @ inverse @ design.T)))
    variance = float(left @ left) / freedom
    found = {}
    for name, value in mine.items():
        contrast = np.zeros(len(index))
        if (name, value) in index and (name, None) in index:
            contrast[index[name, value]], contrast[index[name, None]] = 1.0, -1.0
            error = float(np.sqrt(variance * contrast @ inverse @ contrast))
            found[name] = (float(contrast @ fitted), error)
    return found


def _only(
    space: Space, configuration: Configuration, names: Sequence[str], chosen: Sequence[str]
) -> Configuration:
    """The configuration with only the chosen parameters, and those that they can't do without."""
    wanted = set(chosen)
    for name in reversed(names):
        lacking = space.without_parameters(configuration, [name])
        kept = space.assignment(lacking) if lacking is not None else {}
        if name not in wanted and any(kept.get(one) is None for one in wanted):
            wanted.add(name)
    out = [name for name in names if name not in wanted]
    small = space.without_parameters(configuration, out) if out else None
    return small if small is not None and not small.is_default else configuration
