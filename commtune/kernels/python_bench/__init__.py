"""The second implementation of the benchmark contract, in Python over mpi4py.

It runs where there is no compiler, cross-checks the native benchmark, and measures patterns that
users write in Python (:class:`~commtune.kernels.twin.pattern.Pattern`). See docs/own-benchmark.md.

It starts as quickly as it can, so nothing here imports more than it needs.
"""

from commtune.kernels.python_bench.pattern import Pattern

__all__ = ["Pattern"]
