"""What a run of the benchmark measured: its tables, what to say beside them, and plain data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from commtune import formatting as text
from commtune.app.measure.benchmarking import list_settings_remarks
from commtune.app.profiles import nominal_share
from commtune.campaign.workload import ELEMENT_BYTES, rounded_words
from commtune.model import (
    Backend,
    Direction,
    Measurement,
    MpiInstallation,
    Operation,
    Outcome,
    RunRequest,
    RunResult,
    SubMeasurement,
    Workload,
)
from commtune.model.operations import ACTIVE
from commtune.model.run_costs import RunCost
from commtune.systems.nominal.collectives import Nominal

#: A median so many times the minimum: most samples waited for something that others did not.
_FAR = 5.0
#: Sizes that were moved as others, in one remark.
_MOST_SHOWN = 4
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
        nominal_share.of_run(workload, result),
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


def list_remarks(request: RunRequest, mpi: MpiInstallation, result: RunResult) -> list[str]:
    """What must be said of a run beside its numbers, a line each."""
    said = _settings_remarks(request, mpi, result)
    return said + (_run_remarks(request.workload, result) if result.outcome is Outcome.OK else [])


def _run_remarks(workload: Workload, result: RunResult) -> list[str]:
    """Of a run that came to its end: other sizes than asked for, and who disturbed it."""
    said = [_rounded_sizes(workload, result)]
    if result.oversubscribed:
        said.append(
            "more ranks than cores: these times say nothing about a machine with enough cores"
        )
    else:
        said.append(_disturbance(workload, result))
    if result.detail:
        said.append(f"{result.detail}: these times may not be reproducible")
    return [line for line in said if line]


def _settings_remarks(request: RunRequest, mpi: MpiInstallation, result: RunResult) -> list[str]:
    """What the catalogue says of the settings of a run, as ``commtune doctor`` does."""
    found = {**_versions(result.header or {}), mpi.flavour.library: mpi.version}
    return [f"-x: {remark}" for remark in list_settings_remarks(request.configuration, found)]


def _versions(header: Mapping[str, Any]) -> dict[str, str]:
    versions, library = header.get("versions") or {}, header.get("library")
    name, _, version = str((library or {}).get("name") or "").partition(" ")
    return {**versions, **({name.lower(): version} if version else {})}


def _rounded_sizes(workload: Workload, result: RunResult) -> str:
    """Which sizes were moved as others; empty where none was."""
    factor = _counted(workload)
    pairs = [piece.measurement for piece in result.pieces if piece.pair is not None]
    wholes = [*result.measurements, *pairs]
    if factor is None or any(m.bytes_total is None for m in wholes):
        return rounded_words(workload)
    totals = {m.bytes: m.bytes_total or 0 for m in wholes}
    # Where a sender's share is divided among receivers, it may come to no whole number.
    moved = {size: round(total / factor) for size, total in sorted(totals.items())}
    odd = [
        f"{text.format_size(size)} as {text.format_size(m)}"
        for size, m in moved.items()
        if m != size
    ]
    if not odd:
        return ""
    shown = ", ".join(odd[:_MOST_SHOWN]) + (", ..." if len(odd) > _MOST_SHOWN else "")
    element = ELEMENT_BYTES[workload.dtype]
    return (
        f"moved: {shown}; every message has whole elements of {workload.dtype} ({element} bytes), "
        "one at least. Bandwidths are of what was moved"
    )


def _counted(workload: Workload) -> int | None:
    """How many times its size an operation's bandwidth counts; ``None`` where files say it."""
    operation, shape = workload.operation, workload.shape
    if operation is Operation.MATRIX or operation.is_own:
        return None
    if operation in ACTIVE:
        return shape.active * (1 if shape.direction == Direction.OUTBOUND else 2)
    if operation is Operation.STREAM:
        return workload.stream_window
    return workload.ranks - 1 if operation in (Operation.INCAST, Operation.ONE_TO_MANY) else 1


def _disturbance(workload: Workload, result: RunResult) -> str:
    """That ranks waited for their cores, though each has one; empty where nothing shows it."""
    found = [*result.measurements, *(piece.measurement for piece in result.pieces)]
    signs = [*_missed(workload, result, found), *_far(found)]
    if not signs:
        return ""
    return f"background load disturbs these times: {'; '.join(signs)}"


def _missed(workload: Workload, result: RunResult, found: Sequence[Measurement]) -> Iterator[str]:
    """Where the two ranks of the canary missed each other."""
    without = sum(m.canary_s is None for m in found)
    if without and _has_canary(workload, result.header or {}):
        yield (
            f"rank 0 and its neighbour did not run at the same time before {without} of "
            f"{len(found)} measurements"
        )


def _has_canary(workload: Workload, header: Mapping[str, Any]) -> bool:
    """Whether a cache line goes from rank 0 to a neighbour: not beside GPUs, nor in Python."""
    ranks = header.get("rank_info") or []
    beside = sum(rank.get("node") == ranks[0].get("node") for rank in ranks)
    return workload.backend == Backend.MPI_HOST and beside > 1


def _far(found: Sequence[Measurement]) -> Iterator[str]:
    """The measurement whose median is farthest above its minimum, if it is far."""
    worst = max(found, key=lambda m: m.median_s / m.min_s, default=None)
    if worst is not None and worst.median_s > _FAR * worst.min_s:
        times = worst.median_s / worst.min_s
        yield f"at {text.format_size(worst.bytes)} the median is {times:.0f} times the minimum"


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
