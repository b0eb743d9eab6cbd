"""How a campaign is timed that names no mode: by recorded launches of GPUs, and real ranks."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from itertools import cycle
from pathlib import Path
from typing import Any

import database_values as given
import pytest
from serving_bench import build_serving_bench
from waiting import PATIENCE_S

from commtune.campaign.loading import CampaignSpec, parse_campaign
from commtune.campaign.timing import TimingChoice
from commtune.campaign.workload import default_range
from commtune.cluster.local.benchmark import LocalBenchmark
from commtune.cluster.local.launch import base_environment
from commtune.db.queries.description import describe_campaign
from commtune.db.storage.store import Store
from commtune.kernels.bench import NativeProgram
from commtune.model import (
    BATCHED,
    DEFAULT,
    Backend,
    Measurement,
    MpiInstallation,
    Outcome,
    RunRequest,
    RunResult,
    Timing,
)
from commtune.wiring.cost_fitting import (
    _choose_timing,
    _fit,
    _lacks_timing,
    _with_sizes,
    fit_to_cost,
)

MEASURED = Path(__file__).parents[2] / "benchmarks" / "results"
RESULTS = MEASURED / "gpu-h200"
SEARCH_S = 200.0
GRAPHS = "in batches of 100, recorded as graphs"


def campaign(workload: str = "", more: str = "") -> CampaignSpec:
    keys = ", ".join(filter(None, ["backend: xccl, sizes: [8, 1KiB]", workload]))
    text = f"campaign: 1\nname: x\nspace: nccl\nworkload: {{{keys}}}\n{more}"
    return parse_campaign(text, Path.cwd())


def ok(seconds: dict[int, float], wall_s: float = 2.0) -> RunResult:
    sizes = tuple(Measurement(b, s, s, s, s, s, 1.0, 1.0) for b, s in seconds.items())
    return RunResult("run", Outcome.OK, 0.0, wall_s, sizes)


def recorded(file: str, mode: str) -> list[RunResult]:
    """Launches of an allreduce up to 2 MiB."""
    launches = json.loads((RESULTS / file).read_text())["launches"]
    chosen: list[dict[str, Any]] = [
        one
        for one in launches
        if (one["mode"], one["test"], one["part"], one["side"])
        == (mode, "all_reduce", "small", "ours")
    ]
    return [ok({m["bytes"]: m["time_s"]["median"] for m in one["measurements"]}) for one in chosen]


class Launches:
    """Runs of each mode in turn."""

    def __init__(self, **modes: list[RunResult]) -> None:
        self.made: list[str] = []
        self.said: list[str] = []
        self._runs = {mode: cycle(runs) for mode, runs in modes.items()}

    def measure(self, timing: Timing) -> RunResult:
        mode = "graphs" if timing.graph else timing.mode
        self.made.append(mode)
        return next(self._runs[mode])


@pytest.fixture
def nvlink() -> Launches:
    batches = "nccl_fidelity_batches.json"
    return Launches(
        blocking=recorded(batches, "blocking"),
        batched=recorded(batches, "batched"),
        graphs=recorded("nccl_fidelity_graph_runtime.json", "graph"),
    )


def choose(launches: Launches, spec: CampaignSpec | None = None) -> CampaignSpec:
    spec = spec or campaign()
    usual = launches.measure(spec.plan.timing)
    launches.made.clear()
    return _choose_timing(spec, usual, SEARCH_S, launches.measure, launches.said.append)[0]


def test_on_nvlink_graphs_are_chosen_because_launches_differ_least(nvlink: Launches) -> None:
    chosen = choose(nvlink)
    assert chosen.plan.timing == replace(
        campaign().plan.timing, mode=BATCHED, operations=100, graph=True
    )
    assert nvlink.made == ["blocking", "batched", "graphs"] * 4
    assert nvlink.said == [
        "12 launches of the default choose how operations are timed: about 26 s"
    ]
    assert chosen.timing_choice is not None
    assert chosen.timing_choice.spent_s == 24
    assert chosen.timing_choice.said == (
        f"operations are timed {GRAPHS}: so, 4 launches of the default differ by 0.9 %; "
        "one by one by 5.5 %; in batches of 100 by 15 %"
    )
    assert chosen.remarks[-1] == f"note: {chosen.timing_choice.said}"


def _medians(run: Mapping[str, Any]) -> dict[int, float]:
    return {int(size): times[0] for size, times in run["times"].items()}


def on_h100(search_s: float) -> tuple[CampaignSpec, list[float]]:
    """What is chosen by launches of two H100 on NVLink, and the seconds that they took."""
    lines = (MEASURED / "gpu-h100" / "timing-nvlink.jsonl").read_text().splitlines()
    usual, *launches = [
        (run["operations"], run["graph"], ok(_medians(run), run["wall_s"]))
        for run in map(json.loads, lines)
    ]
    taken_s: list[float] = []

    def measure(timing: Timing) -> RunResult:
        operations, graph, run = launches[len(taken_s)]
        named = timing.operations if timing.mode == BATCHED else 0
        assert (named, timing.graph) == (operations, graph)
        taken_s.append(run.wall_s)
        return run

    return _choose_timing(campaign(), usual[2], search_s, measure)[0], taken_s


def test_launches_of_two_h100_lead_to_what_was_chosen_there() -> None:
    campaign_file = MEASURED / "gpu-h100" / "timing-nvlink-campaign.jsonl"
    stored = json.loads(campaign_file.read_text().splitlines()[0])
    chosen, taken_s = on_h100(stored["budget"]["search_s"])
    assert asdict(chosen)["timing_choice"] == stored["timing_choice"]
    assert len(taken_s) == 12


def test_the_choice_takes_a_quarter_of_the_search_at_most_batches_included() -> None:
    whole_s = sum(on_h100(SEARCH_S)[1])
    for search_s in (100.0, 120.0, 130.0, 140.0):
        chosen, taken_s = on_h100(search_s)
        assert sum(taken_s) <= search_s / 4
        assert bool(taken_s) == (search_s == 140.0)
    assert 100.0 / 4 < whole_s < 140.0 / 4
    assert chosen.plan.timing.graph


def test_what_can_not_be_told_leaves_operations_timed_one_by_one() -> None:
    alike = [ok({8: 1e-5 * factor, 64: 2e-5 * factor}) for factor in (1, 1.01, 1.02, 1.03)]
    half = [ok({8: 1e-5 * factor, 64: 2e-5 * factor}) for factor in (1, 1.005, 1.01, 1.015)]
    chosen = choose(Launches(blocking=alike, batched=alike, graphs=half))
    assert chosen.plan.timing == campaign().plan.timing
    assert chosen.timing_choice is not None
    assert chosen.timing_choice.said == (
        "operations are timed one by one: so, 4 launches of the default differ by 1.3 %; "
        f"in batches of 100 by 1.3 %; {GRAPHS} by 0.6 %; "
        "another mode is taken where they differ by a third as much or less"
    )


def test_a_way_that_fails_is_not_tried_again_and_said(nvlink: Launches) -> None:
    failed = replace(ok({}), outcome=Outcome.CRASHED)
    nvlink._runs["graphs"] = cycle([failed])
    chosen = choose(nvlink)
    assert nvlink.made.count("graphs") == 1
    assert chosen.plan.timing == campaign().plan.timing
    assert chosen.timing_choice is not None
    assert f"; {GRAPHS}, runs end as crashed" in chosen.timing_choice.said
    nvlink._runs["blocking"] = cycle([failed])
    stays, launches = _choose_timing(campaign(), ok({8: 1e-5}), SEARCH_S, nvlink.measure)
    assert stays.plan == campaign().plan and launches == []
    assert stays.timing_choice is not None
    said = stays.timing_choice.said
    assert said == "operations are timed one by one: a run of the default ended as crashed"


@pytest.mark.parametrize(
    ("seconds", "search_s", "why"),
    [
        (1e-5, 80.0, "80 s of search are too few to try other modes with 4 launches each"),
        (7e-3, SEARCH_S, "batches of 20 would take longer than a run"),
    ],
)
def test_nothing_is_launched_where_that_takes_too_long(
    nvlink: Launches, seconds: float, search_s: float, why: str
) -> None:
    chosen, launches = _choose_timing(campaign(), ok({8: seconds}), search_s, nvlink.measure)
    assert nvlink.made == [] and launches == []
    assert chosen.plan.timing == campaign().plan.timing
    assert chosen.timing_choice == TimingChoice(f"operations are timed one by one: {why}", 0.0)


def test_what_launches_take_is_told_by_the_sizes_that_are_left() -> None:
    """All 25 sizes would take 48 s of a search of 135 s; the nine that are measured 25 s."""
    text = "campaign: 1\nname: x\nspace: nccl\nworkload: {backend: xccl}\n"
    spec = parse_campaign(text, Path.cwd())

    def measure(given: CampaignSpec) -> RunResult:
        seconds = dict.fromkeys(given.plan.workload.sizes, 6e-5)
        cost = {"measure_s": 0.06 * len(seconds), "elapsed_s": 0.06 * len(seconds) + 0.5}
        run = ok(seconds, cost["elapsed_s"] + 0.5)
        return replace(run, header={"init_s": 0.2}, footer=cost)

    every = _with_sizes(spec, default_range(Backend.XCCL))
    fitted = _fit(spec, every, measure, print, lacks_sizes=True)
    assert len(fitted.plan.workload.sizes) == 9
    assert fitted.timing_choice is not None
    assert "4 launches of the default differ" in fitted.timing_choice.said


@pytest.mark.parametrize(
    ("workload", "more"),
    [
        ("", "timing: {mode: blocking}\n"),
        ("", "timing: {timer: device}\n"),
        ("", "timing: {graph: false}\n"),
        ("", "slurm: {}\n"),
        ("operation: striping, inside: ipc-put, ranks: 4", ""),
    ],
)
def test_who_names_a_way_or_has_none_is_not_asked(workload: str, more: str) -> None:
    assert not _lacks_timing(campaign(workload, more))


def test_a_limit_names_no_mode() -> None:
    assert _lacks_timing(campaign(more="timing: {warmup: 1}\n"))
    on_host = "campaign: 1\nname: x\nspace: mpich-host-allreduce\n"
    assert not _lacks_timing(parse_campaign(on_host, Path.cwd()))


def test_a_campaign_that_goes_on_is_timed_as_it_was_begun(
    mpi: MpiInstallation, tmp_path: Path, store: Store, url: str
) -> None:
    nowhere = replace(mpi, launcher=tmp_path / "mpiexec")
    choice = TimingChoice("operations are timed as they are", 20.0)
    plan = campaign().plan
    timing = replace(plan.timing, mode=BATCHED, operations=100, graph=True)
    budget = replace(plan.budget, search_s=80.0)
    what = {"workload": plan.workload.plain(), "timing": timing.plain()}
    settings = {"timing_choice": asdict(choice), "budget": asdict(budget)}
    store.open_campaign(given.campaign("x", what=what, settings=settings))
    assert describe_campaign(url, "x").settings["timing_choice"] == asdict(choice)
    going = fit_to_cost(campaign(), nowhere, url)
    assert going.plan.timing == timing
    assert going.timing_choice == choice
    assert going.plan.budget == budget
    # A budget that the file names is for the choice as well.
    named = fit_to_cost(campaign(more="budget: {search: 100s}\n"), nowhere, url)
    assert named.plan.budget.search_s == 80.0
    other = fit_to_cost(campaign(more="timing: {mode: blocking}\n"), nowhere, url)
    assert other.plan.timing == plan.timing and other.timing_choice is None


@pytest.mark.parametrize("named", ["", "timing: {mode: batched, operations: 50}\n"])
def test_a_campaign_that_chose_nothing_goes_on_as_it_was_begun(
    mpi: MpiInstallation, tmp_path: Path, store: Store, url: str, named: str
) -> None:
    """Also where the file has named, for some time, the mode that was once chosen."""
    plan = campaign(more=named).plan
    what = {"workload": plan.workload.plain(), "timing": plan.timing.plain()}
    store.open_campaign(given.campaign("x", what=what))
    going = fit_to_cost(campaign(), replace(mpi, launcher=tmp_path / "mpiexec"), url)
    assert going.plan.timing == plan.timing
    assert going.timing_choice is None


def test_real_ranks_of_a_backend_that_enqueues_nothing(
    mpi: MpiInstallation, tmp_path: Path
) -> None:
    limits = "timing: {warmup: 0, min_samples: 3, max_samples: 3, time_cap: 1ms}\n"
    spec = campaign("operation: alltoall", limits)
    program = NativeProgram(build_serving_bench(mpi))
    benchmark = LocalBenchmark(mpi, program, base_environment(os.environ, mpi), (), tmp_path)
    count = iter(range(100))

    def measure(timing: Timing) -> RunResult:
        request = RunRequest(f"run{next(count)}", DEFAULT, spec.plan.workload, timing)
        return benchmark.measure(request, PATIENCE_S)

    # Times of its own would depend on the load, and batches with them.
    chosen, launches = _choose_timing(spec, ok({8: 1e-5}), SEARCH_S, measure)
    assert [run.outcome for run in launches] == [Outcome.OK] * 4
    assert next(count) == 4 + 2
    assert chosen.plan.timing == spec.plan.timing
    assert chosen.timing_choice is not None
    assert "recorded as graphs, runs end as failed" in chosen.timing_choice.said
