"""Evidence written down by hand, and a plan that it could be of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from made_up_runs import point
from made_up_spaces import made_up_space

from commtune.campaign.plan import Plan
from commtune.model import Configuration, Operation, PointEvidence, Workload

SPACE = made_up_space("""
  - {name: V, kind: choice, values: [a, b, c], source: made up}
  - {name: W, kind: choice, values: [a, b], source: made up}
""")
A, B = Configuration({"V": "a"}), Configuration({"V": "b"})
LARGE = Configuration({"V": "c", "W": "a"})
SIZES = (8, 64, 512, 4096, 32768)


def plan(
    sizes: Sequence[int] = SIZES,
    messages: Mapping[int, float] | None = None,
    tolerance: float = 0.05,
) -> Plan:
    workload = Workload(Operation.ALLREDUCE, tuple(sizes))
    return Plan("answers", SPACE, workload, messages=messages or {}, tolerance=tolerance)


def faster(size: int, ratio: float = 1.3, default_s: float = 1.0) -> PointEvidence:
    return point(size, ratio, ratio * 0.99, ratio * 1.01, default_s=default_s)


def unharmed(size: int, ratio: float = 1.0, default_s: float = 1.0) -> PointEvidence:
    """Nothing shown, and surely no more than the tolerance slower."""
    return point(size, ratio, 0.97, 1.03, default_s=default_s)


def unknown(size: int) -> PointEvidence:
    """Nothing shown, and it may be much slower."""
    return point(size, 1.0, 0.8, 1.25)


def slower(size: int, ratio: float = 0.8, default_s: float = 1.0) -> PointEvidence:
    return point(size, ratio, ratio * 0.99, ratio * 1.01, default_s=default_s)
