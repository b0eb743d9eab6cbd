"""What is said of a run beside its numbers: sizes moved as others, disturbed ranks, its cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import database_values as given
import pytest

from commtune import formatting as text
from commtune.app.profiles import nominal_share
from commtune.commands.measure import bench_remarks, bench_results
from commtune.model import (
    Backend,
    Configuration,
    Measurement,
    MpiFlavour,
    MpiInstallation,
    Operation,
    PatternParameters,
    RunRequest,
    RunResult,
    SubMeasurement,
    Timing,
    Workload,
)
from commtune.model.run_costs import RunCost

_TWO = {"rank_info": [{"rank": i, "node": 0, "local_rank": i} for i in range(2)]}
_APART = {"rank_info": [{"rank": i, "node": i, "local_rank": 0} for i in range(2)]}
_LINKS = [{"to": "switch", "pci": None, "links": 18, "version": "4.0", "link_Bps": 26.562e9}]
_GPUS = {
    "rank_info": [
        {"rank": i, "node": 0, "local_rank": i, "gpu": {"pci": f"0000:1{i}:00.0", "links": _LINKS}}
        for i in range(2)
    ]
}
ALLREDUCE = Workload(Operation.ALLREDUCE, (8, 1024), 2)


def measured(size: int, **changes: Any) -> Measurement:
    return replace(given.measurement(size), **changes)


def run_of(*measurements: Measurement, **changes: Any) -> RunResult:
    return given.result(measurements=measurements, **{"header": _TWO, **changes})


def request(workload: Workload) -> RunRequest:
    return RunRequest("r", Configuration({}), workload, Timing(mode="batched", operations=20))


def test_every_size_without_a_canary_is_disturbed() -> None:
    gone = [measured(size, canary_s=None) for size in (8, 1024)]
    said = bench_remarks._disturbance(ALLREDUCE, run_of(*gone))
    assert said == (
        "background load disturbs these times: rank 0 and its neighbour did not run at the same "
        "time before 2 of 2 measurements"
    )
    assert bench_remarks._disturbance(ALLREDUCE, run_of(measured(8))) == ""


@pytest.mark.parametrize(
    ("workload", "header"),
    [
        (ALLREDUCE, _APART),
        (replace(ALLREDUCE, backend=Backend.XCCL), _TWO),
        (replace(ALLREDUCE, backend=Backend.PYTHON_HOST), _TWO),
        (ALLREDUCE, None),
    ],
)
def test_where_there_is_no_canary_its_absence_says_nothing(
    workload: Workload, header: Any
) -> None:
    result = run_of(measured(8, canary_s=None), header=header)
    assert bench_remarks._disturbance(workload, result) == ""


def test_a_median_far_above_the_minimum_is_named_of_pairs_too() -> None:
    far = measured(8, median_s=8e-3, min_s=1e-6)
    pairs = run_of(
        pieces=(SubMeasurement(far, "", (0, 1)), SubMeasurement(measured(8), "", (1, 0)))
    )
    said = bench_remarks._disturbance(replace(ALLREDUCE, operation=Operation.PAIRS), pairs)
    assert said.endswith(": at 8 B the median is 8000 times the minimum")


def test_with_too_few_cores_that_is_said_and_nothing_of_others() -> None:
    (said,) = bench_remarks._run_remarks(
        ALLREDUCE, run_of(measured(8, canary_s=None), oversubscribed=True)
    )
    assert said.startswith("more ranks than cores")


@pytest.mark.parametrize(
    ("workload", "totals", "said"),
    [
        (Workload(Operation.ALLTOALL, (4, 12), 2), {4: 8, 12: 8}, "moved: 4 B as 8 B, 12 B as 8"),
        (Workload(Operation.ALLTOALL, (8, 16), 2), {8: 8, 16: 16}, ""),
        (Workload(Operation.INCAST, (6, 8), 4), {6: 12, 8: 24}, "moved: 6 B as 4 B; "),
        (Workload(Operation.STREAM, (8,), 2), {8: 64 * 8}, ""),
        (Workload(Operation.STREAM, (8,), 2, window=4), {8: 32}, ""),
        (
            Workload(Operation.RAIL, (8,), 4, shape=PatternParameters(2, 2, "bidirectional")),
            {8: 32},
            "",
        ),
        (Workload(Operation.PING_PONG, (5, 6, 7, 9, 10), 2),
         {5: 4, 6: 4, 7: 4, 9: 8, 10: 8},
         "moved: 5 B as 4 B, 6 B as 4 B, 7 B as 4 B, 9 B as 8 B, ...; every message"),
    ],
)  # fmt: skip
def test_sizes_that_were_moved_as_others(
    workload: Workload, totals: dict[int, int], said: str
) -> None:
    result = run_of(*(measured(size, bytes_total=total) for size, total in totals.items()))
    found = bench_remarks._rounded_sizes(workload, result)
    assert found.startswith(said) and bool(found) == bool(said)


def test_a_misspelt_variable_is_named() -> None:
    mpi = MpiInstallation(MpiFlavour.OPENMPI, "4.1.4", Path("/"), Path("mpiexec"), Path("mpicc"))
    request = given.request(
        configuration=Configuration({"OMPI_MCA_coll_tuned_use_dynamic_rulse": "1", "MINE": "2"})
    )
    (said,) = bench_remarks._settings_remarks(request, mpi, run_of())
    assert said.startswith(
        "-x: OMPI_MCA_coll_tuned_use_dynamic_rulse is not a known name; perhaps"
    )


def test_what_a_run_cost_goes_apart() -> None:
    header = {"init_s": 0.2, "library": {"name": "NCCL 2.21", "init_s": 0.3}}
    footer = {"elapsed_s": 1.0, "measure_s": 0.25}
    result = run_of(
        measured(8, first_call_s=0.0625), header=header, footer=footer, wall_s=1.5, end_s=0.125
    )
    cost = RunCost.of(result)
    assert cost is not None
    parts = dict(cost.parts())
    assert sum(parts.values()) == pytest.approx(1.5)
    assert parts == pytest.approx(
        {"launch": 0.375, "MPI_Init": 0.2, "library": 0.3, "first calls": 0.0625,
         "measuring": 0.1875, "rest": 0.25, "end": 0.125}
    )  # fmt: skip
    assert bench_results._describe_cost(cost).startswith(
        "the run took 1.50 s: launch 375 ms, MPI_Init"
    )
    elsewhere = RunCost.of(replace(result, end_s=None))
    assert elsewhere is not None
    assert dict(elsewhere.parts())["launch and end"] == pytest.approx(0.5)
    assert RunCost.of(replace(result, footer={"elapsed_s": 1.0})) is None


def test_shares_of_the_nominal_bandwidth_are_there_of_every_size() -> None:
    workload = replace(ALLREDUCE, backend=Backend.XCCL)
    result = run_of(measured(8, busbw=1e9), measured(1024, busbw=2e9), header=_GPUS)
    plain: Any = bench_results.run_data(request(workload), result, ["a remark"])
    small, large = plain["measurements"]
    assert (plain["timing"]["mode"], plain["timing"]["operations"]) == ("batched", 20)
    assert not {"algbw", "busbw"} & set(small)  # a name says its unit, and there is one of each
    assert large["share_of_nominal"] == pytest.approx(2 * small["share_of_nominal"])
    assert large["share_of_nominal"] == pytest.approx(2e9 / plain["of_nominal"]["nominal_Bps"])
    assert (small["busbw_Bps"], small["first_call_s"], plain["remarks"]) == (
        1e9,
        4e-4,
        ["a remark"],
    )
    whole = nominal_share.nominal_of_run(workload, result)
    header = bench_results._run_table(workload, result, {}, whole).splitlines()[0]
    assert "of nominal" in header
    unknown: Any = bench_results.run_data(request(ALLREDUCE), run_of(measured(8)), [])
    assert unknown["of_nominal"] is None
    assert unknown["measurements"][0]["share_of_nominal"] is None
    assert "of nominal" not in bench_results._run_table(ALLREDUCE, run_of(measured(8)), {})


def test_the_share_of_a_pair_is_of_its_own_links() -> None:
    workload = replace(ALLREDUCE, operation=Operation.PAIRS, backend=Backend.XCCL)
    result = run_of(pieces=(SubMeasurement(measured(8, algbw=1e9), "", (0, 1)),), header=_GPUS)
    plain: Any = bench_results.run_data(request(workload), result, [])
    (piece,) = plain["pieces"]
    assert [set(n) for n in plain["nominal"]] == 2 * [{"pair", "nominal_Bps"}]
    nominal = next(n["nominal_Bps"] for n in plain["nominal"] if n["pair"] == [0, 1])
    assert piece["measurement"]["share_of_nominal"] == pytest.approx(1e9 / nominal)


@pytest.mark.parametrize(
    ("bytes_per_s", "words"),
    [(1e3, "1.00 kB/s"), (999, "999 B/s"), (15.7e6, "15.7 MB/s"), (3.2e12, "3200 GB/s"),
     (0.5, "0.500 B/s")],
)  # fmt: skip
def test_bandwidths_have_a_unit_that_fits(bytes_per_s: float, words: str) -> None:
    assert bench_results._format_bandwidth(bytes_per_s) == words


@pytest.mark.parametrize(
    ("value", "words"), [(8.003e-6, "0.00000800"), (0.0, "0.00"), (12.34, "12.3")]
)
def test_numbers_have_three_digits_and_no_exponent(value: float, words: str) -> None:
    assert text.format_number(value) == words
