"""The second implementation of the benchmark contract, in Python over mpi4py.

It runs where there is no compiler, cross-checks the native benchmark, and measures patterns that
users write as a :class:`Pattern` (docs/own-benchmark.md).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from commtune.kernels.python_bench.running import Pattern

__all__ = ["Pattern"]


def __getattr__(name: str) -> Any:
    # The controller reads layouts and samples only: what runs is loaded where a pattern is.
    if name != "Pattern":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from commtune.kernels.python_bench.running import Pattern

    return Pattern
