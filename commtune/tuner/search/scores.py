"""Ranges of sizes that a report describes together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class SizeRange:
    """Sizes that a report describes together.

    Attributes:
        label: name for people, ``64 KiB to 256 KiB``.
        sizes: bytes, ascending.
    """

    label: str
    sizes: tuple[int, ...]


def split_ranges(sizes: Sequence[int], label: str = "") -> tuple[SizeRange, ...]:
    """Splits sizes at 16 KiB and 512 KiB, where protocols and algorithms commonly change.

    For display only: the search has no ranges, and those of profiles come from the evidence.
    """
    parts = (
        ("small", [s for s in sizes if s < 16 * 1024]),
        ("middle", [s for s in sizes if 16 * 1024 <= s < 512 * 1024]),
        ("large", [s for s in sizes if s >= 512 * 1024]),
    )
    return tuple(SizeRange(f"{label}{name}", tuple(sorted(p))) for name, p in parts if p)
