"""The former name of ``commtune.kernels.python_bench``, for patterns written before it moved."""

from commtune.kernels.python_bench import Pattern

__all__ = ["Pattern"]
