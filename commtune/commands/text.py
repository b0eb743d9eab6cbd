"""Words and columns for the commands: what ``commtune.text`` has, which reports share."""

from commtune.text import (
    EACH_BY_ITSELF,
    beside,
    columns,
    duration,
    emulated,
    node_hours,
    percent,
    ranks,
    ratio,
    size,
    split_note,
    wall,
    without_infinities,
)

__all__ = [
    "EACH_BY_ITSELF",
    "beside",
    "columns",
    "duration",
    "emulated",
    "node_hours",
    "percent",
    "ranks",
    "ratio",
    "size",
    "split_note",
    "wall",
    "without_infinities",
]
