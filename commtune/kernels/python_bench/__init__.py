"""The second implementation of the benchmark contract, in Python over mpi4py.

It runs where there is no compiler, cross-checks the native benchmark, and measures patterns that
users write as a :class:`~commtune.kernels.python_bench.pattern.Pattern` (docs/own-benchmark.md).

It starts as quickly as it can, so nothing here imports more than it needs.
"""

from commtune.kernels.python_bench.pattern import Pattern

__all__ = ["Pattern"]
