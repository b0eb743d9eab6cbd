"""Defines the input of exporters, export formats, and the remarks in every exported file."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from commtune import formatting as text
from commtune.errors import ExportRefused
from commtune.model import PointEvidence, Profile, Strength
from commtune.tuner.outcome.displayed_points import displayed_points
from commtune.tuner.statistics.machine_states import ALL
from commtune.wording import (
    describe_finding,
    describe_strength,
    format_simultaneous,
    point_cells,
    point_columns,
)


@dataclass(frozen=True)
class ExportDocument:
    """A profile with its origin.

    Attributes:
        system, fingerprint: name and key of the machine that measured it.
        stack: library versions and the like in words, possibly several lines.
        created: when the profile was made, ISO 8601.
        pinned: variables set in every run, including the default's. They are exported too, since
            the speedup was measured with them.
        unset: variables of the space that the profile leaves unset. The file names them, but
            never unsets them, as users may set them on purpose.
        level: the level at which all intervals of the campaign hold simultaneously; ``None`` if
            unknown.
    """

    profile: Profile
    campaign: str
    system: str
    fingerprint: str
    stack: str
    created: str
    commtune_version: str
    strength: Strength
    pinned: Mapping[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    level: float | None = None

    def variables(self) -> dict[str, str]:
        """Returns all variables that the file sets: pinned ones first, then the profile's."""
        own = self.profile.configuration
        pinned = {name: value for name, value in self.pinned.items() if name not in own}
        return {**dict(sorted(pinned.items())), **own}

    @cached_property
    def guards(self) -> GuardVerdict:
        """The verdict on other operations under the profile."""
        return GuardVerdict.judge(self.profile)

    @property
    def title(self) -> str:
        """A title of one line."""
        profile = self.profile
        sizes = text.format_sizes(profile.bytes_low, profile.bytes_high)
        return one_line(
            f"commtune profile {profile.name}: settings for {profile.operation}, {sizes}"
        )

    def scope(self) -> list[str]:
        """Returns sentences on what the settings are for, and on their effect beyond that."""
        guards = self.guards
        lines = [
            f"For {self.profile.operation} in that range of sizes only: that is what was "
            "measured.",
            *self.borders(),
            "The settings change every operation of a program that starts under them.",
        ]
        if guards.unharmed:
            names = ", ".join(guards.unharmed)
            share = f"{100 * GUARD_TOLERANCE:.3g}"
            lines.append(f"Guard operations measured too, each at most {share} % slower: {names}.")
        for word, points in (("SLOWER", guards.hurt), ("POSSIBLY SLOWER", guards.unclear)):
            lines += [
                f"{word}: {one.operation}: {text.describe_speedup(one.gain, one.bytes, one.speed)}"
                for one in points
            ]
        if guards.unclear and not (guards.unharmed or guards.hurt):
            lines.append("Guard operations were measured; they don't settle what is slower.")
        elif not (guards.unharmed or guards.hurt):
            lines.append("No guard operations were measured: others may be slower under them.")
        return lines

    def borders(self) -> Iterator[str]:
        """Yields a sentence for each border of the size range, which is between measured sizes."""
        profile = self.profile
        for border in profile.boundaries:
            if border.below == profile.bytes_high or border.above == profile.bytes_low:
                sides = map(text.format_size, (border.below, border.above))
                yield f"Not measured between {' and '.join(sides)}: what is best changes there."


#: The share by which a guard operation may be slower, by the lower end of its interval.
GUARD_TOLERANCE = 0.05


# A profile is tuned for one operation, but a module that is loaded for everything affects all
# operations. So other operations (guards) are measured with the profile, and each must be shown
# not to be slower than the default by more than a tolerance.
@dataclass(frozen=True)
class GuardVerdict:
    """The verdict on the guard operations of a profile.

    Attributes:
        unharmed: operations that are within the tolerance at all points, by their intervals.
        hurt: points whose whole interval is below the tolerance.
        unclear: points whose interval is partly below the tolerance.
    """

    unharmed: tuple[str, ...]
    hurt: tuple[PointEvidence, ...]
    unclear: tuple[PointEvidence, ...]

    @classmethod
    def judge(cls, profile: Profile) -> GuardVerdict:
        floor = 1.0 - GUARD_TOLERANCE
        measured = [point for point in profile.guards if point.operation != profile.operation]
        others = displayed_points(measured)
        hurt = tuple(point for point in others if point.gain.high < floor)
        unclear = tuple(p for p in others if p.gain.low < floor and p not in hurt)
        suspects = {point.operation for point in (*hurt, *unclear)}
        unharmed = sorted({point.operation for point in others} - suspects)
        return cls(tuple(unharmed), hurt, unclear)

    @property
    def hold(self) -> bool:
        """Whether other operations were measured, and none is or may be slower."""
        return bool(self.unharmed) and not self.hurt and not self.unclear


@dataclass(frozen=True)
class Format:
    """An export format.

    Attributes:
        write: returns the text of the file from document and remarks.
        load: how to load the file, in words.
        undo: returns how to undo the settings, from the names of the variables.
        unfit: returns why the format can't represent a value; empty if it can.
        general: whether it is for all programs of a user, so that it needs guard operations.
        prefixes: prefixes of the variables that the file's reader accepts; empty for all.
    """

    name: str
    write: Callable[[ExportDocument, list[str]], str]
    load: str
    undo: Callable[[Sequence[str]], str]
    unfit: Callable[[str], str] = lambda _: ""
    general: bool = False
    prefixes: tuple[str, ...] = ()


def refuse_simulated(profile: Profile, what: str) -> None:
    """
    Raises:
        ExportRefused: the profile is simulated or replayed.
    """
    if profile.simulated:
        raise ExportRefused(
            f"{what} is simulated or replayed: it says nothing about a real system",
            hint="run the campaign on the machine itself",
        )


def profile_remarks(document: ExportDocument, load: str, undo: str) -> list[str]:
    """Returns remarks on origin, scope, evidence, and how to verify and undo.

    The lines have no control characters.

    Args:
        load, undo: how to load and to undo the settings, in words.
    """
    profile = document.profile
    name = shlex.quote(f"{document.campaign}/{profile.name}")
    sections = (
        [document.title, *_origin(document)],
        document.scope(),
        [
            *_evidence_table(profile, document.level),
            f"Rests on {describe_strength(document.strength)}",
        ],
        _variables(document),
        [
            f"Verify: commtune verify {name}",
            "  or time your program with and without them, in turn, several times.",
            f"Load: {load}",
            f"Undo: {undo}",
        ],
    )
    lines: list[str] = []
    for section in sections:
        lines += ["", *section] if lines else section
    return [one_line(line) for line in lines]


def _evidence_table(profile: Profile, level: float | None) -> list[str]:
    """Returns a table of speedups, a line for each size and machine state."""
    shown = [*displayed_points(profile.points), *displayed_points(profile.guards)]
    interval = format_simultaneous(level, profile.level)
    size, *columns = point_columns(interval)
    head = (size, "state", *columns, "verdict")
    rows = [_row(point) for point in shown]
    lines = text.format_table(head, rows, right="size,default,candidate").splitlines()
    if len({point.speed == ALL for point in shown}) > 1:
        lines.append(text.each_by_itself(level))
    return lines


def _origin(document: ExportDocument) -> Iterator[str]:
    profile = document.profile
    yield f"Campaign {document.campaign}, {document.created}, commtune {document.commtune_version}"
    yield f"Measured on {document.system} (fingerprint {document.fingerprint}):"
    nodes = text.format_count(profile.nodes, "node")
    yield f"  {profile.backend}, {profile.ranks} ranks, {nodes}"
    yield from (f"  {line.strip()}" for line in document.stack.splitlines() if line.strip())
    if special := text.describe_conditions(profile.conditions):
        yield f"  {special}"


def _variables(document: ExportDocument) -> list[str]:
    lines = ["The profile's variables: " + ", ".join(document.profile.configuration)]
    if note := document.profile.note:
        lines.append(f"  {note}")
    if document.pinned:
        lines.append("Set in every run, the default's too: " + ", ".join(sorted(document.pinned)))
    if document.unset:
        lines.append("Measured with these unset; nothing here unsets them: ")
        lines[-1] += ", ".join(sorted(document.unset))
    return lines


def _row(point: PointEvidence) -> tuple[str, ...]:
    size, *cells = point_cells(point)
    finding = f"{point.operation}: {describe_finding(point)}"
    return (size, point.speed, *cells, finding)


def one_line(line: str) -> str:
    """Removes control characters, and a backslash at the end, which would continue a comment."""
    printable = "".join(c if c.isprintable() else " " for c in line)
    return printable.rstrip(" \\")


def comment_lines(lines: Sequence[str], mark: str) -> str:
    """Returns lines as comments."""
    return "".join(f"{mark} {line}".rstrip() + "\n" for line in lines)
