"""What an exporter is given, and what a format is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from commtune.model import PointEvidence, Profile
from commtune.tuner.outcome.displayed_points import displayed_points


@dataclass(frozen=True)
class ExportDocument:
    """A profile with its origin.

    Attributes:
        campaign: name of the campaign that the profile came from.
        system, fingerprint: name and key of the machine that it was measured on.
        stack: library versions and the like, for a person; may have several lines.
        created: when the profile was made, ISO 8601.
        commtune_version: version that measured it.
        pinned: variables that were set in every run, the default's too; exported as well, because
            the speedup was seen with them.
        unset: variables of the space that the profile leaves unset. They are named in the file,
            and never unset by it: a user's variable is the user's.
        level: at which all intervals of the campaign hold together; ``None`` where nobody knows.
    """

    profile: Profile
    campaign: str
    system: str
    fingerprint: str
    stack: str
    created: str
    commtune_version: str
    pinned: Mapping[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    level: float | None = None

    def variables(self) -> dict[str, str]:
        """All that the file sets: pinned ones first, then the profile's."""
        own = self.profile.configuration
        pinned = {name: value for name, value in self.pinned.items() if name not in own}
        return {**dict(sorted(pinned.items())), **own}


# A profile is measured on one operation. A module that people load for everything also changes all
# other operations; so other operations (guards) are measured under the profile, and each must be
# shown not to be slower than the default by more than a tolerance.
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

    @classmethod
    def judge(cls, profile: Profile, tolerance: float) -> GuardVerdict:
        """Reads the guard evidence of a profile."""
        floor = 1.0 - tolerance
        measured = [point for point in profile.guards if point.operation != profile.operation]
        others = displayed_points(measured)
        hurt = tuple(point for point in others if point.gain.high < floor)
        unclear = tuple(p for p in others if p.gain.low < floor and p not in hurt)
        suspects = {point.operation for point in (*hurt, *unclear)}
        unharmed = sorted({point.operation for point in others} - suspects)
        return cls(tolerance, tuple(unharmed), hurt, unclear)

    @property
    def hold(self) -> bool:
        """Whether at least one other operation was measured, and none is or may be hurt."""
        return bool(self.unharmed) and not self.hurt and not self.unclear


@dataclass(frozen=True)
class Format:
    """A form that a profile can be written in.

    Attributes:
        write: makes the file's text from document, remarks and what is known of guards.
        load: how to load the file.
        undo: how to take the settings back; gets the names of the variables.
        unfit: why the form can't carry a value; empty where it can.
        general: made to be loaded for everything, so that it needs guard operations.
    """

    name: str
    write: Callable[[ExportDocument, list[str], GuardVerdict], str]
    load: str
    undo: Callable[[Sequence[str]], str]
    unfit: Callable[[str], str] = lambda _: ""
    general: bool = False


def comment_lines(lines: list[str], mark: str) -> str:
    """Lines as comments, each closed by a newline."""
    return "".join(f"{mark} {line}".rstrip() + "\n" for line in lines)
