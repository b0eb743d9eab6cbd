"""From a campaign's profiles to what is used at which size."""

from __future__ import annotations

from dataclasses import replace

import pytest
from export_documents import DOCUMENT, PROFILE, point

from commtune.errors import ExportRefused
from commtune.export.document import ExportDocument
from commtune.export.rules.table import RuleTable, Span
from commtune.model import DEFAULT, Configuration, Verdict

RING, TREE = Configuration({"ALGORITHM": "ring"}), Configuration({"ALGORITHM": "tree"})
KIB = 1024


def document(
    low: int, high: int, settings: Configuration, verdict: Verdict = Verdict.FASTER
) -> ExportDocument:
    profile = replace(
        PROFILE,
        name=f"allreduce-{low}-{high}-{verdict}",
        bytes_low=low,
        bytes_high=high,
        configuration=settings,
        verdict=verdict,
        points=tuple(point("allreduce", size, (1.3, 1.2, 1.4)) for size in {low, high}),
    )
    return replace(DOCUMENT, profile=profile)


def table(*documents: ExportDocument, accept_likely: bool = False) -> RuleTable:
    return RuleTable.of_documents(documents, "mpich", "5.0.2", accept_likely=accept_likely)


def test_borders_are_where_best_has_them_and_what_was_not_measured_is_left_alone() -> None:
    found = table(document(8, KIB, RING), document(4 * KIB, 64 * KIB, TREE))
    assert found.spans("allreduce") == (
        Span(0, 7, DEFAULT),
        Span(8, 2 * KIB, RING),
        Span(2 * KIB + 1, 64 * KIB, TREE),
        Span(64 * KIB + 1, None, DEFAULT),
    )
    assert found.spans("broadcast") == (Span(0, None, DEFAULT),)
    assert found.operations == ("allreduce",)


def test_a_rule_holds_for_what_the_benchmark_sent_of_a_size() -> None:
    """Of a total of 2 KiB, 3 ranks have 170 elements of 4 bytes each; of 8 B, one."""
    documents = [document(2 * KIB, 4 * KIB, RING)]
    found = RuleTable.of_documents(documents, "mpich", "5.0.2", unit=12)
    assert [span.first for span in found.spans("allreduce")] == [0, 2040, 4 * KIB + 1]
    found = RuleTable.of_documents([document(8, 8, RING)], "mpich", "5.0.2", unit=12)
    assert [span.first for span in found.spans("allreduce")] == [0, 8, 13]


def test_the_default_s_range_is_the_library_s_and_the_widest_profile_comes_last() -> None:
    found = table(
        document(8, 64 * KIB, RING),
        document(8, KIB, DEFAULT, Verdict.DEFAULT),
        document(2 * KIB, 64 * KIB, TREE),
    )
    assert [rule.settings for rule in found.rules] == [DEFAULT, TREE]
    assert [span.first for span in found.spans("allreduce")] == [0, 1449, 64 * KIB + 1]
    assert [d.profile.configuration for d in found.documents] == [TREE]


def test_what_is_likely_is_used_only_where_that_is_accepted() -> None:
    documents = (
        document(8, 64 * KIB, DEFAULT, Verdict.UNDECIDED),
        document(KIB, KIB, RING, Verdict.LIKELY),
    )
    with pytest.raises(ExportRefused, match="no profile of the campaign is faster"):
        table(*documents)
    assert [rule.settings for rule in table(*documents, accept_likely=True).rules] == [
        DEFAULT,
        RING,
        DEFAULT,
    ]


def test_what_is_simulated_is_refused() -> None:
    made = document(8, KIB, RING)
    with pytest.raises(ExportRefused, match="simulated or replayed"):
        table(replace(made, profile=replace(made.profile, simulated=True)))
