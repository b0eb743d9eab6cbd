"""What a campaign recommends at each size: the table that files of rules are written from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from commtune.errors import ExportRefused
from commtune.export.document import ExportDocument, refuse_simulated
from commtune.model import DEFAULT, Configuration, Profile, Verdict

_USABLE = (Verdict.FASTER, Verdict.LIKELY)


@dataclass(frozen=True)
class Rule:
    """What one operation uses between two sizes.

    Attributes:
        operation: commtune's word; sizes are what it calls bytes (docs/benchmark.md).
        ranks, nodes: of the communicator that was measured.
        bytes_low, bytes_high: the measured ends, both inclusive, as asked for and as sent.
        settings: variables and their values; the empty ones leave the choice to the library.
        profile: name of the profile that says so.
    """

    operation: str
    ranks: int
    nodes: int
    bytes_low: int
    bytes_high: int
    settings: Configuration
    profile: str


@dataclass(frozen=True)
class Span:
    """A rule's part of all sizes: ``first`` to ``last`` bytes, both inclusive.

    Attributes:
        last: ``None`` for no end.
    """

    first: int
    last: int | None
    settings: Configuration


@dataclass(frozen=True)
class RuleTable:
    """Rules of one library, for one system and one number of ranks.

    Attributes:
        library: ``openmpi``, ``mpich``, ``intel-mpi``, ``nccl`` or ``rccl``.
        version: of the library that was measured.
        rules: of each operation by size, not overlapping.
        documents: the profiles behind the rules, with their evidence and origin.
    """

    library: str
    version: str
    rules: tuple[Rule, ...]
    documents: tuple[ExportDocument, ...]

    @classmethod
    def of_documents(
        cls,
        documents: Sequence[ExportDocument],
        library: str,
        version: str,
        *,
        unit: int = 1,
        accept_likely: bool = False,
    ) -> RuleTable:
        """The table of a campaign's profiles.

        Args:
            unit: bytes of which the benchmark sent whole numbers
                (``Workload.bytes_of_one_more``): of 2 KiB among 3 ranks, 2040 B.
            accept_likely: use speedups that are likely and not proven, too.

        Raises:
            ExportRefused: they are simulated, or none of them is faster than the default.
        """
        asked = [d for d in documents if accept_likely or d.profile.verdict is not Verdict.LIKELY]
        rules = _make_rules([document.profile for document in asked], unit)
        used = {rule.profile for rule in rules if not rule.settings.is_default}
        _refuse_unusable(documents, used)
        behind = tuple(document for document in asked if document.profile.name in used)
        return cls(library, version, rules, behind)

    @property
    def operations(self) -> tuple[str, ...]:
        """Those that have rules which set something."""
        return tuple(dict.fromkeys(rule.operation for rule in self.rules if rule.settings))

    def ranks(self, operation: str) -> int:
        """The ranks of the communicator that an operation was measured on."""
        return next(rule.ranks for rule in self.rules if rule.operation == operation)

    def spans(self, operation: str, *, to_all_sizes: bool = False) -> tuple[Span, ...]:
        """An operation's rules over all sizes, without gaps.

        Between two measured sizes the nearer one decides, by ratio.

        Args:
            to_all_sizes: below and above what was measured the nearest rule holds; otherwise the
                library chooses there.
        """
        own = [rule for rule in self.rules if rule.operation == operation]
        if not own:
            return (Span(0, None, DEFAULT),)
        above = [_border(low.bytes_high, high.bytes_low) + 1 for low, high in pairwise(own)]
        starts, settings = [0, *above], [rule.settings for rule in own]
        if not to_all_sizes:
            starts = [0, own[0].bytes_low, *above, own[-1].bytes_high + 1]
            settings = [DEFAULT, *settings, DEFAULT]
        ends = [*(start - 1 for start in starts[1:]), None]
        spans = map(Span, starts, ends, settings)
        return _joined([span for span in spans if span.last is None or span.first <= span.last])


def _make_rules(profiles: Sequence[Profile], unit: int) -> tuple[Rule, ...]:
    operations = dict.fromkeys(profile.operation for profile in profiles)
    return tuple(
        rule
        for operation in operations
        for rule in _rules_of([p for p in profiles if p.operation == operation], unit)
    )


def _rules_of(profiles: Sequence[Profile], unit: int) -> list[Rule]:
    """Neighbouring measured sizes with one profile make a rule."""
    chosen = [(size, _profile_at(size, profiles)) for size in _measured_sizes(profiles)]
    rules = []
    for profile, group in groupby(chosen, key=lambda one: one[1]):
        asked = [size for size, _ in group]
        sizes = [*asked, *(max(unit, size // unit * unit) for size in asked)]
        settings = profile.configuration if profile.verdict in _USABLE else DEFAULT
        where = profile.operation, profile.ranks, profile.nodes
        rules.append(Rule(*where, min(sizes), max(sizes), settings, profile.name))
    return rules


def _measured_sizes(profiles: Sequence[Profile]) -> list[int]:
    ends = {end for profile in profiles for end in (profile.bytes_low, profile.bytes_high)}
    inside = {
        point.bytes
        for profile in profiles
        for point in profile.points
        if profile.bytes_low <= point.bytes <= profile.bytes_high
    }
    return sorted(ends | inside)


def _profile_at(size: int, profiles: Sequence[Profile]) -> Profile:
    """The profile with the narrowest range around a size: one for all sizes comes last."""
    covering = [p for p in profiles if p.bytes_low <= size <= p.bytes_high]
    likely = Verdict.LIKELY
    return min(covering, key=lambda p: (p.verdict is not likely, p.bytes_high - p.bytes_low))


def _border(below: int, above: int) -> int:
    """The last size that belongs to the lower of two measured ones, as ``best`` answers."""
    return max(below, math.isqrt(below * above))


def _joined(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Joins neighbouring spans that say the same."""
    groups = [list(group) for _, group in groupby(spans, key=lambda span: span.settings)]
    return tuple(Span(group[0].first, group[-1].last, group[0].settings) for group in groups)


def _refuse_unusable(documents: Sequence[ExportDocument], used: set[str]) -> None:
    for document in documents:
        refuse_simulated(document.profile, f"campaign {document.campaign}")
    if not used:
        raise ExportRefused(
            "no profile of the campaign is faster than the default: there is nothing to export",
            hint="keep the default, or continue the campaign with a larger budget\n"
            "or take what is likely and not proven: --accept likely",
        )
