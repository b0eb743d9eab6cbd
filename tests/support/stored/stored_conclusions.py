"""What a tuner would have said of runs that it did not make: evidence, profiles, a conclusion."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import mean, median, stdev
from typing import TYPE_CHECKING, Any

from commtune.model import (
    DEFAULT,
    Configuration,
    Interval,
    Phase,
    PointEvidence,
    Profile,
    RunRequest,
    RunResult,
    Tail,
    Verdict,
)
from commtune.model.profile import BoundarySide, RangeBoundary
from commtune.tuner.statistics.tails import measure_tail

if TYPE_CHECKING:
    from stored_campaigns import Made

TUNED = Configuration({"LIB_ALGORITHM": "tree", "LIB_EAGER_THRESHOLD": "65536"})
IDLE = Configuration({**TUNED, "LIB_IDLE": "1"})


@dataclass(frozen=True)
class Said:
    """What is said of a campaign's runs.

    Attributes:
        results: of the runs that count, each with what was asked for.
    """

    made: Made
    results: Sequence[tuple[RunRequest, RunResult]]

    @cached_property
    def _blocks(self) -> Sequence[Mapping[Configuration, RunResult]]:
        blocks: defaultdict[int, dict[Configuration, RunResult]] = defaultdict(dict)
        for request, result in self.results:
            if request.phase is Phase.CONFIRM:
                blocks[request.block][request.configuration] = result
        return [*blocks.values()]

    @cached_property
    def _pairs(self) -> Mapping[tuple[int, str], Sequence[tuple[float, float]]]:
        """Times of the default and of TUNED by size and speed, seconds."""
        pairs: defaultdict[tuple[int, str], list[tuple[float, float]]] = defaultdict(list)
        for block in self._blocks:
            for default, tuned in zip(
                block[DEFAULT].measurements, block[TUNED].measurements, strict=True
            ):
                speeds = {self._speed(default.canary_s), self._speed(tuned.canary_s)}
                if len(speeds) == 1:
                    stated = speeds | ({"all"} if self.made.whole else set())
                    for speed in stated:
                        pairs[default.bytes, speed].append((default.median_s, tuned.median_s))
        return pairs

    def points(self) -> list[PointEvidence]:
        """The evidence of TUNED by size and speed, with a wide interval of the mean."""
        return [
            _point(size, speed, found, len(found) / len(self._blocks))
            for (size, speed), found in sorted(self._pairs.items())
        ]

    def _tails(self, sizes: Sequence[int]) -> tuple[Tail, ...]:
        """What stands beside it, over all speeds."""
        return tuple(
            measure_tail(size, [self._pairs[size, "all"]])
            for size in sizes
            if (size, "all") in self._pairs
        )

    def _speed(self, canary_s: float | None) -> str:
        if not self.made.slow_share:
            return "all"
        return "slow" if (canary_s or 0) > 200e-9 else "fast"

    def profiles(self) -> list[Profile]:
        """Two ranges: from 64 KiB on what is faster, below that the default."""
        points = self.points()
        small = [s for s in self.made.sizes if s < 65536]
        large = [s for s in self.made.sizes if s >= 65536]
        found = []
        for sizes in (small, large):
            here = tuple(p for p in points if p.bytes in sizes)
            if here:
                faster = all(p.verdict is Verdict.FASTER for p in here)
                found.append(self._profile(sizes, here, points, faster=faster))
        return found

    def _profile(self, sizes: Sequence[int], here: Sequence[PointEvidence],
                 points: Sequence[PointEvidence], *, faster: bool) -> Profile:  # fmt: skip
        return Profile(
            name=f"allreduce-{sizes[0]}-{sizes[-1]}",
            operation="allreduce",
            backend="mpi-host",
            ranks=2,
            nodes=1,
            bytes_low=sizes[0],
            bytes_high=sizes[-1],
            configuration=TUNED if faster else DEFAULT,
            verdict=Verdict.FASTER if faster else Verdict.UNDECIDED,
            points=tuple(points if faster else here),
            level=0.998,
            note="" if faster else "no gain was shown here; one of up to 7% could still be hidden",
            simulated=self.made.simulated,
            boundaries=(_border(points),) if faster else (),
            tails=self._tails(sizes) if faster else (),
        )

    def conclusion(self) -> dict[str, Any]:
        """What a tuner would have concluded, with made-up ablations."""
        points = self.points()
        faster = [p for p in points if p.verdict is Verdict.FASTER]
        gains = {str(p.bytes): p.gain.ratio for p in faster}
        large = [s for s in self.made.sizes if s >= 65536]
        ranges = [{"low": large[0], "high": large[-1], "configuration": dict(TUNED),
                   "gains": gains}] if faster else []  # fmt: skip
        return {
            "version": 1,
            "replayed": self.made.replayed,
            "method": {"level": 0.95, "minimum_gain": 0.02, "tolerance": 0.05, "looks": 3,
                       "confirmations": self.made.confirmations},
            "budget": {"search_s": 30.0, "ablation_s": 5.0, "confirmation_s": 10.0},
            "spent": {},
            "noise": [{"bytes": s, "speed": "all", "share": 1.0, "spread": 0.03, "runs": 40,
                       "drift_per_hour": -0.004} for s in self.made.sizes],
            "confirmed": [{"configuration": dict(TUNED), "blocks": self.made.blocks,
                           "stopped": "decided" if faster else "futile",
                           "points": [_plain(p) for p in points]}] if points else [],
            "ablations": [self._ablation()] if faster else [],
            "answers": {
                "one": {"configuration": dict(TUNED), "gains": gains}
                if faster else None,
                "ranges": ranges,
                "trade_off": {"one_mean_gain": 1.17, "ranges_mean_gain": 1.2,
                              "lost_by_one": {str(self.made.sizes[0]): 0.09},
                              "weighted": self.made.weighted} if faster else {},
            },
            "detectable": {str(s): 0.031 if s < 65536 else 0.044 for s in self.made.sizes},
            "more": {"runs": 120, "seconds": 35.0, "why": "1 KiB is undecided"},
            "not_followed": [{"configuration": {"LIB_ALGORITHM": "ring"}, "followed": "replaced",
                              "why": "sums as recursive_doubling does at every size"}],
            "set_aside": [["LIB_ALGORITHM", "hang"]],
        }  # fmt: skip

    def _ablation(self) -> dict[str, Any]:
        found = _ablation(self.made.sizes)
        if self.made.refined:
            before = {**IDLE, "LIB_EAGER_THRESHOLD": "4096"}
            found |= {"from": before, "gain_kept": 1.31}
        return found


def _point(
    size: int, speed: str, pairs: Sequence[tuple[float, float]], share: float
) -> PointEvidence:
    logs = [math.log(default / tuned) for default, tuned in pairs]
    half = 4 * stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else 1.0
    middle = mean(logs)
    gain = Interval(math.exp(middle), math.exp(middle - half), math.exp(middle + half), len(logs))
    verdict = (
        Verdict.FASTER if gain.low > 1.02
        else Verdict.DEFAULT if gain.high < 1.02
        else Verdict.UNDECIDED
    )  # fmt: skip
    default_s, tuned_s = median(p[0] for p in pairs), median(p[1] for p in pairs)
    return PointEvidence("allreduce", size, speed, default_s, tuned_s, gain, verdict, share)


def _plain(point: PointEvidence) -> dict[str, Any]:
    return {
        "bytes": point.bytes, "speed": point.speed, "share": point.share,
        "default_s": point.default_s, "tuned_s": point.tuned_s, "ratio": point.gain.ratio,
        "low": point.gain.low, "high": point.gain.high, "pairs": point.gain.pairs,
        "verdict": str(point.verdict),
        "more_pairs": 40 if point.verdict is Verdict.UNDECIDED else None,
    }  # fmt: skip


def _border(points: Sequence[PointEvidence]) -> RangeBoundary:
    """Between the last size at which the default stays and the first at which it does not."""
    below = max(p.bytes for p in points if p.bytes < 65536)
    sides = (
        BoundarySide(bytes=p.bytes, configuration=TUNED, **vars(p.gain))
        for p in points
        if p.bytes in (below, 65536)
    )
    return RangeBoundary(below, 65536, tuple(sides))


def _ablation(sizes: Sequence[int]) -> dict[str, Any]:
    """Tree helps large sizes and hurts small ones; the idle variable does nothing."""

    def effect(name: str, *, large: float, small: float) -> dict[str, Any]:
        ratios = {s: large if s >= 65536 else small if s < 1024 else 1.0 for s in sizes}
        points = [{"bytes": s, "speed": "all", "ratio": r, "low": r * 0.98, "high": r * 1.02,
                   "pairs": 20} for s, r in ratios.items()]  # fmt: skip
        return {"names": [name], "values": {name: IDLE[name]}, "kept": large > 1,
                "points": points}  # fmt: skip

    return {
        "from": dict(IDLE), "to": dict(TUNED), "blocks": 20, "gain_kept": 0.98,
        "variables": [
            effect("LIB_ALGORITHM", large=1.25, small=0.91),
            effect("LIB_EAGER_THRESHOLD", large=1.15, small=1.0),
            effect("LIB_IDLE", large=1.0, small=1.0),
        ],
    }  # fmt: skip
