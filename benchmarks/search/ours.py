"""commtune itself, in process: the search alone, and whole campaigns."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from commtune.campaign.plan import Budget, Plan
from commtune.model import DEFAULT, Configuration, Origin, Outcome, Profile, Run, Verdict
from commtune.model.profile import ALL_SIZES
from commtune.tuner.campaign import Campaign, CampaignResult
from commtune.tuner.execution.in_memory_store import InMemoryStore
from commtune.tuner.execution.runner import Runner
from commtune.tuner.execution.session import Session
from commtune.tuner.outcome.displayed_points import overall_points
from commtune.tuner.search.phase import SearchPhase
from commtune.tuner.search.standings import Standing

from .fresh import FreshReplay
from .halves import Floats, Halves
from .player import Picks, Played

#: How a campaign's time is shared where nobody says otherwise.
_SEARCH, _ABLATION, _CONFIRMATION = 0.5, 0.2, 0.3
#: How many standard errors of doubt a standing gets; as for the peers' bound.
_DOUBT = 1.0


class Silent:
    """A reporter that says nothing."""

    def progress(self, progress: object) -> None:
        """Not looked at."""

    def say(self, message: str) -> None:
        """Not looked at."""


def search_alone(halves: Halves, seed: int, runs: int, strategy: str = "") -> dict[str, Played]:
    """The search of a campaign with all of the runs; its own pick is by its standings."""
    budget = Budget(runs * halves.run_s, 0.0, 0.0)
    plan, runner = _begin(halves, seed, budget, strategy)
    began = time.process_time()
    runner.recover()
    runner.load()
    runner.new_trial(DEFAULT, Origin.BASELINE)
    phase = SearchPhase(Session(plan, runner, Silent()))
    phase.run()
    picks = _by_standings(halves, phase.standings())
    played = _played(halves, runner, time.process_time() - began)
    played.own[len(played.configurations)] = picks
    return {"search": played}


def whole_campaign(halves: Halves, seed: int, runs: int, strategy: str = "") -> dict[str, Played]:
    """Search, ablation and confirmation within the runs; its own pick is what it recommends.

    The same campaign with what is likely where nothing is proven is a second method.
    """
    began = time.process_time()
    result, runner = run_whole_campaign(halves, seed, runs, strategy)
    played = _played(halves, runner, time.process_time() - began)
    return {
        "whole": _recommended(halves, played, result.profiles),
        "whole+likely": _recommended(halves, played, (*result.profiles, *result.likely)),
    }


def _recommended(halves: Halves, played: Played, profiles: tuple[Profile, ...]) -> Played:
    """What was played, with the recommendation and the claims of some profiles."""
    made, index = len(played.configurations), halves.grid.index
    found = [profile_at(profiles, size) for size in halves.sizes]
    rows = np.array([index[p.configuration] if p else halves.default for p in found])
    claims = np.array(
        [p is not None and _claims(p, size) for p, size in zip(found, halves.sizes, strict=True)]
    )
    return replace(played, own={made: rows}, claims={made: claims})


def run_whole_campaign(
    halves: Halves,
    seed: int,
    runs: int,
    strategy: str = "",
    first: tuple[Configuration, ...] = (),
) -> tuple[CampaignResult, Runner]:
    """A whole campaign within so many runs, its time shared as where nobody says otherwise.

    Args:
        first: configurations that are tried before all others.
    """
    whole_s = runs * halves.run_s
    budget = Budget(_SEARCH * whole_s, _ABLATION * whole_s, _CONFIRMATION * whole_s)
    plan, runner = _begin(halves, seed, budget, strategy)
    plan = replace(plan, first=(*plan.first, *first))
    return Campaign(plan, runner, Silent()).run(), runner


def _begin(halves: Halves, seed: int, budget: Budget, strategy: str) -> tuple[Plan, Runner]:
    plan = replace(halves.plan, seed=seed, budget=budget)
    if strategy:
        plan = replace(plan, strategy=strategy)
    benchmark = FreshReplay(halves, seed)
    return plan, Runner(plan, 1, benchmark, InMemoryStore(str(plan.seed)), clock=benchmark.clock)


def _by_standings(halves: Halves, standings: tuple[Standing, ...]) -> Picks:
    """The highest lower bound of each size; the default where none is above its time."""
    picks = []
    for size in halves.sizes:
        bounds = {
            s.configuration: s.mean[size] - _DOUBT * s.error[size]
            for s in standings
            if size in s.mean
        }
        best = max(bounds, key=lambda c: bounds[c], default=DEFAULT)
        picks.append(halves.grid.index[best if bounds.get(best, 0.0) > 0 else DEFAULT])
    return np.array(picks)


def profile_at(profiles: tuple[Profile, ...], size: int) -> Profile | None:
    """What is recommended at a size (bytes): the environment for all sizes is another answer."""
    for profile in profiles:
        inside = profile.bytes_low <= size <= profile.bytes_high
        if inside and not profile.configuration.is_default and profile.name != ALL_SIZES:
            return profile
    return None


def mean_gain(halves: Halves, profiles: tuple[Profile, ...]) -> float:
    """Mean log speedup over sizes of what is recommended, by runs that no campaign saw."""
    found = [profile_at(profiles, size) for size in halves.sizes]
    rows = [halves.recorded(p.configuration) if p else halves.default for p in found]
    gains = halves.held_means[halves.default] - halves.held_means[rows, np.arange(len(rows))]
    return float(gains.mean())


def _claims(profile: Profile, size: int) -> bool:
    """Whether a speedup is claimed at a size; sizes between may be merely harmless."""
    point = overall_points(profile.points).get(size)
    is_likely = profile.verdict is Verdict.LIKELY
    return is_likely or (point is not None and point.verdict is Verdict.FASTER)


def _played(halves: Halves, runner: Runner, seconds: float) -> Played:
    runs = runner.evidence.runs
    each = seconds / max(1, len(runs))
    return Played(
        configurations=[halves.grid.index[run.configuration] for run in runs],
        log_times=[_log_times(run, halves.sizes) for run in runs],
        seconds=[each * number for number in range(1, len(runs) + 1)],
    )


def _log_times(run: Run, sizes: tuple[int, ...]) -> Floats:
    known = {m.bytes: math.log(m.time_s) for m in run.measurements}
    good = run.outcome is Outcome.OK
    return np.array([known.get(size, math.nan) if good else math.nan for size in sizes])
