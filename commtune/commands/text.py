"""Words and columns for the commands: what ``commtune.text`` has, which reports share."""

from commtune.text import columns, duration, percent, ratio, size, wall

__all__ = ["columns", "duration", "percent", "ratio", "size", "wall"]
