"""Checks whether a measured time is physically possible; a failing program may print others."""

from __future__ import annotations

#: Seconds: three clock cycles at 3 GHz, less than a call of a library takes.
_SHORTEST_S = 1e-9
#: Bytes per second: ten times what memory on a package moves.
_FASTEST = 1e14


def problem_of_time(seconds: float, size: int, wall_s: float | None = None) -> str:
    """Returns why a time is impossible; empty if it isn't.

    Args:
        size: of the operation, bytes.
        wall_s: seconds of the whole run, where that is known.
    """
    if not _SHORTEST_S <= seconds < float("inf"):
        return f"{seconds:.3g} s is no time that a clock measures"
    if size > _FASTEST * seconds:
        return f"{size} bytes in {seconds:.3g} s are faster than any memory"
    if wall_s is not None and seconds > wall_s:
        return f"{seconds:.3g} s are longer than the whole run of {wall_s:.3g} s"
    return ""
