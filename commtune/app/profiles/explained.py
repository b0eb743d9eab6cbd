"""An answer to "what is best" with all that explains it, as an object and as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from commtune.app.profiles.best import BestRow, Standing, Support
from commtune.model import Configuration, PointEvidence, Verdict

if TYPE_CHECKING:
    from commtune.app.profiles.nominal_share import Share


class Answer(StrEnum):
    """What to do, as a code."""

    RECOMMENDED = "recommended"
    KEEP_DEFAULT = "keep-default"
    LIKELY = "likely"
    NOT_MEASURED = "not-measured"
    NEIGHBOURS_DISAGREE = "neighbours-disagree"
    ANOTHER_STACK = "another-stack"


@dataclass(frozen=True)
class Neighbour:
    """What is best at a measured size next to the one that was asked for.

    Attributes:
        bytes: that size.
        why: why the default stays there, in words; empty where it doesn't.
    """

    bytes: int
    row: BestRow
    why: str


@dataclass(frozen=True)
class LikelyProfile:
    """A profile whose speedup is likely, and not proven.

    Attributes:
        profile: ``CAMPAIGN/PROFILE``.
    """

    profile: str
    configuration: Configuration
    points: tuple[PointEvidence, ...]
    note: str


@dataclass(frozen=True)
class Explained:
    """An answer with its evidence and all that explains it.

    Attributes:
        why: why the default stays, in words; empty where it doesn't.
        neighbours: below and above a size that was not measured.
        likely: what may be better than the default.
        share: of the nominal bandwidth; ``None`` where nobody knows it.
    """

    row: BestRow
    why: str
    neighbours: tuple[Neighbour, ...] = ()
    likely: LikelyProfile | None = None
    share: Share | None = None

    @property
    def support(self) -> Support:
        """What it rests on."""
        return Support.of([one.row for one in self.neighbours])

    def plain(self) -> dict[str, Any]:
        """Plain data for JSON.

        ``answer`` is a code of ``Answer``; ``reason`` says why the default stays: ``ruled-out``
        or ``inconclusive``, with ``why`` in words. ``environment`` is what to set, with pinned
        variables; empty unless that is ``recommended`` and was measured on a real machine.
        """
        answer = _answer_code(self.row, self.support, is_likely=self.likely is not None)
        stays = answer in (Answer.KEEP_DEFAULT, Answer.LIKELY)
        is_usable = answer is Answer.RECOMMENDED and not self.row.simulated
        near = [
            {**row_data(one.row), "bytes": one.bytes, "why": one.why} for one in self.neighbours
        ]
        return {
            "answer": answer,
            "reason": _reason(self.row) if stays else "",
            **row_data(self.row),
            "environment": {**self.row.pinned, **self.row.configuration} if is_usable else {},
            "why": self.why,
            "likely": _likely_data(self.likely) if self.likely else None,
            "of_nominal": self.share.plain() if self.share else None,
            "support": self.support,
            "neighbours": near,
        }


def row_data(row: BestRow) -> dict[str, Any]:
    """An answer with its evidence alone."""
    return {
        **{name: getattr(row, name) for name in row.__dataclass_fields__},
        "configuration": dict(row.configuration),
        "conditions": dict(vars(row.conditions)),
        "finding": row.standing,
        "points": [_point_data(point) for point in row.points],
    }


def _answer_code(row: BestRow, support: Support, *, is_likely: bool) -> Answer:
    if support is Support.DISAGREE:
        return Answer.NEIGHBOURS_DISAGREE
    if row.verdict == Verdict.FASTER:
        return Answer.RECOMMENDED
    return Answer.LIKELY if is_likely else Answer.KEEP_DEFAULT


def _reason(row: BestRow) -> str:
    return "ruled-out" if row.standing is Standing.NONE else "inconclusive"


def _likely_data(likely: LikelyProfile) -> dict[str, Any]:
    return {
        **vars(likely),
        "configuration": dict(likely.configuration),
        "points": [_point_data(point) for point in likely.points],
    }


def _point_data(point: PointEvidence) -> dict[str, Any]:
    # What asdict makes, in a tenth of its time: answers have dozens of these.
    return {**vars(point), "gain": dict(vars(point.gain))}
