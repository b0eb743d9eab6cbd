"""Plays recorded grids back through the benchmark port, in virtual time.

Nothing is measured: results are about the recording, not about the machine that plays it back.
Every result is marked as simulated, and so is every profile made from it.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from commtune import model
from commtune.campaign.plan import Plan
from commtune.errors import CampaignError
from commtune.replay.recording import Grid, RecordedRun
from commtune.spaces.space import Space

#: Penalties of a run that was played recently, and of one that is half the recording away in time,
#: in units of a difference of log canaries. Two runs in one machine state differ by about 0.03, in
#: different states by 1 or more, so that neither penalty outweighs another state.
_RECENT, _FAR = 0.3, 0.1
#: One run is drawn among those whose penalty is at most this much above the smallest.
_AS_GOOD = 0.1


@dataclass
class VirtualClock:
    """A clock in seconds that advances only by runs."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class ReplayBenchmark:
    """A benchmark (``tuner.ports.Benchmark``) that plays back a recording.

    Virtual time starts at a seeded place of the recording, advances by the wall seconds of every
    run, and wraps around at the recording's end. The canaries of the run that was recorded at that
    time, of whatever configuration, tell the state of the machine. Of the requested configuration,
    the run with the most similar state is played: by the canaries before and after every size,
    then by nearness in time. Among several similar ones, a run that was not played recently is
    drawn at random.

    So consecutive runs share the machine's state, or see it change, as in the recording; states
    last as long, and drift is preserved. There are limits:

    - A configuration has only its recorded runs, which repeat. More runs narrow an interval
      around the recording's truth (``Grid.truth``), which is itself uncertain.
    - A disturbance of a single run that no canary shows occurs when the run is drawn, not at
      its time in the recording.
    - A run takes the recorded wall seconds even if fewer sizes are requested.

    Equal seeds, requests and start of ``clock`` give equal results.

    Attributes:
        clock: the virtual clock, which budgets must use.
    """

    grid: Grid
    seed: int = 1
    clock: VirtualClock = field(default_factory=VirtualClock)
    simulated = True
    _decks: dict[int, _Deck] = field(default_factory=dict, init=False, repr=False)

    @property
    def replayed(self) -> str:
        """Name of the recording."""
        return self.grid.header.name

    def measure(self, request: model.RunRequest, time_limit_s: float) -> model.RunResult:
        """Plays a recorded run of the request's configuration, without waiting.

        A run that took longer than the limit is timed out then, without measurements.

        Raises:
            CampaignError: the grid lacks the configuration, sizes or operation, which
                ``check_plan`` checks before a campaign begins.
        """
        deck = self._deck(request)
        rng = random.Random(f"{self.seed}/{request.block}/{request.position}/{deck.index}")
        at_s = (self._begin_s + self.clock.now) % self.grid.span_s
        run = deck.draw(at_s, self._state_at(at_s), rng)
        started = self.clock.now
        if run.wall_s > time_limit_s:
            self.clock.now += time_limit_s
            why = f"the recorded run took longer than {time_limit_s:.1f} s"
            ended = model.Outcome.TIMED_OUT, started, time_limit_s
            return model.RunResult(request.run_id, *ended, detail=why)
        self.clock.now += run.wall_s
        return model.RunResult(
            run_id=request.run_id,
            outcome=run.outcome,
            started_at=started,
            wall_s=run.wall_s,
            measurements=tuple(m for m in run.sizes if m.bytes in request.workload.sizes),
            detail=run.detail,
            oversubscribed=self.grid.header.oversubscribed,
            other_load=run.other_load,
        )

    def recover(self, request: model.RunRequest) -> model.RunResult | None:
        """Returns ``None``, since an interrupted run leaves nothing to recover."""
        del request
        return None

    def trace(self, request: model.RunRequest, time_limit_s: float) -> model.Execution | None:
        """Returns ``None``, since a recording has no traces of the library."""
        del request, time_limit_s
        return None

    def _deck(self, request: model.RunRequest) -> _Deck:
        index = self.grid.index.get(request.configuration)
        workload, recorded = request.workload, self.grid.header.workload
        is_there = recorded.operation is workload.operation
        if index is None or not is_there or not set(recorded.sizes) >= set(workload.sizes):
            raise CampaignError(
                f"the recording {self.replayed} holds no {workload.operation} of these sizes "
                f"under {request.configuration}"
            )
        if index not in self._decks:
            self._decks[index] = _Deck(self.grid, index, self._states)
        return self._decks[index]

    @cached_property
    def _states(self) -> NDArray[np.float64]:
        """The state of the machine over the recording: log canaries, one row per run."""
        sizes = self.grid.header.workload.sizes
        return _filled(np.array([_canaries(run, sizes) for run in self.grid.runs]))

    def _state_at(self, at_s: float) -> NDArray[np.float64]:
        """Returns the state at a time, from the run in progress or the last before it."""
        place = bisect_right(self.grid.runs, at_s, key=lambda run: run.started_s) - 1
        state: NDArray[np.float64] = self._states[max(0, place)]
        return state

    @cached_property
    def _begin_s(self) -> float:
        return random.Random(f"{self.seed}/begin").random() * self.grid.span_s


def _canaries(run: RecordedRun, sizes: Sequence[int]) -> list[float]:
    by_size = {size.bytes: size for size in run.sizes}
    found: list[float | None] = []
    for bytes_ in sizes:
        size = by_size.get(bytes_)
        found += [size.canary_s, size.canary_after_s] if size else [None, None]
    return [np.nan if value is None else float(np.log(value)) for value in found]


def _filled(states: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fills gaps by the last value before them, or the first value, or 0 if there is none."""
    flat = states.ravel().copy()
    known = np.flatnonzero(~np.isnan(flat))
    if not known.size:
        return np.zeros_like(states)
    before = np.maximum(np.searchsorted(known, np.arange(flat.size), side="right") - 1, 0)
    filled: NDArray[np.float64] = flat[known[before]].reshape(states.shape)
    return filled


class _Deck:
    """The recorded runs of a configuration, from which runs are drawn."""

    def __init__(self, grid: Grid, index: int, states: NDArray[np.float64]) -> None:
        places = [i for i, run in enumerate(grid.runs) if run.configuration == index]
        self.index = index
        self._runs = [grid.runs[i] for i in places]
        self._starts = np.array([run.started_s for run in self._runs])
        self._states = states[places]
        self._half_s = max(grid.span_s / 2, 1e-9)
        # At most half of the runs count as recent, so that there is always a choice.
        self._lately: deque[int] = deque(maxlen=min(len(places) // 2, 8))

    def draw(self, at_s: float, state: NDArray[np.float64], rng: random.Random) -> RecordedRun:
        """Draws the run to play at a time of the recording, given the state of the machine."""
        badness = np.abs(self._states - state).mean(axis=1)
        away_s = np.abs(self._starts - at_s)
        badness += _FAR * np.minimum(away_s, 2 * self._half_s - away_s) / self._half_s
        for number in self._lately:
            badness[number] += _RECENT
        good = np.flatnonzero(badness <= badness.min() + _AS_GOOD)
        number = int(good[rng.randrange(len(good))])
        self._lately.append(number)
        return self._runs[number]


def check_plan(grid: Grid, plan: Plan) -> None:
    """Refuses a campaign that a recording can't play back.

    Raises:
        CampaignError: the recording doesn't fit the plan; with the differences.
    """
    header, pinned = grid.header, plan.space.pinned
    problems = _workload_problems(header.workload, plan)
    if header.timing != plan.timing:
        words = _timing_words(header.timing), _timing_words(plan.timing)
        problems.append("its timing was {}, not {}".format(*words))
    problems += [
        f"{name} was {header.pinned.get(name, 'not pinned')}, not {pinned.get(name, 'unpinned')}"
        for name in sorted({*header.pinned, *pinned})
        if header.pinned.get(name) != pinned.get(name)
    ]
    if plan.aggressor:
        problems.append("it was made without an aggressor")
    problems = problems or _space_problems(grid, plan.space)
    if problems:
        raise CampaignError(
            f"campaign {plan.name} can't be replayed from the recording {header.name}: "
            + "; ".join(problems),
            hint="'commtune tune --replay RECORDING' without a campaign file replays the recorded "
            "campaign, 'zcat RECORDING | head -n 1' shows it; or record this one:\n"
            f"'commtune record CAMPAIGN.yaml --runs 8 --out {plan.name}.jsonl.gz'",
        )


_OF_THE_WORKLOAD = (
    "operation", "backend", "ranks", "nodes", "emulated_nodes", "dtype", "reduction", "window",
    "pattern",
)  # fmt: skip


def _workload_problems(recorded: model.Workload, plan: Plan) -> list[str]:
    asked = plan.workload
    found = [
        f"{name} is {getattr(recorded, name) or 'none'} there, "
        f"not {getattr(asked, name) or 'none'}"
        for name in _OF_THE_WORKLOAD
        if getattr(recorded, name) != getattr(asked, name)
    ]
    missing = [size for size in asked.sizes if size not in recorded.sizes]
    if missing:
        found.append(f"it lacks the sizes {', '.join(map(str, missing))}")
    if plan.guards:
        found.append(f"it lacks the guard operations {', '.join(plan.guards)}")
    return found


def _timing_words(timing: model.Timing) -> str:
    return ", ".join(
        f"{name} {value if isinstance(value, str) else format(value, 'g')}"
        for name, value in timing.plain().items()
    )


def _space_problems(grid: Grid, space: Space) -> list[str]:
    # Sizes are compared first, since enumeration of a much larger space takes too long.
    count, there = space.count(), len(grid.index)
    if count > there:
        return [f"space {space.name} has {count:,} configurations, the recording {there:,}"]
    lacking: list[model.Configuration] = list(
        islice((c for c in space.configurations() if c not in grid.index), 3)
    )
    return [f"it lacks the configuration {configuration}" for configuration in lacking]
