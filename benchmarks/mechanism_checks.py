"""Which of the SC24 study's observations hold in what ``mechanisms.py`` measured.

Each is a number from the data held against a bound that stands beside it. Where the data lacks
something, or one node can't show it, the answer is that it can't be told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

#: Seconds by operation, backend and size.
Times = dict[str, dict[str, dict[int, float]]]
#: Up to here a message's time is latency.
LARGEST_SMALL = 64 * 2**10
_SMALL = 2**10
_MIDDLE = (64 * 2**10, 16 * 2**20)
_LARGE = 64 * 2**20
_STAGED, _MPI, _XCCL = "mpi-staged", "mpi-device", "xccl"
_COPIES = ("ipc-put", "ipc-get")
HOLDS, DOES_NOT, UNKNOWN = "holds", "doesn't hold", "can't tell here"
#: Bytes per second of one NVLink one way, by version, as NVIDIA rates them: drivers name what the
#: wires carry, which is more.
_NVLINK = {"2": 25e9, "3": 25e9, "4": 25e9, "5": 50e9}


@dataclass(frozen=True)
class Check:
    """An observation, the verdict (one of three) and the numbers behind it."""

    statement: str
    verdict: str
    reason: str


def nominal_Bps(document: dict[str, Any]) -> float | None:
    """Rated bandwidth between rank 0's GPU and the last one's, one way; ``None`` if not known."""
    for header in document.get("headers", {}).values():
        gpus = [gpu for gpu in header.get("gpus", []) if gpu]
        if len(gpus) < 2:
            continue
        total = 0.0
        for bundle in gpus[0].get("links") or ():
            peer = str(bundle.get("pci") or "").lower()
            if bundle.get("to") == "switch" or peer == str(gpus[-1].get("pci")).lower():
                rated = _NVLINK.get(str(bundle.get("version") or "").split(".")[0])
                total += bundle["links"] * (rated or bundle.get("link_Bps") or 0.0)
        if total > 0:
            return total
    return None


class _Data:
    """Questions to the measured times; ``None`` answers what was not measured."""

    def __init__(self, times: Times) -> None:
        self._times = times

    def ratio(
        self, operation: str, slow: str, fast: str, keep: Callable[[int], bool]
    ) -> float | None:
        """Geometric mean over sizes of one backend's time over another's."""
        pairs = self.ratios(operation, slow, fast, keep)
        return geometric_mean(pairs) if pairs else None

    def ratios(
        self, operation: str, slow: str, fast: str, keep: Callable[[int], bool]
    ) -> list[float]:
        """Likewise, of each size."""
        found = self._times.get(operation, {})
        a, b = found.get(slow, {}), found.get(fast, {})
        return [a[size] / b[size] for size in sorted(set(a) & set(b)) if keep(size)]

    def peak(self, operation: str, backend: str) -> float | None:
        """Goodput at the largest size, bytes per second, if that is large."""
        sizes = self._times.get(operation, {}).get(backend, {})
        size = max(sizes, default=0)
        return size / sizes[size] if size >= _LARGE else None

    def peaks(self, operation: str, backends: Sequence[str]) -> dict[str, float]:
        """Those of the backends that were measured."""
        found = {name: self.peak(operation, name) for name in backends}
        return {name: peak for name, peak in found.items() if peak is not None}


def checks(times: Times, nominal: float | None) -> list[Check]:
    """The list, in the order of the study's sections."""
    data = _Data(times)
    return [
        *_pairs(data),
        *_device_copies(data, nominal),
        *_collectives(data),
        *_gap(data, nominal),
        *_elsewhere(),
    ]


def _is_small(size: int) -> bool:
    return size <= _SMALL


def _is_large(size: int) -> bool:
    return size >= _LARGE


def _is_middle(size: int) -> bool:
    return _MIDDLE[0] <= size <= _MIDDLE[1]


def _at_least(statement: str, value: float | None, bound: float, what: str) -> Check:
    if value is None:
        return Check(statement, UNKNOWN, f"{what}: not measured")
    verdict = HOLDS if value >= bound else DOES_NOT
    return Check(statement, verdict, f"{what}: {value:.2f} (bound {bound:g})")


def _pairs(data: _Data) -> Iterator[Check]:
    def ratio(slow: str, fast: str, keep: Callable[[int], bool]) -> float | None:
        return data.ratio("ping-pong", slow, fast, keep)

    yield _at_least(
        "III-C: staging is up to ten times slower than GPU-aware MPI, large messages",
        ratio(_STAGED, _MPI, _is_large),
        5.0,
        "staged / GPU-aware time from 64 MiB",
    )
    yield _at_least(
        "III-C: staging is slower than GPU-aware MPI, small messages",
        ratio(_STAGED, _MPI, _is_small),
        1.1,
        "staged / GPU-aware time to 1 KiB",
    )
    yield _at_least(
        "III-C, CommBench 5.2: NCCL is slower than GPU-aware MPI, small messages",
        ratio(_XCCL, _MPI, _is_small),
        1.1,
        "NCCL / GPU-aware time to 1 KiB",
    )
    middle = data.ratios("ping-pong", _XCCL, _MPI, _is_middle)
    yield _at_least(
        "III-C: GPU-aware MPI is up to twice as fast as NCCL, medium messages",
        max(middle, default=None),
        1.5,
        "most of NCCL / GPU-aware time, 64 KiB to 16 MiB",
    )
    peaks = data.peaks("ping-pong", (_XCCL, _MPI, *_COPIES))
    spread = min(peaks.values()) / max(peaks.values()) if len(peaks) >= 3 else None
    yield _at_least(
        "III-C: NCCL, GPU-aware MPI and device copies are alike, large messages",
        spread,
        0.8,
        "least / most goodput at the largest size",
    )
    others = [peak for name, peak in peaks.items() if name != _MPI]
    lead = peaks[_MPI] / max(others) if _MPI in peaks and others else None
    yield _at_least(
        "Observation 2: GPU-aware MPI has the highest goodput between GPUs of a node",
        lead,
        0.98,
        "GPU-aware / best other goodput at the largest size",
    )


def _device_copies(data: _Data, nominal: float | None) -> Iterator[Check]:
    copies = data.peaks("ping-pong", _COPIES)
    best = max(copies.values(), default=None)
    yield _at_least(
        "III-D: device copies reach 70 % of nominal",
        best / nominal if best and nominal else None,
        0.7,
        "share of nominal at the largest size",
    )


def _collectives(data: _Data) -> Iterator[Check]:
    for operation in ("alltoall", "allreduce"):
        for words, keep in (("large", _is_large), ("small", _is_small)):
            yield _at_least(
                f"Observation 4: NCCL beats GPU-aware MPI, {operation}, {words} messages",
                data.ratio(operation, _MPI, _XCCL, keep),
                1.0,
                "GPU-aware / NCCL time",
            )
    gaps = [data.ratio(op, _MPI, _XCCL, _is_large) for op in ("allreduce", "alltoall")]
    yield _at_least(
        "IV-D: NCCL's lead over GPU-aware MPI is larger in allreduce than in alltoall",
        gaps[0] / gaps[1] if gaps[0] and gaps[1] else None,
        1.0,
        "lead in allreduce / lead in alltoall",
    )
    for operation in ("alltoall", "allreduce"):
        yield _at_least(
            f"IV: staging is far behind NCCL, {operation}, large messages",
            data.ratio(operation, _STAGED, _XCCL, _is_large),
            5.0,
            "staged / NCCL time from 64 MiB",
        )


def _gap(data: _Data, nominal: float | None) -> Iterator[Check]:
    """With two ranks, both collectives could move data at the link's rate: half of an alltoall's
    buffer and as much as all of an allreduce's goes each way."""
    pair, reduced = data.peak("ping-pong", _XCCL), data.peak("allreduce", _XCCL)
    told = pair and reduced and nominal
    yield _at_least(
        "IV-D: what is measured stays further behind nominal in allreduce than between a pair",
        pair / reduced if told and pair and reduced else None,
        1.0,
        "NCCL's ping-pong / allreduce bus bandwidth (two ranks)",
    )


def _elsewhere() -> Iterator[Check]:
    reasons = {
        "Observation 1: tuning gains up to ten times": "a campaign shows it",
        "Observation 3: RCCL underrates some pairs on LUMI": "needs GPUs with unequal links",
        "Observation 5: MPI beats NCCL between nodes": "one node",
        "Observation 6: distance in the network matters": "one node",
        "Observation 7: NCCL's lead shrinks with nodes": "one node",
        "Observation 8: noise halves goodput of collectives": "one node",
    }
    for statement, reason in reasons.items():
        yield Check(statement, UNKNOWN, reason)
