"""Makes the rule table of a campaign: its recommendations by operation and size."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from commtune.errors import ExportRefused
from commtune.export.document import ExportDocument, refuse_simulated
from commtune.model import DEFAULT, Configuration, Profile, Verdict
from commtune.wording import suggest_verification

_USABLE = (Verdict.FASTER, Verdict.LIKELY)


@dataclass(frozen=True)
class Rule:
    """The settings of an operation for a range of sizes.

    Attributes:
        operation: name of the operation, which defines the meaning of sizes (docs/benchmark.md).
        ranks, nodes: size of the measured communicator.
        bytes_low, bytes_high: the closed range of measured sizes, as requested and as sent.
        settings: variables with values; if empty, the library chooses.
        profile: name of the profile that the rule is from.
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
    """The sizes that a rule applies to, from ``first`` to ``last`` bytes inclusive.

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
        version: version of the measured library.
        rules: rules of each operation by size, without overlaps.
        documents: the profiles that the rules are from, with evidence and origin.
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
        """Makes the table of a campaign's profiles.

        Args:
            unit: bytes of which the benchmark sends multiples
                (``Workload.bytes_of_one_more``): 2040 B for 2 KiB among 3 ranks.
            accept_likely: whether to use speedups that are likely but not proven.

        Raises:
            ExportRefused: they are simulated, or none is faster than the default.
        """
        asked = [d for d in documents if accept_likely or d.profile.verdict is not Verdict.LIKELY]
        profiles: defaultdict[str, list[Profile]] = defaultdict(list)
        for document in asked:
            profiles[document.profile.operation].append(document.profile)
        rules = tuple(rule for same in profiles.values() for rule in _rules_of(same, unit))
        used = {rule.profile for rule in rules if not rule.settings.is_default}
        _refuse_unusable(documents, used)
        behind = tuple(document for document in asked if document.profile.name in used)
        return cls(library, version, rules, behind)

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations with rules that set something."""
        return tuple(dict.fromkeys(rule.operation for rule in self.rules if rule.settings))

    def ranks(self, operation: str) -> int:
        """Returns the ranks of the communicator on which an operation was measured."""
        return next(rule.ranks for rule in self.rules if rule.operation == operation)

    def spans(self, operation: str, *, to_all_sizes: bool = False) -> tuple[Span, ...]:
        """Returns the rules of an operation over all sizes, without gaps.

        Between two measured sizes the nearer one by ratio applies.

        Args:
            to_all_sizes: whether the nearest rule applies below and above the measured sizes;
                otherwise the library chooses there.
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


def _rules_of(profiles: Sequence[Profile], unit: int) -> list[Rule]:
    """Makes a rule of neighbouring measured sizes with the same profile."""
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
    inside = {point.bytes for profile in profiles for point in profile.points_inside}
    return sorted(ends | inside)


def _profile_at(size: int, profiles: Sequence[Profile]) -> Profile:
    """Returns the profile with the narrowest range around a size; likely ones come first."""
    covering = [p for p in profiles if size in p.sizes]
    likely = Verdict.LIKELY
    return min(covering, key=lambda p: (p.verdict is not likely, p.bytes_high - p.bytes_low))


def _border(below: int, above: int) -> int:
    """Returns the last size that the lower of two measured ones stands for, as in ``best``."""
    return max(below, math.isqrt(below * above))


def _joined(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Joins neighbouring spans with equal settings."""
    groups = [list(group) for _, group in groupby(spans, key=lambda span: span.settings)]
    return tuple(Span(group[0].first, group[-1].last, group[0].settings) for group in groups)


def _refuse_unusable(documents: Sequence[ExportDocument], used: set[str]) -> None:
    for document in documents:
        refuse_simulated(document.profile, f"campaign {document.campaign}")
    withdrawn = [d for d in documents if d.profile.verdict is Verdict.WITHDRAWN]
    if not used and withdrawn:
        one = withdrawn[0]
        raise ExportRefused(
            "no profile of the campaign is faster than the default: "
            f"{one.profile.name} was withdrawn ({one.profile.note})",
            hint=suggest_verification(one.campaign, one.profile.name),
        )
    if not used:
        raise ExportRefused(
            "no profile of the campaign is faster than the default: there is nothing to export",
            hint="keep the default, or continue the campaign with a larger budget\n"
            "or take what is likely and not proven: --accept likely",
        )
