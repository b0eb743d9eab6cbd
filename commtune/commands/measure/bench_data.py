"""What ``commtune bench --json`` says. Bandwidths are bytes per second, times seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from commtune.app import nominal_share
from commtune.model import Measurement, Operation, RunRequest, RunResult
from commtune.model.run_costs import cost_of


def run_data(request: RunRequest, result: RunResult, remarks: Sequence[str]) -> dict[str, object]:
    """A run as plain data, whether it was good or not."""
    workload = request.workload
    cost = cost_of(result)
    of_pairs = (
        nominal_share.of_pairs(workload, result) if workload.operation is Operation.PAIRS else {}
    )
    whole = nominal_share.nominal_of_run(workload, result) if not of_pairs else None
    return {
        **asdict(result),
        "header": result.header,
        "footer": result.footer,
        "workload": workload.plain(),
        "timing": asdict(request.timing),
        "measurements": [
            _measurement(m, whole.share(m.busbw) if whole else None) for m in result.measurements
        ],
        "pieces": [
            {
                "part": piece.part,
                "pair": None if piece.pair is None else list(piece.pair),
                "measurement": _measurement(
                    piece.measurement, _of_pair(of_pairs, piece.pair, piece.measurement)
                ),
            }
            for piece in result.pieces
        ],
        "cost": None if cost is None else asdict(cost),
        "of_nominal": None if whole is None else nominal_share.nominal_plain(whole),
        "remarks": list(remarks),
        **({"nominal": _pairs(of_pairs)} if of_pairs else {}),
    }


def _measurement(measurement: Measurement, share: float | None) -> dict[str, Any]:
    """Bandwidths by the names that the benchmark's records have for them, with their unit."""
    known = asdict(measurement)
    bandwidths = {f"{name}_Bps": known.pop(name) for name in ("algbw", "busbw")}
    return {**known, **bandwidths, "share_of_nominal": share}


def _of_pair(
    nominal: Mapping[tuple[int, int], float], pair: tuple[int, int] | None, found: Measurement
) -> float | None:
    return found.algbw / nominal[pair] if pair is not None and pair in nominal else None


def _pairs(nominal: Mapping[tuple[int, int], float]) -> list[dict[str, Any]]:
    return [{"pair": list(pair), "nominal_Bps": whole} for pair, whole in nominal.items()]
