"""How long a run may take."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from commtune.model import Timing, Workload

#: The time limit of a run: this many times the median of others, and at least this many seconds. A
#: slow machine state makes a run three times longer; a run that hangs wastes the budget.
_LIMIT_FACTOR, _LIMIT_FLOOR_S = 10.0, 3.0
#: Before any run: this many times the requested measuring time, and at least this many seconds.
_FIRST_FACTOR, _FIRST_LIMIT_S = 3.0, 60.0


def first_limit(workload: Workload, timing: Timing) -> float:
    """Returns the wall seconds that a run may take before any such run is known."""
    measurements = len(workload.sizes) * workload.measured_a_size
    return max(_FIRST_LIMIT_S, _FIRST_FACTOR * measurements * timing.time_cap_s)


def time_limit(walls_s: Sequence[float], first_s: float = _FIRST_LIMIT_S) -> float:
    """Returns the wall seconds that a run may take, given those of others; else ``first_s``."""
    return max(_LIMIT_FLOOR_S, _LIMIT_FACTOR * median(walls_s)) if walls_s else first_s
