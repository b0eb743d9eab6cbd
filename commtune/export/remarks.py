"""What every exported file says of itself, as plain lines; each format makes comments of them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from commtune.export.document import ExportDocument, GuardVerdict
from commtune.formatting import (
    describe_conditions,
    each_by_itself,
    format_count,
    format_size,
    format_sizes,
    format_table,
)
from commtune.model import PointEvidence, Profile
from commtune.tuner.outcome.displayed_points import displayed_points
from commtune.tuner.statistics.machine_states import ALL
from commtune.wording import describe_verdict, format_simultaneous, format_speedup, point_cells


def profile_remarks(
    document: ExportDocument, guards: GuardVerdict, load: str, undo: str
) -> list[str]:
    """Origin, scope, evidence, and how to verify and undo; no line holds a control character.

    Args:
        load, undo: how to load the settings and take them back, in the words of the format.
    """
    profile = document.profile
    sections = (
        [profile_title(profile), *_origin(document)],
        profile_scope(profile, guards),
        _evidence_table(profile, document.level),
        _variables(document),
        [
            f"Verify: {_verify_command(document)}",
            "  or time your program with and without them, in turn, several times.",
            f"Load: {load}",
            f"Undo: {undo}",
        ],
    )
    lines: list[str] = []
    for section in sections:
        lines += ["", *section] if lines else section
    return [one_line(line) for line in lines]


def _verify_command(document: ExportDocument) -> str:
    return "commtune verify " + shlex.quote(f"{document.campaign}/{document.profile.name}")


def profile_title(profile: Profile) -> str:
    """One line: what this is."""
    sizes = format_sizes(profile.bytes_low, profile.bytes_high)
    return one_line(f"commtune profile {profile.name}: settings for {profile.operation}, {sizes}")


def profile_scope(profile: Profile, guards: GuardVerdict) -> list[str]:
    """What the settings are for, and what is known beyond that."""
    lines = [
        f"For {profile.operation} in that range of sizes only: that is what was measured.",
        "The settings change every operation of a program that starts under them.",
    ]
    if guards.unharmed:
        names = ", ".join(guards.unharmed)
        share = f"{100 * guards.tolerance:.3g}"
        lines.append(f"Guard operations measured too, each at most {share} % slower: {names}.")
    for word, points in (("SLOWER", guards.hurt), ("POSSIBLY SLOWER", guards.unclear)):
        lines += [f"{word}: {_guard_text(point)}" for point in points]
    if not (guards.unharmed or guards.hurt or guards.unclear):
        lines.append("No guard operations were measured: others may be slower under them.")
    return lines


def _evidence_table(profile: Profile, level: float | None) -> list[str]:
    """A table of speedups, a line for each size and machine state.

    Args:
        level: at which all intervals of the campaign hold together; ``None`` where nobody knows.
    """
    shown = [*displayed_points(profile.points), *displayed_points(profile.guards)]
    interval = format_simultaneous(level) if level else f"{100 * profile.level:.4g} % CI each"
    head = ("size", "state", "default", "tuned", f"speedup, {interval}", "pairs", "finding")
    rows = [_row(point) for point in shown]
    lines = format_table(head, rows, right="size,default,tuned,pairs").splitlines()
    if len({point.speed == ALL for point in shown}) > 1:
        lines.append(each_by_itself(level))
    return lines


def _origin(document: ExportDocument) -> Iterator[str]:
    profile = document.profile
    yield f"Campaign {document.campaign}, {document.created}, commtune {document.commtune_version}"
    yield f"Measured on {document.system} (fingerprint {document.fingerprint}):"
    yield f"  {profile.backend}, {profile.ranks} ranks, {format_count(profile.nodes, 'node')}"
    yield from (f"  {line.strip()}" for line in document.stack.splitlines() if line.strip())
    if special := describe_conditions(profile.conditions):
        yield f"  {special}"


def _variables(document: ExportDocument) -> list[str]:
    lines = ["The profile's variables: " + ", ".join(document.profile.configuration)]
    if document.pinned:
        lines.append("Set in every run, the default's too: " + ", ".join(sorted(document.pinned)))
    if document.unset:
        lines.append("Measured with these unset; nothing here unsets them: ")
        lines[-1] += ", ".join(sorted(document.unset))
    if note := document.profile.note:
        lines.append(f"  {note}")
    return lines


def _row(point: PointEvidence) -> tuple[str, ...]:
    size, default, tuned, speedup, pairs = point_cells(point)
    finding = f"{point.operation}: {describe_verdict(point.verdict)}"
    return (size, point.speed, default, tuned, speedup, pairs, finding)


def _guard_text(point: PointEvidence) -> str:
    size, speedup = format_size(point.bytes), format_speedup(point.gain)
    return f"{point.operation} at {size} ({point.speed}): {speedup}"


def one_line(line: str) -> str:
    """No control characters, and no backslash at the end: it would join a comment to a setting."""
    printable = "".join(c if c.isprintable() else " " for c in line)
    return printable.rstrip().rstrip("\\")
