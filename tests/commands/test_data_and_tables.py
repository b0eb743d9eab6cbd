"""What commands print: data that every JSON reader takes, and what belongs below a table."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import database_values as given
import export_documents
import pytest
from quiet import QuietReporter
from synthetic import SyntheticBenchmark, VirtualClock

import commtune as ct
from commtune import formatting
from commtune.app.measure.comparison import ComparisonResult
from commtune.commands.measure import compare
from commtune.commands.profiles import best
from commtune.db.storage.store import Store
from commtune.export import render_profile
from commtune.model import (
    DEFAULT,
    Backend,
    Configuration,
    Interval,
    MpiFlavour,
    MpiInstallation,
    Operation,
    Timing,
    Workload,
)
from commtune.tuner.execution.in_memory_store import InMemoryStore
from commtune.tuner.statistics.session_spread import SessionSpread
from commtune.tuner.verification.pairwise import Arm, Difference, PairwiseComparison

#: What a single pair says.
OPEN = Interval(1.3, 0.0, math.inf, 1)


def strict(data: str) -> Any:
    """Reads JSON as its standard has it, without Python's own words."""

    def refuse(word: str) -> NoReturn:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(data, parse_constant=refuse)


def test_only_what_json_has_no_word_for_becomes_null() -> None:
    value = {"a": [math.inf, -math.inf, math.nan, 1.5, 2, True, None, "inf"], "b": ({"c": 0.0},)}
    assert formatting.without_infinities(value) == {
        "a": [None, None, None, 1.5, 2, True, None, "inf"],
        "b": [{"c": 0.0}],
    }


@pytest.mark.parametrize(
    ("gain", "said"),
    [
        (Interval(1.1, 0.1, 9.0, 10), "nothing known, too noisy (10 pairs)"),
        (Interval(9.1, 2.5, 33.4, 10), "2.50x to 33.40x (9.10x, 10 pairs)"),
        (Interval(0.1, 0.02, 0.5, 10), "0.02x to 0.50x (0.10x, 10 pairs)"),
    ],
)
def test_a_wide_interval_is_shown_if_it_says_which_is_faster(gain: Interval, said: str) -> None:
    assert formatting.format_speedup(gain) == said


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (1.0249, 1.0951, "1.02x to 1.10x"),  # above a minimum gain of 2 %
        (1.0199, 1.02, "1.01x to 1.02x"),  # not above it
        (0.98, 1.0001, "0.98x to 1.01x"),  # not slower
        (1.1 * 1.1, 1.1 * 1.1, "1.21x to 1.21x"),  # but for floating point, two decimals
        (0.0996, 0.00421, "0.099x to 0.0043x"),
        (1e305, 5e-324, f"{1e305:.2f}x to 4.9e-324x"),  # of damaged rows
    ],
)
def test_the_ends_of_an_interval_are_rounded_outwards(low: float, high: float, said: str) -> None:
    assert formatting.format_speedup(Interval(1.0, low, high, 12)).startswith(f"{said} (")


def test_best_prints_json_of_a_single_pair(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    points = tuple(replace(point, gain=OPEN) for point in given.profile().points)
    store.save_profiles(store.open_campaign(given.campaign()).id, [given.profile(points=points)])
    best.best_command("allreduce", "1MiB", db=url, json_output=True)
    (row,) = strict(capsys.readouterr().out)
    assert {(p["gain"]["low"], p["gain"]["high"]) for p in row["points"]} == {(0.0, None)}


def test_export_writes_json_of_a_single_pair() -> None:
    profile = export_documents.DOCUMENT.profile
    points = (*profile.points, replace(profile.points[-1], gain=OPEN))
    document = replace(export_documents.DOCUMENT, profile=replace(profile, points=points))
    assert '"high": null' in render_profile("json", document)
    strict(render_profile("json", document))


def compared(slow_share: float) -> ComparisonResult:
    """Two settings that are equal, of which 8 B and 64 KiB were measured."""
    clock = VirtualClock()
    machine = SyntheticBenchmark(lambda *_: 1e-6, clock, slow_share=slow_share)
    sides = {Arm.A: DEFAULT, Arm.B: Configuration({"OTHER": "1"})}
    workload = Workload(Operation.ALLREDUCE, (8, 65536))
    found = PairwiseComparison(
        machine,
        sides,
        workload,
        Timing(),
        12.0,
        QuietReporter(),
        clock=clock,
        store=InMemoryStore("1"),
    ).run()
    mpi = MpiInstallation(MpiFlavour.MPICH, "5.0.2", Path("/"), Path("/c"), Path("/l"))
    names = {Arm.A: "default", Arm.B: "OTHER=1"}
    return ComparisonResult(
        names, sides, workload, mpi, "mpich 5.0.2", SessionSpread(0.14, 5), found
    )


def test_a_comparison_says_how_much_speedups_differ_between_sessions() -> None:
    result = compared(0.0)
    assert compare._comparison_summary(result).endswith(
        "\n\nbetween sessions intervals allow for 14 % of a speedup's logarithm "
        "(measured in 5 later sessions)"
    )
    assert compare._comparison_data(result)["session_spread"] == {"share": 0.14, "sessions": 5}


@pytest.mark.parametrize("slow_share", [0.0, 0.4])
def test_rows_of_one_machine_speed_are_told_from_those_together(slow_share: float) -> None:
    result = compared(slow_share)
    said = compare._comparison_summary(result)
    assert ("95 % each" in said) is ("slow" in said) is bool(slow_share)
    strict(json.dumps(formatting.without_infinities(compare._comparison_data(result))))


def test_a_size_without_a_pair_is_in_the_table_and_in_json() -> None:
    result = compared(0.0)
    differences = (Difference(8, "all"), result.pairs.differences[1])
    result = replace(result, pairs=replace(result.pairs, differences=differences))
    (line,) = (x for x in compare._comparison_summary(result).splitlines() if "8 B" in x)
    assert " ".join(line.split()) == "8 B no pair of runs in one machine state"
    found = compare._comparison_data(result)["differences"][0]
    assert (found["bytes"], found["ratio"], found["faster"]) == (8, None, None)


def test_the_slow_runs_of_a_side_are_in_the_table_below_it_and_in_json() -> None:
    result = compared(0.0)
    said = "more slow runs than with A at 8 B; at 8 B, 4 of 20 took over 1.5 times the median"
    small = replace(result.pairs.differences[0], faster=Arm.B, slow=Arm.B)
    pairs = replace(result.pairs, differences=(small,), slow_runs={Arm.A: "", Arm.B: said})
    result = replace(result, pairs=pairs)
    table, below = compare._comparison_summary(result).split("\n\n")[1:]
    assert table.endswith("B is faster, with more slow runs than A")
    assert below.splitlines()[1:] == f"B: {said}".replace("; ", ";\n  ").splitlines()
    found = compare._comparison_data(result)
    assert found["slow_runs"] == {"A": "", "B": said}
    assert found["differences"][0]["slow"] == "B"
    one, *_ = tails = found["tails"]
    assert [one["bytes"] for one in tails] == [8, 65536]
    assert (one["a_slow_runs"], one["b_slow_runs"]) == (0, 0)
    assert one["mean_low"] <= one["mean_ratio"] <= one["mean_high"]
    assert one["pairs"] == found["differences"][0]["ratio"]["pairs"] and one[
        "p95_ratio"
    ] == pytest.approx(1, rel=0.1)
    (row,) = ct.Comparison("default", "OTHER=1", result).rows()
    assert (row["faster"], row["slow"]) == ("B", "B")


def test_without_an_mpi_no_version_follows_its_word() -> None:
    none = MpiInstallation(MpiFlavour.NONE, "", Path("/"), Path("/c"), Path("/l"))
    said = compare._comparison_summary(replace(compared(0.0), mpi=none))
    assert ", 2 ranks, no MPI; " in said


def test_a_backend_is_named_where_it_is_not_the_usual_one() -> None:
    result = compared(0.0)
    in_python = replace(result.workload, backend=Backend.PYTHON_HOST)
    said = compare._comparison_summary(replace(result, workload=in_python))
    assert ", MPICH 5.0.2, python-host; " in said
    assert ", MPICH 5.0.2; " in compare._comparison_summary(result)
