"""Where size ranges part, with the evidence on both sides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from commtune.model import Configuration, Profile


@dataclass(frozen=True)
class BoundarySide:
    """What a configuration does at one of the two sizes; the ratio above 1: it is faster."""

    bytes: int
    configuration: Configuration
    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class RangeBoundary:
    """Between two neighbouring measured sizes, bytes."""

    below: int
    above: int
    sides: tuple[BoundarySide, ...]


def find_boundaries(profiles: Iterable[Profile]) -> tuple[RangeBoundary, ...]:
    """The borders that profiles name, each once, from the smallest size up."""
    found: dict[int, RangeBoundary] = {}
    for profile in profiles:
        for row in profile.details.get("boundaries") or ():
            border = _border(row)
            found.setdefault(border.below, border)
    return tuple(found[below] for below in sorted(found))


def _border(row: Mapping[str, Any]) -> RangeBoundary:
    sides = [_side(side) for side in row.get("evidence") or () if _is_whole(side)]
    sides.sort(key=lambda side: (side.configuration.key, side.bytes))
    return RangeBoundary(int(row["below"]), int(row["from"]), tuple(sides))


def _is_whole(side: Mapping[str, Any]) -> bool:
    """An open end of an interval is stored as null: then the side says nothing."""
    return all(side.get(key) is not None for key in ("ratio", "low", "high"))


def _side(side: Mapping[str, Any]) -> BoundarySide:
    return BoundarySide(
        bytes=int(side["bytes"]),
        configuration=Configuration(side.get("configuration") or {}),
        ratio=float(side["ratio"]),
        low=float(side["low"]),
        high=float(side["high"]),
    )
