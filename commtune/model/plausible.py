"""Which times an operation can have: a program that fails may print others."""

from __future__ import annotations

#: Three clock cycles at 3 GHz, seconds: less than a call of a library takes.
_SHORTEST_S = 1e-9
#: Bytes per second; memory on a package moves a tenth of it.
_FASTEST = 1e14


def problem_of_time(seconds: float, size: int, wall_s: float | None = None) -> str:
    """Why a measured time can't be one; empty where it can.

    Args:
        size: in bytes, of the operation.
        wall_s: what the whole run took, where that is known.
    """
    if not _SHORTEST_S <= seconds < float("inf"):
        return f"{seconds:.3g} s is no time that a clock measures"
    if size > _FASTEST * seconds:
        return f"{size} bytes in {seconds:.3g} s are faster than any memory"
    if wall_s is not None and seconds > wall_s:
        return f"{seconds:.3g} s are longer than the whole run of {wall_s:.3g} s"
    return ""
