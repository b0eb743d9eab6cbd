"""The output of a traced run, cut by the benchmark's own lines."""

from __future__ import annotations

import re

_SIZE = re.compile(r"(?:.*\s)?commtune-bench: size (\d+)")


def by_size(output: str) -> dict[int, list[str]]:
    """The lines that were printed at each size, bytes; what came before the first is left out."""
    sections: dict[int, list[str]] = {}
    current: list[str] = []
    for line in output.splitlines():
        if found := _SIZE.fullmatch(line.strip()):
            current = sections.setdefault(int(found[1]), [])
        else:
            current.append(line)
    return sections
