"""Plays recorded grids back through the benchmark port, with a clock of its own.

Nothing is measured: what comes out says something of the recording, and nothing of the machine
that it is played on. Every result is marked as simulated, and so is every profile made from it.
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
from commtune.replay.recording import Grid, RecordedRun, load_grid
from commtune.spaces.space import Space

__all__ = ["Grid", "RecordedRun", "ReplayBenchmark", "VirtualClock", "check_plan", "load_grid"]

#: What a candidate for playback loses, in the units of a difference between log canaries: having
#: been played lately; and lying half the recording away in time. Two runs at one machine state
#: differ by about 0.03, at two speeds by 1 or more: neither outweighs another speed.
_RECENT, _FAR = 0.3, 0.1
#: Runs this much worse than the best one are as good, and one of them is drawn.
_AS_GOOD = 0.1


@dataclass
class VirtualClock:
    """Time that passes only in runs, seconds."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class ReplayBenchmark:
    """Implements ``tuner.ports.Benchmark`` over a recording.

    A virtual time, begun at a seeded place of the recording, goes on with every run's wall
    seconds and starts again at the recording's end. What the machine was like at that time is
    known from the run that was recorded then, of whatever configuration: its canaries. Of the
    runs of the asked configuration, one is played that met the machine most alike: by the canaries
    before and after every size, then by nearness in time; of several about as good ones, one
    that was not played lately, drawn at random.

    So runs that follow each other share the machine's speed, or see it change, as they did when
    recorded; speeds last as long, and drift over the recording stays. What this can't keep:

    - A configuration has only its recorded runs. Asked for more often, the same ones come again:
      more runs make an interval narrower around the recording's truth (``Grid.truth``), which
      itself is known no better than from the recorded runs.
    - What disturbed single runs and left no mark in a canary comes when the run is drawn, not
      when it happened.
    - A run takes the recorded wall seconds even if fewer sizes are asked for.

    The same seed and the same requests from the same ``clock`` give the same results.

    Attributes:
        clock: to be handed to whatever keeps budgets.
    """

    grid: Grid
    seed: int = 1
    clock: VirtualClock = field(default_factory=VirtualClock)
    simulated: bool = True
    _decks: dict[int, _Deck] = field(default_factory=dict, init=False, repr=False)

    @property
    def replayed(self) -> str:
        """Name of the recording."""
        return self.grid.header.name

    def measure(self, request: model.RunRequest, time_limit_s: float) -> model.RunResult:
        """Plays a recorded run of the request's configuration, in no time at all.

        A run that took longer than the limit ends as timed out at the limit, without sizes.

        Raises:
            CampaignError: the grid has no such configuration, sizes or operation; see
                ``check_plan``, which says so before a campaign begins.
        """
        deck = self._deck(request)
        rng = random.Random(f"{self.seed}/{request.block}/{request.position}/{deck.index}")
        at_s = (self._begin_s + self.clock.now) % self.grid.span_s
        run = deck.draw(at_s, self._timeline.state_at(at_s), rng)
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
        """Recovers nothing: nothing is ever left of a run."""
        del request
        return None

    def trace(self, request: model.RunRequest, time_limit_s: float) -> model.Execution | None:
        """A recording doesn't tell what the library did."""
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
            self._decks[index] = _Deck(self.grid, index, self._timeline)
        return self._decks[index]

    @cached_property
    def _timeline(self) -> _Timeline:
        return _Timeline(self.grid)

    @cached_property
    def _begin_s(self) -> float:
        return random.Random(f"{self.seed}/begin").random() * self.grid.span_s


class _Timeline:
    """What the machine was like over the recording: log canaries, one row a run."""

    def __init__(self, grid: Grid) -> None:
        self.span_s = grid.span_s
        self.starts = [run.started_s for run in grid.runs]
        sizes = grid.header.workload.sizes
        self.states = _filled(np.array([_canaries(run, sizes) for run in grid.runs]))

    def state_at(self, at_s: float) -> NDArray[np.float64]:
        """The state at a time: that of the run which was under way, or had ended last."""
        place = max(0, bisect_right(self.starts, at_s) - 1)
        state: NDArray[np.float64] = self.states[place]
        return state


def _canaries(run: RecordedRun, sizes: Sequence[int]) -> list[float]:
    by_size = {size.bytes: size for size in run.sizes}
    found: list[float | None] = []
    for bytes_ in sizes:
        size = by_size.get(bytes_)
        found += [size.canary_s, size.canary_after_s] if size else [None, None]
    return [np.nan if value is None else float(np.log(value)) for value in found]


def _filled(states: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fills gaps by the last known value before them, the first ones by the next; all by 0."""
    flat = states.ravel().copy()
    known = np.flatnonzero(~np.isnan(flat))
    if not known.size:
        return np.zeros_like(states)
    before = np.maximum(np.searchsorted(known, np.arange(flat.size), side="right") - 1, 0)
    filled: NDArray[np.float64] = flat[known[before]].reshape(states.shape)
    return filled


class _Deck:
    """The recorded runs of one configuration, to be drawn from."""

    def __init__(self, grid: Grid, index: int, timeline: _Timeline) -> None:
        places = [i for i, run in enumerate(grid.runs) if run.configuration == index]
        self.index = index
        self._runs = [grid.runs[i] for i in places]
        self._starts = np.array([run.started_s for run in self._runs])
        self._states = timeline.states[places]
        self._half_s = max(timeline.span_s / 2, 1e-9)
        # Half of them stay undrawn lately, so that there is always a choice.
        self._lately: deque[int] = deque(maxlen=min(len(places) // 2, 8))

    def draw(self, at_s: float, state: NDArray[np.float64], rng: random.Random) -> RecordedRun:
        """The run to play at a time of the recording, when the machine was in this state."""
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
    """Refuses, before anything starts, a campaign that a recording can't answer.

    Raises:
        CampaignError: what the recording lacks.
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
            hint="the recording's own campaign is in its first line (docs/replay.md), or record "
            f"this one:\n'commtune record CAMPAIGN.yaml --runs 8 --out {plan.name}.jsonl.gz'",
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
    # Counted first: a far too large space isn't gone through for what the grid lacks.
    count, there = space.count(), len(grid.index)
    if count > there:
        return [f"space {space.name} has {count:,} configurations, the recording {there:,}"]
    lacking: list[model.Configuration] = list(
        islice((c for c in space.configurations() if c not in grid.index), 3)
    )
    return [f"it lacks the configuration {configuration}" for configuration in lacking]
