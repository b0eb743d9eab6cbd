"""Answers to the question which configuration is best, with explanations, also as JSON data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from commtune.app.profiles.best import BestRow
from commtune.model import Configuration, PointEvidence, Strength, Tail, Verdict
from commtune.wording import INCONCLUSIVE, describe_verdict

if TYPE_CHECKING:
    from commtune.app.profiles.nominal_share import Share


class Answer(StrEnum):
    """The code of an answer."""

    RECOMMENDED = "recommended"
    KEEP_DEFAULT = "keep-default"
    LIKELY = "likely"
    NOT_MEASURED = "not-measured"
    NEIGHBOURS_DISAGREE = "neighbours-disagree"
    ANOTHER_STACK = "another-stack"


#: Why the default is kept, of what is not inconclusive.
_REASONS = {Verdict.DEFAULT: "ruled-out", Verdict.WITHDRAWN: "withdrawn"}


class Support(StrEnum):
    """The basis of an answer about a size; the values are codes of ``--json``."""

    MEASURED = "measured"
    AGREE = "neighbours-agree"
    DISAGREE = "neighbours-disagree"


@dataclass(frozen=True)
class Neighbour:
    """The answer at a measured size next to the requested one.

    Attributes:
        why: why the default is kept there; empty if it isn't.
    """

    bytes: int
    row: BestRow
    why: str


@dataclass(frozen=True)
class LikelyProfile:
    """A profile whose speedup is likely, but not proven.

    Attributes:
        profile: ``CAMPAIGN/PROFILE``.
    """

    profile: str
    configuration: Configuration
    points: tuple[PointEvidence, ...]
    note: str
    tails: tuple[Tail, ...] = ()


@dataclass(frozen=True)
class Explained:
    """An answer with its evidence and explanations.

    Attributes:
        why: why the default is kept; empty if it isn't.
        strength: what the answer's profile rests on.
        neighbours: answers at the sizes below and above one that was not measured.
        likely: a profile that may be better than the default.
        share: reached share of the nominal bandwidth; ``None`` if unknown.
        accepted: the likely profile that is used in the place of the default, though unproven.
        tail: what stands beside the speedup at the row's size; ``None`` if that isn't stored.
    """

    row: BestRow
    why: str
    strength: Strength
    neighbours: tuple[Neighbour, ...] = ()
    likely: LikelyProfile | None = None
    share: Share | None = None
    accepted: LikelyProfile | None = None
    tail: Tail | None = None

    @property
    def support(self) -> Support:
        """Whether the size was measured, or else whether its neighbours have one answer."""
        used = {one.row.configuration for one in self.neighbours}
        return (Support.MEASURED, Support.AGREE, Support.DISAGREE)[min(len(used), 2)]

    @property
    def code(self) -> Answer:
        if self.support is Support.DISAGREE:
            return Answer.NEIGHBOURS_DISAGREE
        if self.row.verdict == Verdict.FASTER:
            return Answer.RECOMMENDED
        return Answer.KEEP_DEFAULT if self.likely is None else Answer.LIKELY

    @property
    def message(self) -> str:
        """What to use, in words."""
        if self.accepted:
            return f"{self.accepted.profile} ({describe_verdict(Verdict.LIKELY)})"
        if self.support is Support.DISAGREE:
            return "not measured; the neighbours disagree"
        return describe_choice(self.row, self.why)

    def accept_likely(self) -> Explained:
        """Returns the answer with its likely profile in use, unless the neighbours disagree."""
        return self if self.support is Support.DISAGREE else replace(self, accepted=self.likely)

    def plain(self) -> dict[str, Any]:
        """Returns JSON data.

        ``answer`` is a code of ``Answer``. ``reason`` is why the default is kept, ``ruled-out``,
        ``withdrawn`` or ``inconclusive``, with ``why`` as text. ``environment`` has the variables
        to set, with pinned ones; it is empty unless measured on a real machine and
        ``recommended``, or ``likely`` and accepted.
        """
        stays = self.code in (Answer.KEEP_DEFAULT, Answer.LIKELY)
        is_usable = self.code is Answer.RECOMMENDED or self.accepted is not None
        reason = _REASONS.get(self.row.finding, "inconclusive")
        used = {**self.row.pinned, **(self.accepted or self.row).configuration}
        near = [
            {**row_data(one.row), "bytes": one.bytes, "why": one.why} for one in self.neighbours
        ]
        return {
            "answer": self.code,
            "reason": reason if stays else "",
            **row_data(self.row),
            "tail": dict(vars(self.tail)) if self.tail else None,
            "environment": used if is_usable and not self.row.simulated else {},
            "why": self.why,
            "strength": dict(vars(self.strength)),
            "likely": _likely_data(self.likely) if self.likely else None,
            "of_nominal": self.share.plain() if self.share else None,
            "support": self.support,
            "neighbours": near,
        }


def describe_choice(row: BestRow, why: str) -> str:
    """Returns what an answer says to use: a profile, or the default, and why."""
    if row.verdict == Verdict.FASTER:
        return f"{row.campaign}/{row.name}"
    if not why:
        return "keep the default"
    doubt = f"{INCONCLUSIVE}: " if row.finding is Verdict.UNDECIDED else ""
    return f"keep the default ({doubt}{why})"


def row_data(row: BestRow) -> dict[str, Any]:
    """Returns an answer with its evidence, but without explanations, as JSON data."""
    return {
        **{name: getattr(row, name) for name in row.__dataclass_fields__},
        "conditions": dict(vars(row.conditions)),
        "finding": row.finding,
        "points": [_point_data(point) for point in row.points],
    }


def _likely_data(likely: LikelyProfile) -> dict[str, Any]:
    points = [_point_data(point) for point in likely.points]
    return {**vars(likely), "points": points, "tails": [dict(vars(one)) for one in likely.tails]}


def _point_data(point: PointEvidence) -> dict[str, Any]:
    # The same as asdict in a tenth of the time: answers have dozens of points.
    return {**vars(point), "gain": dict(vars(point.gain))}
