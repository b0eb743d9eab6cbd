"""Tables of one run of the benchmark: sizes, parts of an operation, pairs of ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import median

from commtune import formatting as text
from commtune.model import Direction, Measurement, RunResult, SubMeasurement, Workload
from commtune.model.patterns import ACTIVE
from commtune.systems import Nominal

_TIMES = ("size", "median", "min", "p95")
_BESIDE = ("first call", "samples", "canary")
#: A line of a matrix is not broken: from here on it is longer than screens are.
_WIDEST = 24

_RIGHT_OF_PARTS = "size,median,min,p95,bandwidth,samples,whole / it"

_Pair = tuple[int, int]

#: Measured as parts, and no single ones.
_NAMES = {"kept-apart": "parts kept apart"}


def _size_rows(result: RunResult, whole: Nominal | None = None) -> str:
    """A row a size, of the whole operation.

    Args:
        whole: what the links could carry, for a column of shares; ``None`` for none.
    """
    known = whole is not None and whole.bytes_per_s is not None
    header = (*_TIMES, "algbw", "busbw", *(("of nominal",) if known else ()), *_BESIDE)
    rows = [
        (
            *_times(m),
            text.format_bandwidth(m.algbw),
            text.format_bandwidth(m.busbw),
            *((text.format_percent(whole.share(m.busbw) or 0.0),) if whole and known else ()),
            *_beside(m),
        )
        for m in result.measurements
    ]
    return text.format_table(header, rows, right=",".join(header))


def _group_rows(workload: Workload, result: RunResult) -> str:
    """A row a size, of patterns of groups; with what their bandwidth is."""
    header = (*_TIMES, "bandwidth", *_BESIDE)
    rows = [(*_times(m), text.format_bandwidth(m.algbw), *_beside(m)) for m in result.measurements]
    return (
        text.format_table(header, rows, right=",".join(header))
        + "\n"
        + _bandwidth_meaning(workload)
    )


def _beside(m: Measurement) -> tuple[str, str, str]:
    first, canary = (
        "" if seconds is None else text.format_duration(seconds)
        for seconds in (m.first_call_s, m.canary_s)
    )
    return (first, str(len(m.samples_s)), canary)


def _bandwidth_meaning(workload: Workload) -> str:
    """What the bandwidth of a pattern of groups is, in words."""
    shape = workload.shape
    one_way = shape.direction == Direction.OUTBOUND
    crossing = "leaves" if one_way else "crosses the border of"
    amount = f"{1 if one_way else 2} x {shape.active} x size"
    return (
        f"bandwidth as CommBench counts it: what {crossing} the first group ({amount}) over the "
        "median time"
    )


def _times(m: Measurement) -> tuple[str, str, str, str]:
    durations = (
        text.format_duration(m.median_s),
        text.format_duration(m.min_s),
        text.format_duration(m.p95_s),
    )
    return (text.format_size(m.bytes), *durations)


def _part_rows(result: RunResult) -> str:
    """The whole of each size, then each of its parts by itself."""
    found: defaultdict[int, list[SubMeasurement]] = defaultdict(list)
    for piece in result.pieces:
        found[piece.measurement.bytes].append(piece)
    header = ("size", "what", "median", "min", "p95", "bandwidth", "samples", "whole / it")
    rows: list[tuple[str, ...]] = []
    for whole in result.measurements:
        rows.append((text.format_size(whole.bytes), "whole", *_part(whole), ""))
        for piece in found[whole.bytes]:
            one = piece.measurement
            times = f"{whole.median_s / one.median_s:.2f}"
            rows.append(("", _NAMES.get(piece.part, f"{piece.part} alone"), *_part(one), times))
        if any(piece.part == "split" for piece in found[whole.bytes]):
            single = (p for p in found[whole.bytes] if p.part not in _NAMES)
            together = sum(piece.measurement.median_s for piece in single)
            times = f"{whole.median_s / together:.2f}"
            rows.append(
                ("", "parts together", text.format_duration(together), "", "", "", "", times)
            )
    return text.format_table(header, rows, right=_RIGHT_OF_PARTS)


def _part(m: Measurement) -> tuple[str, ...]:
    return (*_times(m)[1:], text.format_bandwidth(m.algbw), str(len(m.samples_s)))


def _pair_rows(workload: Workload, result: RunResult, nominal: Mapping[_Pair, float]) -> str:
    """Latencies at the smallest size and bandwidths at the largest, sender by receiver."""
    by_size = _pairs_by_size(result)
    if not by_size:
        return "no pair was measured"
    smallest, largest = min(by_size), max(by_size)
    latencies, moved = by_size[smallest], by_size[largest]
    unit, factor = text.bandwidth_unit(max(m.algbw for m in moved.values()))
    said = [
        _matrix(
            f"latency at {text.format_size(smallest)}, us",
            workload.ranks,
            {pair: text.format_number(1e6 * m.median_s) for pair, m in latencies.items()},
        ),
        _matrix(
            f"bandwidth at {text.format_size(largest)}, {unit}",
            workload.ranks,
            {pair: text.format_number(m.algbw / factor) for pair, m in moved.items()},
        ),
    ]
    shares = {pair: m.algbw / nominal[pair] for pair, m in moved.items() if pair in nominal}
    if shares:
        said.append(
            _matrix(
                f"of the nominal bandwidth at {text.format_size(largest)}, %",
                workload.ranks,
                {pair: f"{100 * share:.3g}" for pair, share in shares.items()},
            )
        )
    said.append(_ranking(by_size, shares, largest))
    return "\n\n".join(said)


def _pairs_by_size(result: RunResult) -> dict[int, dict[_Pair, Measurement]]:
    """The measurements of pairs."""
    found: defaultdict[int, dict[_Pair, Measurement]] = defaultdict(dict)
    for piece in result.pieces:
        if piece.pair is not None:
            found[piece.measurement.bytes][piece.pair] = piece.measurement
    return dict(found)


def _matrix(title: str, ranks: int, cells: Mapping[_Pair, str]) -> str:
    if ranks > _WIDEST:
        shown = [f"{a} -> {b}: {cell}" for (a, b), cell in sorted(cells.items())]
        return "\n".join([f"{title} (sender -> receiver)", *shown])
    header = ("from \\ to", *map(str, range(ranks)))
    rows = [(str(a), *(cells.get((a, b), "-") for b in range(ranks))) for a in range(ranks)]
    return f"{title}\n{text.format_table(header, rows, right=','.join(header))}"


def _ranking(
    by_size: Mapping[int, Mapping[_Pair, Measurement]], shares: Mapping[_Pair, float], largest: int
) -> str:
    """The best and the worst pair of each size."""
    rows = [_extremes(size, found) for size, found in sorted(by_size.items())]
    each = ("time", "bandwidth")
    header = ("size", "best pair", *each, "worst pair", *each, "worst / best")
    table = text.format_table(header, rows, right="size,time,bandwidth,worst / best")
    if not shares:
        return table
    best, worst = (choose(shares, key=shares.__getitem__) for choose in (max, min))
    return (
        f"{table}\nof nominal at {text.format_size(largest)}: best {_arrow(best)} "
        f"{text.format_percent(shares[best])}, worst {_arrow(worst)} "
        f"{text.format_percent(shares[worst])}, "
        f"median {text.format_percent(median(shares.values()))}"
    )


def _extremes(size: int, found: Mapping[_Pair, Measurement]) -> Sequence[str]:
    taken: Callable[[_Pair], float] = lambda pair: found[pair].median_s  # noqa: E731
    best, worst = min(found, key=taken), max(found, key=taken)
    cells = [
        cell
        for pair in (best, worst)
        for cell in (
            _arrow(pair),
            text.format_duration(taken(pair)),
            text.format_bandwidth(found[pair].algbw),
        )
    ]
    return (text.format_size(size), *cells, f"{taken(worst) / taken(best):.2f}")


def _arrow(pair: _Pair) -> str:
    return f"{pair[0]} -> {pair[1]}"


def run_table(
    workload: Workload,
    result: RunResult,
    nominal: Mapping[_Pair, float],
    whole: Nominal | None = None,
) -> str:
    """What a run measured, as its operation is looked at.

    Args:
        nominal: bytes per second, of pairs.
        whole: as for ``sizes``.
    """
    if workload.operation == "pairs":
        return _pair_rows(workload, result, nominal)
    if workload.operation in ACTIVE:
        return _group_rows(workload, result)
    return _part_rows(result) if result.pieces else _size_rows(result, whole)
