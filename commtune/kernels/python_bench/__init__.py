"""The second implementation of the benchmark contract, in Python over mpi4py.

It runs where there is no compiler, cross-checks the native benchmark, and measures patterns that
users write as a :class:`Pattern` (docs/own-benchmark.md).
"""

from commtune.kernels.python_bench.running import Pattern

__all__ = ["Pattern"]
