"""What an exporter is given, what a format is, and what every exported file says of itself."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from commtune import formatting as text
from commtune.errors import ExportRefused
from commtune.model import PointEvidence, Profile
from commtune.tuner.outcome.displayed_points import displayed_points
from commtune.tuner.statistics.machine_states import ALL
from commtune.wording import describe_finding, format_simultaneous, point_cells


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

    @property
    def title(self) -> str:
        """One line: what this is."""
        profile = self.profile
        sizes = text.format_sizes(profile.bytes_low, profile.bytes_high)
        return one_line(
            f"commtune profile {profile.name}: settings for {profile.operation}, {sizes}"
        )

    def scope(self, guards: GuardVerdict) -> list[str]:
        """What the settings are for, and what is known beyond that."""
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
            lines += [f"{word}: {_guard_text(point)}" for point in points]
        if guards.unclear and not (guards.unharmed or guards.hurt):
            lines.append("Guard operations were measured; they don't settle what is slower.")
        elif not (guards.unharmed or guards.hurt):
            lines.append("No guard operations were measured: others may be slower under them.")
        return lines

    def borders(self) -> Iterator[str]:
        """Where the range ends at another one: nobody knows where between two measured sizes."""
        profile = self.profile
        for border in profile.boundaries:
            if border.below == profile.bytes_high or border.above == profile.bytes_low:
                sides = map(text.format_size, (border.below, border.above))
                yield f"Not measured between {' and '.join(sides)}: what is best changes there."


#: A guard operation may be slower by this share, at the lower end of its interval.
GUARD_TOLERANCE = 0.05


# A profile is measured on one operation. A module that people load for everything also changes all
# other operations; so other operations (guards) are measured under the profile, and each must be
# shown not to be slower than the default by more than a tolerance.
@dataclass(frozen=True)
class GuardVerdict:
    """What is known of the operations that a profile wasn't made for.

    Attributes:
        unharmed: operations whose every point is shown not to be slower than is tolerated.
        hurt: points that are slower, with the whole interval.
        unclear: points whose interval reaches below, but not all of it.
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
        prefixes: beginnings of the names that the file's reader takes; empty for all.
    """

    name: str
    write: Callable[[ExportDocument, list[str], GuardVerdict], str]
    load: str
    undo: Callable[[Sequence[str]], str]
    unfit: Callable[[str], str] = lambda _: ""
    general: bool = False
    prefixes: tuple[str, ...] = ()


def refuse_simulated(profile: Profile, what: str) -> None:
    """
    Raises:
        ExportRefused: no machine measured the profile.
    """
    if profile.simulated:
        raise ExportRefused(
            f"{what} is simulated or replayed: it says nothing about a real system",
            hint="run the campaign on the machine itself",
        )


def profile_remarks(
    document: ExportDocument, guards: GuardVerdict, load: str, undo: str
) -> list[str]:
    """Origin, scope, evidence, and how to verify and undo; no line holds a control character.

    Args:
        load, undo: how to load the settings and take them back, in the words of the format.
    """
    profile = document.profile
    name = shlex.quote(f"{document.campaign}/{profile.name}")
    sections = (
        [document.title, *_origin(document)],
        document.scope(guards),
        _evidence_table(profile, document.level),
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
    """A table of speedups, a line for each size and machine state.

    Args:
        level: at which all intervals of the campaign hold together; ``None`` where nobody knows.
    """
    shown = [*displayed_points(profile.points), *displayed_points(profile.guards)]
    interval = format_simultaneous(level, profile.level)
    head = ("size", "state", "default", "tuned", f"speedup, {interval}", "finding")
    rows = [_row(point) for point in shown]
    lines = text.format_table(head, rows, right="size,default,tuned").splitlines()
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
    size, default, tuned, speedup = point_cells(point)
    finding = f"{point.operation}: {describe_finding(point)}"
    return (size, point.speed, default, tuned, speedup, finding)


def _guard_text(point: PointEvidence) -> str:
    return f"{point.operation}: {text.describe_speedup(point.gain, point.bytes, point.speed)}"


def one_line(line: str) -> str:
    """No control characters, and no backslash at the end: it would join a comment to a setting."""
    printable = "".join(c if c.isprintable() else " " for c in line)
    return printable.rstrip().rstrip("\\")


def comment_lines(lines: Sequence[str], mark: str) -> str:
    """Lines as comments."""
    return "".join(f"{mark} {line}".rstrip() + "\n" for line in lines)
