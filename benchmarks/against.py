"""Two programs that measure the same, launched in turn: medians, and how far they are apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import gpu_launches as gl
from gpu_launches import Json

#: Turn and seconds of each launch, per size (bytes).
Times = Mapping[int, Sequence[tuple[int, float]]]

HEAD = ("ratio", "A/A ours", "A/A theirs", "n", "within")


@dataclass(frozen=True)
class Bounds:
    """How far apart two programs may be.

    Attributes:
        shares: from so many bytes on, how far from 1 the ratio may be; descending.
        small: below so many bytes, a difference of ``small_s`` is within the bounds too.
    """

    shares: Sequence[tuple[int, float]]
    small: int
    small_s: float


@dataclass(frozen=True)
class Compared:
    """One size: medians over launches (seconds), and what to hold their ratio against."""

    bytes: int
    ours_s: float
    theirs_s: float
    ours_own: float | None
    theirs_own: float | None
    launches: int

    @property
    def ratio(self) -> float:
        """Ours over theirs."""
        return self.ours_s / self.theirs_s

    def within(self, bounds: Bounds) -> bool:
        """Whether the ratio is within the bounds."""
        share = next(share for least, share in bounds.shares if self.bytes >= least)
        gap_s = abs(self.ours_s - self.theirs_s)
        return abs(self.ratio - 1) <= share or (
            self.bytes < bounds.small and gap_s <= bounds.small_s
        )

    def cells(self, bounds: Bounds) -> list[str]:
        """A row of a table: size, both times (us), then what ``HEAD`` names."""
        return [
            gl.size_words(self.bytes),
            f"{self.ours_s * 1e6:.2f}",
            f"{self.theirs_s * 1e6:.2f}",
            f"{self.ratio:.3f}",
            gl.shown(self.ours_own, ".3f"),
            gl.shown(self.theirs_own, ".3f"),
            str(self.launches),
            "yes" if self.within(bounds) else "no",
        ]


def own_ratio(times: Sequence[tuple[int, float]]) -> float | None:
    """Median of a program's even rounds over that of its odd ones: what chance alone does."""
    even = gl.median([seconds for turn, seconds in times if turn % 2 == 0])
    odd = gl.median([seconds for turn, seconds in times if turn % 2 == 1])
    return even / odd if even and odd else None


def compare(ours: Times, theirs: Times) -> list[Compared]:
    """All sizes that both programs measured."""
    rows = []
    for size in sorted(set(ours) & set(theirs)):
        ours_s = gl.median([seconds for _, seconds in ours[size]])
        theirs_s = gl.median([seconds for _, seconds in theirs[size]])
        if ours_s and theirs_s:
            own = own_ratio(ours[size]), own_ratio(theirs[size])
            launches = min(len(ours[size]), len(theirs[size]))
            rows.append(Compared(size, ours_s, theirs_s, *own, launches))
    return rows


def end(document: Json, rows: Sequence[Compared], bounds: Bounds) -> None:
    """Prints how much is within the bounds, and what failed."""
    print(f"\nwithin the bounds: {sum(row.within(bounds) for row in rows)} of {len(rows)}")
    for launch in document["launches"]:
        if launch["exit_code"] != 0:
            print(f"failed: {launch['command']}: {launch['output'].strip()[-300:]}")
