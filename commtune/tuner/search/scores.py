"""Scores that steer the search. They pick candidates; they are never reported as gains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import stdev

from commtune.model import Configuration, Phase, Run
from commtune.tuner.statistics.evidence import Cell, Evidence, default_times, log_gains
from commtune.tuner.statistics.machine_states import MachineStates

#: A speed with fewer observations of a size than this says too little to be centred on.
_FEW = 10
#: What runs of the default differ by, as logarithms: at least, and before it is known.
_LEAST_SPREAD, _UNKNOWN_SPREAD = 0.005, 0.1


@dataclass(frozen=True)
class SizeRange:
    """Sizes that the search optimises together.

    Attributes:
        label: name for people, ``64 KiB to 256 KiB``.
        sizes: bytes, ascending.
    """

    label: str
    sizes: tuple[int, ...]


def split_ranges(sizes: Sequence[int], label: str = "") -> tuple[SizeRange, ...]:
    """Splits sizes at 16 KiB and 512 KiB, where protocols and algorithms commonly change.

    They only share the search's attention; the ranges of profiles come from the evidence.
    """
    parts = (
        ("small", [s for s in sizes if s < 16 * 1024]),
        ("middle", [s for s in sizes if 16 * 1024 <= s < 512 * 1024]),
        ("large", [s for s in sizes if s >= 512 * 1024]),
    )
    return tuple(SizeRange(f"{label}{name}", tuple(sorted(p))) for name, p in parts if p)


@dataclass
class Score:
    """Mean score of a configuration over its runs."""

    total: float = 0.0
    runs: int = 0

    @property
    def mean(self) -> float:
        """Mean of log(default/configuration) over sizes and runs, centred by machine state."""
        return self.total / self.runs if self.runs else 0.0

    def add(self, value: float) -> None:
        """Takes in one run."""
        self.total += value
        self.runs += 1


@dataclass
class Scoreboard:
    """Scores of every configuration, by size range, from search runs only.

    A gain differs between machine states (1.4x at one, 2.9x at the other), so that the speed a
    run happened to have would outweigh its configuration. Scores are therefore centred: what
    counts is the distance to what good configurations reach at that size and that speed.
    """

    ranges: tuple[SizeRange, ...]
    speeds: MachineStates = field(default_factory=MachineStates)
    _reference: Mapping[Cell, float] = field(default_factory=dict)
    _level: Mapping[Cell, float] = field(default_factory=dict)
    scores: dict[Configuration, dict[str, Score]] = field(default_factory=dict)
    _default: dict[str, list[float]] = field(default_factory=dict)
    _at_speed: dict[tuple[str, str], dict[Configuration, Score]] = field(default_factory=dict)

    def rebuild(self, evidence: Evidence) -> None:
        """Works all scores out again from everything measured."""
        runs = list(evidence.good(Phase.SEARCH))
        self.speeds = evidence.speeds()
        self._reference = default_times(runs, self.speeds)
        self._level = self._good_levels(runs)
        self.scores = {}
        self._default = {}
        self._at_speed = {}
        for run in runs:
            self.add(run)

    def add(self, run: Run) -> dict[str, float]:
        """Takes in one run; returns its score by range label."""
        gains = self._centred(run)
        by_range = self._by_range(gains)
        for name in self.speeds.names:
            here = {cell: gain for cell, gain in gains.items() if cell[1] == name}
            for label, value in self._by_range(here).items():
                at_speed = self._at_speed.setdefault((label, name), {})
                at_speed.setdefault(run.configuration, Score()).add(value)
        into = self.scores.setdefault(run.configuration, defaultdict(Score))
        for label, value in by_range.items():
            into[label].add(value)
            if run.configuration.is_default:
                self._default.setdefault(label, []).append(value)
        return by_range

    def spread(self, label: str) -> float:
        """Standard deviation of a run's score between runs of the default.

        All of them count, wild ones too: where the machine has hidden modes, a configuration must
        not lose for having met the slow one.
        """
        values = self._default.get(label, [])
        return max(stdev(values), _LEAST_SPREAD) if len(values) > 2 else _UNKNOWN_SPREAD

    def score(self, run: Run) -> dict[str, float]:
        """The score of a run by range label, without taking it in."""
        return self._by_range(self._centred(run))

    def _centred(self, run: Run) -> dict[Cell, float]:
        return {
            cell: gain - self._level.get(cell, 0.0)
            for cell, gain in log_gains(run, self.speeds, self._reference).items()
            if self._comparable(cell)
        }

    def _by_range(self, gains: Mapping[Cell, float]) -> dict[str, float]:
        """Mean gain by range label; ranges without a comparable size are absent."""
        found = {}
        for size_range in self.ranges:
            values = [gain for (size, _), gain in gains.items() if size in size_range.sizes]
            if values:
                found[size_range.label] = sum(values) / len(values)
        return found

    def best(self, label: str, count: int, *, fewest_runs: int = 1) -> list[Configuration]:
        """The configurations with the highest mean score in a range, best first, no default."""
        scores = {c: by_range[label] for c, by_range in self.scores.items() if label in by_range}
        return _best(scores, count, fewest_runs)

    def best_at(self, label: str, speed: str, *, fewest_runs: int = 1) -> list[Configuration]:
        """The best configuration of a range at one machine state, if there is one."""
        return _best(self._at_speed.get((label, speed), {}), 1, fewest_runs)

    def best_gain(self, evidence_run: Run) -> float:
        """Largest ratio default/run over sizes in one run: for the eye, not for a report."""
        gains = log_gains(evidence_run, self.speeds, self._reference)
        return max(gains.values(), default=0.0)

    def _comparable(self, cell: Cell) -> bool:
        """Whether scores of this cell are centred as those of the other speed are."""
        size, _ = cell
        return cell in self._level or all(
            (size, name) not in self._level for name in self.speeds.names
        )

    def _good_levels(self, runs: Sequence[Run]) -> dict[Cell, float]:
        found: defaultdict[Cell, list[float]] = defaultdict(list)
        for run in runs:
            for cell, gain in log_gains(run, self.speeds, self._reference).items():
                found[cell].append(gain)
        return {
            cell: sorted(gains)[int(0.9 * (len(gains) - 1))]
            for cell, gains in found.items()
            if len(gains) >= _FEW
        }


def _best(
    scores: Mapping[Configuration, Score], count: int, fewest_runs: int
) -> list[Configuration]:
    scored = [
        (score.mean, configuration)
        for configuration, score in scores.items()
        if score.runs >= fewest_runs and not configuration.is_default
    ]
    return [c for _, c in sorted(scored, key=lambda pair: -pair[0])[:count]]
