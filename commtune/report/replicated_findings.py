"""Checks whether a campaign's measurements replicate published findings for its system."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from commtune import formatting
from commtune.model import FEWEST_PAIRS, Configuration, Interval
from commtune.model.conclusion import Conclusion
from commtune.model.effects import SizeEffect
from commtune.systems.findings import Finding, NamedFinding, all_findings
from commtune.tuner.statistics.machine_states import ALL
from commtune.wording import format_finding


class Replication(StrEnum):
    """The result of the replication of a finding."""

    SEEN = "seen again"
    NOT_SEEN = "not seen"
    OPPOSITE = "opposite"
    BOTH = "seen again at some sizes, opposite at others"
    UNDECIDED = "undecided"
    NOT_COVERED = "not covered"


@dataclass(frozen=True)
class _Measured:
    """The measured gain of a setting at a size (bytes).

    Attributes:
        confirmed: whether it is relative to the default, from confirmation; else it is the loss
            without the setting in a configuration, from ablation.
    """

    bytes: int
    gain: Interval
    confirmed: bool


@dataclass(frozen=True)
class ReplicatedFinding:
    """A finding with the result of its replication."""

    named: NamedFinding
    again: Replication
    measured: tuple[_Measured, ...] = ()

    def data(self) -> dict[str, Any]:
        points = [
            {"bytes": one.bytes, "confirmed": one.confirmed, **asdict(one.gain)}
            for one in self.measured
        ]
        return {"finding": self.named.name, "again": str(self.again), "points": points}


def replicate_findings(
    conclusion: Conclusion,
    *,
    system: str,
    library: str,
    operation: str,
    nodes: int,
    pinned: Mapping[str, str] | None = None,
) -> tuple[ReplicatedFinding, ...]:
    """Returns all findings about settings on the campaign's system, with the results.

    Args:
        library, operation, nodes: what the campaign measured.
        pinned: variables that its space sets in every run, including the default's.
    """
    told = []
    for named in all_findings():
        found = named.finding
        if system not in found.systems or not found.setting:
            continue
        # A setting that the default's runs have too can't be compared with its absence.
        is_fixed = not found.setting.keys().isdisjoint(pinned or {})
        is_covered = not is_fixed and _is_about(found, library, operation, nodes)
        measured = tuple(_measured(found, conclusion)) if is_covered else ()
        told.append(ReplicatedFinding(named, _verdict(found, measured), measured))
    return tuple(told)


def _is_about(found: Finding, library: str, operation: str, nodes: int) -> bool:
    return (
        library in found.libraries
        and (not found.operations or operation in found.operations)
        and (found.least_nodes or 1) <= nodes
        and (found.most_nodes is None or nodes <= found.most_nodes)
    )


def _measured(found: Finding, conclusion: Conclusion) -> Iterator[_Measured]:
    """Yields gains at the finding's sizes, ascending; confirmation precedes ablation."""
    by_size: dict[int, _Measured] = {}
    settings = [Configuration(setting) for setting in (found.setting, *found.also)]
    for ablation in conclusion.ablations:
        for variable in ablation.variables:
            if Configuration(variable.values) in settings:
                by_size |= _points(found, variable.effects, confirmed=False)
    for confirmed in conclusion.confirmed:
        if confirmed.configuration in settings:
            by_size |= _points(found, confirmed.effects, confirmed=True)
    yield from (by_size[size] for size in sorted(by_size))


def _points(
    found: Finding, effects: Iterable[SizeEffect], *, confirmed: bool
) -> dict[int, _Measured]:
    least, most = found.least_bytes or 0, found.most_bytes
    return {
        effect.bytes: _Measured(effect.bytes, effect.gain, confirmed)
        for effect in effects
        if effect.speed == ALL
        and effect.gain.pairs >= FEWEST_PAIRS
        and least <= effect.bytes
        and (most is None or effect.bytes <= most)
    }


def _verdict(found: Finding, measured: tuple[_Measured, ...]) -> Replication:
    if not measured:
        return Replication.NOT_COVERED
    assert found.expected is not None  # as for all findings with a setting
    helps = found.expected.factor > 1
    above = any(one.gain.low > 1 for one in measured)
    below = any(one.gain.high < 1 for one in measured)
    if above and below:
        return Replication.BOTH
    if above or below:
        return Replication.SEEN if above == helps else Replication.OPPOSITE
    # An interval with both no effect and the published effect doesn't decide between them.
    factor = found.expected.factor
    told = all(one.gain.high < factor if helps else one.gain.low > factor for one in measured)
    return Replication.NOT_SEEN if told else Replication.UNDECIDED


def replication_lines(
    seen: Sequence[ReplicatedFinding], system: str, unreal: str = ""
) -> list[str]:
    """Returns lines on the findings, heading first; none if no measurement covers one.

    Args:
        unreal: for a replay or a simulation, why nothing was measured on the system.
    """
    covered = [one for one in seen if one.again is not Replication.NOT_COVERED]
    if not covered:
        return []
    head = f"What papers found on {system}, and what this campaign measured"
    said = [f"{head} ({unreal}: this says nothing about {system})" if unreal else head]
    said += [_line(one) for one in covered]
    rest = [one.named.name for one in seen if one not in covered]
    return [*said, f"not covered: {', '.join(rest)}"] if rest else said


def _line(one: ReplicatedFinding) -> str:
    found = one.named.finding
    assert found.expected is not None
    setting = " ".join(f"{name}={value}" for name, value in found.setting.items())
    of = f" in {', '.join(found.operations)}" if found.operations else ""
    most = "up to " if found.expected.up_to else ""
    expected = f"{most}{found.expected.factor:g}x there"
    said = f"{one.named.name}: {setting}{of}, {expected}: {format_finding(one.again)}"
    shown = [
        f"{formatting.describe_speedup(m.gain, m.bytes)}{'' if m.confirmed else ' (ablation)'}"
        for m in one.measured
    ]
    return f"{said}: {'; '.join(shown)}" if shown else said
