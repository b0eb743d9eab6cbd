"""What every exported file says of itself, as plain lines; each format makes comments of them."""

from __future__ import annotations

from collections.abc import Iterator

from commtune.export.document import ExportDocument
from commtune.export.guard_operations import GuardVerdict
from commtune.formatting import each_by_itself, is_too_noisy, split_note
from commtune.model import PointEvidence, Profile, Verdict
from commtune.tuner.outcome.displayed_points import displayed_points
from commtune.tuner.statistics.machine_states import ALL

_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_WORDS = {
    Verdict.FASTER: "faster",
    Verdict.DEFAULT: "no gain shown",
    Verdict.UNDECIDED: "undecided",
}


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
        evidence_table(profile),
        _variables(document),
        [
            "Verify: time your program with and without them, in turn, several times.",
            f"Load: {load}",
            f"Undo: {undo}",
        ],
    )
    lines: list[str] = []
    for section in sections:
        lines += ["", *section] if lines else section
    return [one_line(line) for line in lines]


def profile_title(profile: Profile) -> str:
    """One line: what this is."""
    low, high = size_text(profile.bytes_low), size_text(profile.bytes_high)
    sizes = low if low == high else f"{low} to {high}"
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


def evidence_table(profile: Profile) -> list[str]:
    """A table of gains, a line for each size and machine speed."""
    gain = f"gain [{100 * profile.level:.4g} %]"
    head = f"{'size':>8}  {'speed':<5}  {'default':>8}  {'tuned':>8}  {gain:<17}  pairs"
    shown = [*displayed_points(profile.points), *displayed_points(profile.guards)]
    rows = [head, *(_row(point) for point in shown)]
    if len({point.speed == ALL for point in shown}) > 1:
        rows.append(each_by_itself(None))
    return rows


def size_text(count: int) -> str:
    """Bytes in the largest binary unit that is exact: ``64 KiB``, ``1000 B``."""
    for factor, unit in _UNITS:
        if count >= factor and count % factor == 0:
            return f"{count // factor} {unit}"
    return f"{count} B"


def time_text(seconds: float) -> str:
    """Seconds for a person: ``8.31 us``."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"


def gain_text(point: PointEvidence) -> str:
    """A ratio with its interval: ``1.41 [1.40, 1.42]``; words where it says nothing."""
    if point.gain.pairs < 2:
        return "too few pairs"
    if is_too_noisy(point.gain.low, point.gain.high):
        return "too noisy"
    return f"{point.gain.ratio:.2f} [{point.gain.low:.2f}, {point.gain.high:.2f}]"


def _origin(document: ExportDocument) -> Iterator[str]:
    profile = document.profile
    yield f"Campaign {document.campaign}, {document.created}, commtune {document.commtune_version}"
    yield f"Measured on {document.system} (fingerprint {document.fingerprint}):"
    yield f"  {profile.backend}, {profile.ranks} ranks, {_count(profile.nodes, 'node')}"
    yield from (f"  {line.strip()}" for line in document.stack.splitlines() if line.strip())
    if noise := split_note(profile.note)[0]:
        yield f"  {noise}"


def _variables(document: ExportDocument) -> list[str]:
    lines = ["The profile's variables: " + ", ".join(document.profile.configuration)]
    if document.pinned:
        lines.append("Set in every run, the default's too: " + ", ".join(sorted(document.pinned)))
    if document.unset:
        lines.append("Measured with these unset; nothing here unsets them: ")
        lines[-1] += ", ".join(sorted(document.unset))
    if note := split_note(document.profile.note)[1]:
        lines.append(f"  {note}")
    return lines


def _row(point: PointEvidence) -> str:
    times = f"{time_text(point.default_s):>8}  {time_text(point.tuned_s):>8}"
    row = f"{size_text(point.bytes):>8}  {point.speed:<5}  {times}  {gain_text(point):<17}"
    return f"{row}  {point.gain.pairs:>5}  {point.operation}: {_WORDS[point.verdict]}"


def _guard_text(point: PointEvidence) -> str:
    return f"{point.operation} at {size_text(point.bytes)} ({point.speed}): {gain_text(point)}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def one_line(line: str) -> str:
    """No control characters, and no backslash at the end: it would join a comment to a setting."""
    printable = "".join(c if c.isprintable() else " " for c in line)
    return printable.rstrip().rstrip("\\")
