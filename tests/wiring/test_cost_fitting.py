"""What a run costs decides on sizes and budget of a campaign that names none."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import database_values as given
import pytest

from commtune.campaign.loading import CampaignSpec, parse_campaign
from commtune.campaign.plan import Budget
from commtune.campaign.workload import default_range
from commtune.db.storage.store import Store
from commtune.model import Backend, MpiInstallation, Outcome
from commtune.tuner.execution.time_limits import time_limit
from commtune.wiring.cost_fitting import (
    _runs_of_the_default,
    _thin_sizes,
    fit_budget,
    fit_to_cost,
)

EVERY = default_range(Backend.MPI_HOST)
TIMING = "{warmup: 0, min_samples: 3, max_samples: 3, time_cap: 1ms}"


def campaign(workload: str = "ranks: 2", more: str = "") -> CampaignSpec:
    text = f"campaign: 1\nname: x\nspace: mpich-host-allreduce\nworkload: {{{workload}}}\n"
    return parse_campaign(f"{text}timing: {TIMING}\n{more}", Path.cwd())


@pytest.fixture
def built_mpi(
    mpi: MpiInstallation,
    executable: Path,  # noqa: ARG001  # built before
    shared_cache: None,  # noqa: ARG001
) -> MpiInstallation:
    """An MPI for which the benchmark is built."""
    return mpi


@pytest.fixture
def nowhere(built_mpi: MpiInstallation, tmp_path: Path) -> MpiInstallation:
    """An MPI that starts nothing."""
    return replace(built_mpi, launcher=tmp_path / "mpiexec")


@pytest.mark.parametrize(
    ("measuring_s", "kept"),
    [(0.1, 20), (0.33, 20), (0.4, 11), (0.6, 11), (0.7, 8), (60.0, 8)],
)
def test_every_second_or_third_size_where_all_take_more_than_a_quarter(
    measuring_s: float, kept: int
) -> None:
    sizes = _thin_sizes(EVERY, measuring_s, 1.0)
    assert len(sizes) == kept
    assert {EVERY[0], EVERY[-1]} <= set(sizes) <= set(EVERY)
    assert list(sizes) == sorted(set(sizes))


def test_the_range_is_larger_on_gpus() -> None:
    assert EVERY[-1] == 4 * 2**20
    assert default_range(Backend.XCCL)[-1] == 128 * 2**20
    assert len(_thin_sizes(default_range(Backend.XCCL), 60.0, 1.0)) == 9


@pytest.mark.slow
def test_a_run_of_the_default_tells_and_what_is_left_out_is_said(
    built_mpi: MpiInstallation, url: str
) -> None:
    # How many depends on the machine and its load.
    asked = campaign()
    fitted = fit_to_cost(asked, built_mpi, url)
    assert fitted is not asked
    sizes, said = fitted.plan.workload.sizes, fitted.remarks[len(asked.remarks) :]
    if sizes == EVERY:
        assert not said
    else:
        assert sizes in (_thin_sizes(EVERY, 0.4, 1.0), asked.plan.workload.sizes)
        assert said[0].startswith(f"note: {len(sizes)} of 20 powers of two are measured")


def test_sizes_that_were_named_stay_and_nothing_is_run(nowhere: MpiInstallation, url: str) -> None:
    named = campaign('sizes: "8 .. 1KiB x2"', "budget: {trials: 3}\n")
    assert fit_to_cost(named, nowhere, url) is named


def test_a_default_that_can_not_be_run_leaves_the_campaign_as_it_is(
    nowhere: MpiInstallation, url: str
) -> None:
    assert fit_to_cost(campaign(), nowhere, url).plan == campaign().plan


def test_a_campaign_that_goes_on_keeps_its_sizes(
    nowhere: MpiInstallation, store: Store, url: str
) -> None:
    begun = replace(campaign().plan.workload, sizes=EVERY)
    store.open_campaign(given.campaign("x", what={"workload": begun.plain()}))
    assert fit_to_cost(campaign(), nowhere, url).plan.workload.sizes == EVERY


def test_on_slurm_gpus_measure_all_and_nothing_is_run(nowhere: MpiInstallation, url: str) -> None:
    host = fit_to_cost(campaign(more="slurm: {}\n"), nowhere, url)
    assert host.plan == campaign(more="slurm: {}\n").plan
    text = "campaign: 1\nname: x\nspace: nccl\nworkload: {backend: xccl}\nslurm: {}\n"
    gpus = fit_to_cost(parse_campaign(text, Path.cwd()), nowhere, url)
    assert gpus.plan.workload.sizes == default_range(Backend.XCCL)


@pytest.mark.parametrize(
    ("run_s", "whole_s"), [(0.2, 100), (0.58, 100), (1.0, 180), (2.3, 400), (60.0, 1800)]
)
def test_the_budget_is_what_a_campaign_takes_within_limits(run_s: float, whole_s: float) -> None:
    budget = fit_budget(run_s)
    assert budget.whole_s == pytest.approx(whole_s)
    assert budget.search_s == pytest.approx(whole_s / 2)
    if 100 < whole_s < 1800:
        tried = 0.8 * budget.search_s / run_s * 7 / 8
        assert tried >= 60
        assert budget.confirmation_s / run_s >= 7 * (3 + 1)


def test_a_run_of_the_default_tells_what_to_spend(built_mpi: MpiInstallation, url: str) -> None:
    asked = campaign('sizes: "8 .. 1KiB x2"')
    fitted = fit_to_cost(asked, built_mpi, url)
    assert fitted is not asked  # as it is where no run succeeds
    budget = fitted.plan.budget
    assert 100 <= budget.whole_s <= 1800
    assert budget.search_s == pytest.approx(budget.whole_s / 2)


def test_a_campaign_that_goes_on_keeps_its_budget(
    nowhere: MpiInstallation, store: Store, url: str
) -> None:
    begun, budget = campaign().plan, Budget(7.0, 5.0, 3.0)
    what, settings = {"workload": begun.workload.plain()}, {"budget": asdict(budget)}
    store.open_campaign(given.campaign("x", what=what, settings=settings))
    assert fit_to_cost(campaign(), nowhere, url).plan.budget == budget
    named = campaign(more="budget: {search: 60s}\n")
    assert fit_to_cost(named, nowhere, url).plan.budget == Budget(60.0)


@pytest.mark.slow
def test_a_run_may_take_as_long_as_those_before_let_expect(built_mpi: MpiInstallation) -> None:
    """A timing mode in which a library hangs must not take the search's whole time."""
    asked = campaign("ranks: 2, sizes: [4MiB]")
    most = 1_000_000
    endless = replace(asked.plan.timing, min_samples=most, max_samples=most, time_cap_s=600.0)
    with _runs_of_the_default(asked, built_mpi) as measure:
        usual = measure(asked)
        hanging = measure(replace(asked, plan=replace(asked.plan, timing=endless)))
    assert (usual.outcome, hanging.outcome) == (Outcome.OK, Outcome.TIMED_OUT)
    assert f"over its {time_limit([usual.wall_s]):.1f} s" in hanging.detail
