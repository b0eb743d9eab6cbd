"""What the readers of other programs' output share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from commtune.kernels.python_bench.sampling import summarise_samples
from commtune.model import Measurement

#: What mpirun --tag-output and srun --label put in front of a line.
_LABEL = re.compile(r"^(?:\[\d+,\d+\]<std(?:out|err)>:\s?|\d+: )")

_MOST_DIGITS = 15


@dataclass(frozen=True)
class Reading:
    """What a program's output says.

    Attributes:
        measurements: one for each size, in the order printed.
        problems: what could not be understood, for a person.
        ended: whether the output says of itself that it is whole; ``None`` where its format has
            no such mark.
        is_wrong: it says that results were wrong, if not at which size.
    """

    measurements: tuple[Measurement, ...] = ()
    problems: tuple[str, ...] = ()
    ended: bool | None = None
    is_wrong: bool = False


Read = Callable[[str], Reading]


def lines_of(text: str) -> list[str]:
    """The lines, without what a launcher put in front of them."""
    return [_LABEL.sub("", line.rstrip()) for line in text.splitlines()]


def parse_number(word: str) -> float | None:
    """A number from 0, or nothing."""
    try:
        value = float(word)
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def parse_whole(word: str) -> int | None:
    """A whole number from 0 that a size can be, or nothing."""
    return int(word) if word.isdecimal() and len(word) <= _MOST_DIGITS else None


def of_one_time(
    size: int,
    time_s: float,
    *,
    low_s: float | None = None,
    high_s: float | None = None,
    bus_factor: float = 1.0,
    counted: float | None = None,
    wrong: int = 0,
) -> Measurement:
    """A size of which a program says one time, an average as a rule.

    Args:
        time_s: above 0.
        low_s, high_s: of ranks or of iterations, where it says so; samples are not known.
        counted: bytes that bandwidth is computed from, if not ``size``.
    """
    bandwidth = (size if counted is None else counted) / time_s
    return Measurement(
        bytes=size,
        median_s=time_s,
        min_s=time_s if low_s is None else low_s,
        mean_s=time_s,
        p95_s=time_s if high_s is None else high_s,
        max_s=time_s if high_s is None else high_s,
        algbw=bandwidth,
        busbw=bandwidth * bus_factor,
        wrong=wrong,
    )


def of_samples(
    size: int, samples_s: Sequence[float], *, bus_factor: float = 1.0, wrong: int = 0
) -> Measurement:
    """A size of which a program says the time of every iteration."""
    times = summarise_samples(samples_s).times
    bandwidth = size / times["median"]
    return Measurement(
        bytes=size,
        median_s=times["median"],
        min_s=times["min"],
        mean_s=times["mean"],
        p95_s=times["p95"],
        max_s=times["max"],
        algbw=bandwidth,
        busbw=bandwidth * bus_factor,
        samples_s=tuple(samples_s),
        wrong=wrong,
    )


def without_repeats(
    found: Sequence[Measurement], problems: Sequence[str]
) -> tuple[tuple[Measurement, ...], tuple[str, ...]]:
    """Each size once; more is a problem, as nobody knows which is meant."""
    sizes = [m.bytes for m in found]
    twice = sorted({size for size in sizes if sizes.count(size) > 1})
    if not twice:
        return tuple(found), tuple(problems)
    said = f"{twice[0]} bytes are printed {sizes.count(twice[0])} times; run one benchmark, once"
    kept = {m.bytes: m for m in reversed(found)}
    return tuple(kept[size] for size in dict.fromkeys(sizes)), (*problems, said)
