"""Words and columns for the commands: what ``commtune.text`` has, which reports share."""

from commtune.text import (
    EACH_BY_ITSELF,
    columns,
    duration,
    node_hours,
    percent,
    ranks,
    ratio,
    size,
    wall,
    without_infinities,
)

__all__ = [
    "EACH_BY_ITSELF",
    "columns",
    "duration",
    "node_hours",
    "percent",
    "ranks",
    "ratio",
    "size",
    "wall",
    "without_infinities",
]
