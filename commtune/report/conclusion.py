"""What a campaign concluded, from plain data into words that have types.

Every list may be empty and every number null: the campaign may have been stopped early, or made
by an older version. JSON has no infinity, so an open end of an interval comes as null.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from commtune import formatting
from commtune.model import Configuration, Interval

#: Where other values were tried, a configuration may gain more than the one that it began as.
_MORE_THAN_ALL = 1.05

Plain = Mapping[str, Any]


@dataclass(frozen=True)
class Effect:
    """A ratio of times at one size and machine speed; ``more_pairs`` would decide it, or 0."""

    bytes: int
    speed: str
    gain: Interval
    more_pairs: int = 0


@dataclass(frozen=True)
class Span:
    """Neighbouring sizes from ``low`` to ``high`` bytes, and the ratios between them."""

    low: int
    high: int
    speed: str
    least: float
    most: float


@dataclass(frozen=True)
class Variable:
    """What taking variables out of a configuration did: above 1 they help."""

    names: tuple[str, ...]
    values: Mapping[str, str]
    kept: bool
    effects: tuple[Effect, ...]

    @property
    def label(self) -> str:
        """The variables with their values, for people."""
        settings = [f"{name}={self.values[name]}" for name in self.names if name in self.values]
        return " ".join(settings) or ", ".join(self.names)

    @property
    def helps(self) -> tuple[Span, ...]:
        """Where the whole interval is above 1."""
        return _spans(self.effects, lambda gain: gain.low > 1)

    @property
    def hurts(self) -> tuple[Span, ...]:
        """Where the whole interval is below 1."""
        return _spans(self.effects, lambda gain: gain.high < 1)


@dataclass(frozen=True)
class Ablation:
    """A winner before and after what does nothing was taken out; ``note`` is for people."""

    before: Configuration
    after: Configuration
    blocks: int
    gain_kept: float | None
    variables: tuple[Variable, ...]
    note: str = ""

    @property
    def kept(self) -> str:
        """The share of the gain that was kept, for people; empty where it was not measured."""
        if self.gain_kept is None:
            return ""
        if self.gain_kept > _MORE_THAN_ALL:
            return "more than the whole gain"
        return f"{formatting.format_percent(self.gain_kept)} of the gain kept"

    @property
    def changed(self) -> tuple[tuple[str, str | None, str], ...]:
        """Variables that ended with another value than they began with: name, before, after."""
        return tuple(
            (name, self.before.get(name), value)
            for name, value in self.after.items()
            if self.before.get(name) != value
        )


@dataclass(frozen=True)
class Confirmed:
    """A candidate that was compared with the default; ``stopped`` says why it ended."""

    configuration: Configuration
    blocks: int
    stopped: str
    effects: tuple[Effect, ...]


@dataclass(frozen=True)
class Answer:
    """A configuration for sizes from ``low`` to ``high`` bytes, with its gain by size."""

    low: int
    high: int
    configuration: Configuration
    gains: Mapping[int, float]


@dataclass(frozen=True)
class TradeOff:
    """One environment against one for each range of sizes.

    Attributes:
        weighted: whether the means weigh sizes by the messages of the campaign; else all alike.
        lost_by_one: by size, a share.
    """

    one_mean_gain: float | None = None
    ranges_mean_gain: float | None = None
    lost_by_one: Mapping[int, float] = field(default_factory=dict)
    weighted: bool = False


@dataclass(frozen=True)
class Noise:
    """The default at one size and speed: share of the runs, spread (sd of log time), drift."""

    bytes: int
    speed: str
    share: float | None
    spread: float | None
    runs: int
    drift_per_hour: float | None


@dataclass(frozen=True)
class Spent:
    """Runs of a phase and the wall seconds that they took."""

    phase: str
    runs: int
    failed: int
    disturbed: int
    wall_s: float


@dataclass(frozen=True)
class NotFollowed:
    """A configuration that the library ignored or replaced."""

    configuration: Configuration
    followed: str
    why: str


@dataclass(frozen=True)
class More:
    """What further measuring would decide."""

    runs: int
    seconds: float
    why: str


@dataclass(frozen=True)
class Conclusion:
    """All that a campaign concluded; the empty one where it was not stored."""

    replayed: str = ""
    method: Plain = field(default_factory=dict)
    budget: Mapping[str, float] = field(default_factory=dict)
    spent: tuple[Spent, ...] = ()
    noise: tuple[Noise, ...] = ()
    confirmed: tuple[Confirmed, ...] = ()
    ablations: tuple[Ablation, ...] = ()
    one: Answer | None = None
    ranges: tuple[Answer, ...] = ()
    trade_off: TradeOff = field(default_factory=TradeOff)
    detectable: Mapping[int, float] = field(default_factory=dict)
    more: More | None = None
    not_followed: tuple[NotFollowed, ...] = ()
    set_aside: tuple[tuple[str, str | None], ...] = ()


def parse_conclusion(data: Plain | None) -> Conclusion:
    """The stored conclusion; the empty one for ``None``."""
    if data is None:
        return Conclusion()
    answers: Plain = data.get("answers") or {}
    return Conclusion(
        replayed=str(data.get("replayed") or ""),
        method=data.get("method") or {},
        budget=_numbers(data.get("budget")),
        spent=tuple(_spent(phase, row) for phase, row in (data.get("spent") or {}).items()),
        noise=tuple(_noise(row) for row in _rows(data, "noise")),
        confirmed=tuple(_confirmed(row) for row in _rows(data, "confirmed")),
        ablations=tuple(_ablation(row) for row in _rows(data, "ablations")),
        one=_one(answers.get("one")),
        ranges=tuple(_answer(row) for row in _rows(answers, "ranges")),
        trade_off=_trade_off(answers.get("trade_off") or {}),
        detectable=_by_size(data.get("detectable")),
        more=_more(data.get("more")),
        not_followed=tuple(_not_followed(row) for row in _rows(data, "not_followed")),
        set_aside=tuple((str(name), value) for name, value in _rows(data, "set_aside")),
    )


def _spans(effects: Sequence[Effect], wanted: Callable[[Interval], bool]) -> tuple[Span, ...]:
    """Neighbouring measured sizes with wanted intervals, put together."""
    found = []
    for speed in dict.fromkeys(effect.speed for effect in effects):
        here = [effect for effect in effects if effect.speed == speed]
        for is_wanted, group in groupby(here, key=lambda effect: wanted(effect.gain)):
            if is_wanted:
                found.append(_span(speed, list(group)))
    return tuple(found)


def _span(speed: str, effects: Sequence[Effect]) -> Span:
    ratios = [effect.gain.ratio for effect in effects]
    return Span(effects[0].bytes, effects[-1].bytes, speed, min(ratios), max(ratios))


def _rows(data: Plain, key: str) -> Sequence[Any]:
    found: Sequence[Any] = data.get(key) or ()
    return found


def _number(row: Plain, key: str) -> float | None:
    value = row.get(key)
    return None if value is None else float(value)


def _count(row: Plain, key: str) -> int:
    return int(row.get(key) or 0)


def _numbers(data: Plain | None) -> dict[str, float]:
    return {str(k): float(v) for k, v in (data or {}).items() if v is not None}


def _by_size(data: Plain | None) -> dict[int, float]:
    """Sizes are keys of a JSON object, so text."""
    return {int(k): v for k, v in sorted(_numbers(data).items(), key=lambda item: int(item[0]))}


def _effects(row: Plain) -> tuple[Effect, ...]:
    """The points that have an interval; one pair, or none, says nothing."""
    found = [_effect(point) for point in _rows(row, "points") if point.get("ratio") is not None]
    sound = (effect for effect in found if effect.gain.pairs > 1)
    return tuple(sorted(sound, key=lambda effect: (effect.bytes, effect.speed)))


def _effect(point: Plain) -> Effect:
    low, high = _number(point, "low"), _number(point, "high")
    return Effect(
        bytes=int(point["bytes"]),
        speed=str(point.get("speed") or "all"),
        gain=Interval(
            ratio=float(point["ratio"]),
            low=0.0 if low is None else low,
            high=math.inf if high is None else high,
            pairs=_count(point, "pairs"),
        ),
        more_pairs=_count(point, "more_pairs"),
    )


def _confirmed(row: Plain) -> Confirmed:
    return Confirmed(
        configuration=Configuration(row.get("configuration") or {}),
        blocks=_count(row, "blocks"),
        stopped=str(row.get("stopped") or ""),
        effects=_effects(row),
    )


def _ablation(row: Plain) -> Ablation:
    return Ablation(
        before=Configuration(row.get("from") or {}),
        after=Configuration(row.get("to") or {}),
        blocks=_count(row, "blocks"),
        gain_kept=_number(row, "gain_kept"),
        variables=tuple(_variable(variable) for variable in _rows(row, "variables")),
        note=str(row.get("note") or ""),
    )


def _variable(row: Plain) -> Variable:
    return Variable(
        names=tuple(str(name) for name in _rows(row, "names")),
        values=dict(row.get("values") or {}),
        kept=bool(row.get("kept")),
        effects=_effects(row),
    )


def _answer(row: Plain) -> Answer:
    gains = _by_size(row.get("gains"))
    return Answer(
        low=_count(row, "low") or min(gains, default=0),
        high=_count(row, "high") or max(gains, default=0),
        configuration=Configuration(row.get("configuration") or {}),
        gains=gains,
    )


def _one(row: Plain | None) -> Answer | None:
    return None if row is None else _answer(row)


def _trade_off(row: Plain) -> TradeOff:
    return TradeOff(
        one_mean_gain=_number(row, "one_mean_gain"),
        ranges_mean_gain=_number(row, "ranges_mean_gain"),
        lost_by_one=_by_size(row.get("lost_by_one")),
        weighted=bool(row.get("weighted")),
    )


def _noise(row: Plain) -> Noise:
    return Noise(
        bytes=_count(row, "bytes"),
        speed=str(row.get("speed") or "all"),
        share=_number(row, "share"),
        spread=_number(row, "spread"),
        runs=_count(row, "runs"),
        drift_per_hour=_number(row, "drift_per_hour"),
    )


def _spent(phase: str, row: Plain) -> Spent:
    counts = {key: _count(row, key) for key in ("runs", "failed", "disturbed")}
    return Spent(phase=phase, **counts, wall_s=_number(row, "wall_s") or 0.0)


def _more(row: Plain | None) -> More | None:
    if row is None:
        return None
    why = str(row.get("why") or "")
    return More(runs=_count(row, "runs"), seconds=_number(row, "seconds") or 0.0, why=why)


def _not_followed(row: Plain) -> NotFollowed:
    return NotFollowed(
        configuration=Configuration(row.get("configuration") or {}),
        followed=str(row.get("followed") or ""),
        why=str(row.get("why") or ""),
    )
