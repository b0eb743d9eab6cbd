"""What a run of the benchmark measured, as tables and as plain data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from commtune import formatting as text
from commtune.app.profiles import nominal_share
from commtune.model import (
    Backend,
    Direction,
    Measurement,
    MpiInstallation,
    Operation,
    RunRequest,
    RunResult,
    SubMeasurement,
    Workload,
)
from commtune.model.operations import ACTIVE
from commtune.model.run_costs import RunCost
from commtune.systems.nominal.collectives import Nominal

#: Ranks; a line of a matrix is not broken: from here on it is longer than screens are.
_WIDEST = 24
#: Measured as parts, and no single ones.
_NAMES = {"kept-apart": "parts kept apart"}

_Pair = tuple[int, int]


def describe_results(request: RunRequest, mpi: MpiInstallation, result: RunResult) -> str:
    """All that a run measured, for people."""
    workload = request.workload
    whole = nominal_share.nominal_of_run(workload, result)
    cost = RunCost.of(result)
    parts = [
        _describe_run(request, f"{mpi.flavour} {mpi.version}"),
        _run_table(workload, result, nominal_share.of_pairs(workload, result), whole),
        _describe_share(whole, result) if whole else "",
        _describe_cost(cost) if cost else "",
    ]
    return "\n".join(filter(None, parts))


def _describe_run(request: RunRequest, mpi: str) -> str:
    """What is measured, by what, and how it is timed where that could be otherwise."""
    workload, timed = request.workload, request.timing.said
    if not timed and workload.backend == Backend.XCCL:
        timed = "one by one"
    backend = [workload.backend] if workload.backend != Backend.MPI_HOST else []
    said = [workload.operation, f"{workload.ranks} ranks", workload.pattern, *backend, mpi]
    said += [text.describe_emulated(workload.emulated_nodes)] if workload.emulated_nodes else []
    said += [f"timed {timed}"] if timed else []
    return ", ".join(filter(None, said))


def _describe_share(whole: Nominal, result: RunResult) -> str:
    """The largest size as a share of the nominal bandwidth, and where that comes from."""
    largest = max(result.measurements, key=lambda m: m.bytes)
    words = whole.reached(largest.busbw)
    if whole.bytes_per_s is None:
        return words
    assumed = "".join(f"; assumed: {assumption}" for assumption in whole.assumptions)
    return f"largest size: {words}\n  {whole.why}; {whole.origin}{assumed}"


def _describe_cost(cost: RunCost) -> str:
    return f"the run took {text.format_duration(cost.wall_s)}: " + ", ".join(
        f"{name} {text.format_duration(max(0.0, seconds))}" for name, seconds in cost.parts()
    )


def _run_table(
    workload: Workload,
    result: RunResult,
    nominal: Mapping[_Pair, float],
    whole: Nominal | None = None,
) -> str:
    """What a run measured, as its operation is looked at.

    Args:
        nominal: bytes per second, of pairs.
        whole: what the links could carry, for a column of shares.
    """
    if workload.operation is Operation.PAIRS:
        return _pair_rows(workload, result, nominal)
    if workload.operation in ACTIVE:
        return _group_rows(workload, result)
    return _part_rows(result) if result.pieces else _size_rows(result, whole)


def _size_rows(result: RunResult, whole: Nominal | None) -> str:
    rows = [
        {
            **_times(m),
            "algbw": _format_bandwidth(m.algbw),
            "busbw": _format_bandwidth(m.busbw),
            **_share_of(whole, m),
            **_beside(m),
        }
        for m in result.measurements
    ]
    return text.format_rows(rows, right=",".join(rows[0]))


def _share_of(whole: Nominal | None, m: Measurement) -> dict[str, str]:
    if whole is None or whole.bytes_per_s is None:
        return {}
    return {"of nominal": text.format_percent(whole.share(m.busbw) or 0.0)}


def _group_rows(workload: Workload, result: RunResult) -> str:
    """A row a size, of patterns of groups; with what their bandwidth is."""
    rows = [
        {**_times(m), "bandwidth": _format_bandwidth(m.algbw), **_beside(m)}
        for m in result.measurements
    ]
    shape = workload.shape
    one_way = shape.direction == Direction.OUTBOUND
    crossing = "leaves" if one_way else "crosses the border of"
    amount = f"{1 if one_way else 2} x {shape.active} x size"
    return (
        f"{text.format_rows(rows, right=','.join(rows[0]))}\n"
        f"bandwidth as CommBench counts it: what {crossing} the first group ({amount}) over the "
        "median time"
    )


def _times(m: Measurement) -> dict[str, str]:
    return {
        "size": text.format_size(m.bytes),
        "median": text.format_duration(m.median_s),
        "min": text.format_duration(m.min_s),
        "p95": text.format_duration(m.p95_s),
    }


def _beside(m: Measurement) -> dict[str, str]:
    first, canary = text.format_duration(m.first_call_s), text.format_duration(m.canary_s)
    return {"first call": first, "samples": str(len(m.samples_s)), "canary": canary}


def _format_bandwidth(bytes_per_s: float) -> str:
    """Bytes per second with three significant digits in a unit that fits: ``16.2 MB/s``."""
    unit, factor = _bandwidth_unit(bytes_per_s)
    return f"{text.format_number(bytes_per_s / factor)} {unit}"


def _bandwidth_unit(bytes_per_s: float) -> tuple[str, float]:
    """The largest decimal unit that is not above a bandwidth, and what it is in bytes/s."""
    for unit, factor in (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)):
        if bytes_per_s >= factor:
            return unit, factor
    return "B/s", 1.0


def _part_rows(result: RunResult) -> str:
    """The whole of each size, then each of its parts by itself."""
    found: defaultdict[int, list[SubMeasurement]] = defaultdict(list)
    for piece in result.pieces:
        found[piece.measurement.bytes].append(piece)
    rows: list[dict[str, str]] = []
    for whole in result.measurements:
        rows.append(_part_row("whole", whole) | {"size": text.format_size(whole.bytes)})
        parts = found[whole.bytes]
        for piece in parts:
            title = _NAMES.get(piece.part, f"{piece.part} alone")
            times = f"{whole.median_s / piece.measurement.median_s:.2f}"
            rows.append(_part_row(title, piece.measurement) | {"whole / it": times})
        if any(piece.part == "split" for piece in parts):
            single = (piece for piece in parts if piece.part not in _NAMES)
            together = sum(piece.measurement.median_s for piece in single)
            times = f"{whole.median_s / together:.2f}"
            shown = {"what": "parts together", "median": text.format_duration(together)}
            rows.append(dict.fromkeys(rows[0], "") | shown | {"whole / it": times})
    return text.format_rows(rows, right="size,median,min,p95,bandwidth,samples,whole / it")


def _part_row(title: str, m: Measurement) -> dict[str, str]:
    row = {"size": "", "what": title, **_times(m), "bandwidth": _format_bandwidth(m.algbw)}
    return row | {"size": "", "samples": str(len(m.samples_s)), "whole / it": ""}


def _pair_rows(workload: Workload, result: RunResult, nominal: Mapping[_Pair, float]) -> str:
    """Latencies at the smallest size and bandwidths at the largest, sender by receiver."""
    by_size = _pairs_by_size(result)
    if not by_size:
        return "no pair was measured"
    smallest, largest = min(by_size), max(by_size)
    latencies, moved = by_size[smallest], by_size[largest]
    unit, factor = _bandwidth_unit(max(m.algbw for m in moved.values()))
    shares = {pair: m.algbw / nominal[pair] for pair, m in moved.items() if pair in nominal}
    at, ranks = text.format_size(largest), workload.ranks
    said = [
        _matrix(
            f"latency at {text.format_size(smallest)}, us",
            ranks,
            {pair: text.format_number(1e6 * m.median_s) for pair, m in latencies.items()},
        ),
        _matrix(
            f"bandwidth at {at}, {unit}",
            ranks,
            {pair: text.format_number(m.algbw / factor) for pair, m in moved.items()},
        ),
    ]
    if shares:
        cells = {pair: f"{100 * share:.3g}" for pair, share in shares.items()}
        said.append(_matrix(f"of the nominal bandwidth at {at}, %", ranks, cells))
    said.append(_ranking(by_size, shares, at))
    return "\n\n".join(said)


def _pairs_by_size(result: RunResult) -> dict[int, dict[_Pair, Measurement]]:
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
    by_size: Mapping[int, Mapping[_Pair, Measurement]], shares: Mapping[_Pair, float], at: str
) -> str:
    """The best and the worst pair of each size; ``shares`` of the nominal are of size ``at``."""
    rows = [_extremes(size, found) for size, found in sorted(by_size.items())]
    each = ("time", "bandwidth")
    header = ("size", "best pair", *each, "worst pair", *each, "worst / best")
    table = text.format_table(header, rows, right="size,time,bandwidth,worst / best")
    if not shares:
        return table
    best, worst = (choose(shares, key=shares.__getitem__) for choose in (max, min))
    return (
        f"{table}\nof nominal at {at}: best {_arrow(best)} {text.format_percent(shares[best])}, "
        f"worst {_arrow(worst)} {text.format_percent(shares[worst])}, "
        f"median {text.format_percent(median(shares.values()))}"
    )


def _extremes(size: int, found: Mapping[_Pair, Measurement]) -> Sequence[str]:
    times = {pair: m.median_s for pair, m in found.items()}
    best, worst = min(times, key=times.__getitem__), max(times, key=times.__getitem__)
    cells = [text.format_size(size)]
    for pair in (best, worst):
        bandwidth = _format_bandwidth(found[pair].algbw)
        cells += [_arrow(pair), text.format_duration(times[pair]), bandwidth]
    return [*cells, f"{times[worst] / times[best]:.2f}"]


def _arrow(pair: _Pair) -> str:
    return f"{pair[0]} -> {pair[1]}"


def run_data(request: RunRequest, result: RunResult, remarks: Sequence[str]) -> dict[str, object]:
    """A run as plain data, good or not; bandwidths are bytes per second, times seconds."""
    workload = request.workload
    cost = RunCost.of(result)
    of_pairs = nominal_share.of_pairs(workload, result)
    whole = nominal_share.nominal_of_run(workload, result) if not of_pairs else None
    pairs = [{"pair": list(pair), "nominal_Bps": bound} for pair, bound in of_pairs.items()]
    return {
        **asdict(result),
        "header": result.header,
        "footer": result.footer,
        "workload": workload.plain(),
        "timing": asdict(request.timing),
        "measurements": [
            _measurement(m, whole.share(m.busbw) if whole else None) for m in result.measurements
        ],
        "pieces": [_piece(piece, of_pairs) for piece in result.pieces],
        "cost": None if cost is None else asdict(cost),
        "of_nominal": None if whole is None else whole.plain(),
        "remarks": list(remarks),
        **({"nominal": pairs} if pairs else {}),
    }


def _piece(piece: SubMeasurement, of_pairs: Mapping[_Pair, float]) -> dict[str, Any]:
    pair, found = piece.pair, piece.measurement
    share = found.algbw / of_pairs[pair] if pair is not None and pair in of_pairs else None
    return {
        "part": piece.part,
        "pair": None if pair is None else list(pair),
        "measurement": _measurement(found, share),
    }


def _measurement(measurement: Measurement, share: float | None) -> dict[str, Any]:
    """Bandwidths by the names that the benchmark's records have for them, with their unit."""
    known = asdict(measurement)
    bandwidths = {f"{name}_Bps": known.pop(name) for name in ("algbw", "busbw")}
    return {**known, **bandwidths, "share_of_nominal": share}
