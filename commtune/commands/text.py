"""Words and columns for the commands: what ``commtune.text`` has, which reports share."""

from commtune.text import (
    EACH_BY_ITSELF,
    bandwidth,
    bandwidth_unit,
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
    three,
    wall,
    without_infinities,
)

__all__ = [
    "EACH_BY_ITSELF",
    "bandwidth",
    "bandwidth_unit",
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
    "three",
    "wall",
    "without_infinities",
]
