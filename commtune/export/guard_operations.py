"""Guard operations: whether a profile is known to leave other operations unharmed.

A profile is measured on one operation. A module that people load for everything also changes all
other operations; so other operations are measured under the profile, and each must be shown not
to be slower than the default by more than a tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass

from commtune.model import PointEvidence, Profile
from commtune.tuner.outcome.displayed_points import displayed_points

#: A guard operation may be slower by this share, at the lower end of its interval.
DEFAULT_TOLERANCE = 0.05


@dataclass(frozen=True)
class GuardVerdict:
    """What is known of the operations that a profile wasn't made for.

    Attributes:
        tolerance: share by which a guard may be slower.
        unharmed: operations whose every point is shown not to be slower than that.
        hurt: points that are slower, with the whole interval.
        unclear: points whose interval reaches below, but not all of it.
    """

    tolerance: float
    unharmed: tuple[str, ...]
    hurt: tuple[PointEvidence, ...]
    unclear: tuple[PointEvidence, ...]

    @property
    def hold(self) -> bool:
        """Whether at least one other operation was measured, and none is or may be hurt."""
        return bool(self.unharmed) and not self.hurt and not self.unclear


def judge_guards(profile: Profile, tolerance: float = DEFAULT_TOLERANCE) -> GuardVerdict:
    """Reads the guard evidence of a profile."""
    floor = 1.0 - tolerance
    measured = [point for point in profile.guards if point.operation != profile.operation]
    others = displayed_points(measured)
    hurt = tuple(point for point in others if point.gain.high < floor)
    unclear = tuple(p for p in others if p.gain.low < floor and p not in hurt)
    suspects = {point.operation for point in (*hurt, *unclear)}
    unharmed = sorted({point.operation for point in others} - suspects)
    return GuardVerdict(tolerance, tuple(unharmed), hurt, unclear)
