"""All ranks of the run, and how they agree with each other outside of timed intervals.

Agreement goes by point-to-point messages along a binomial tree, as in src/world.cpp: a
configuration that breaks a collective operation must not hide that from its own check.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from commtune.kernels.python_bench.faults import UsageFault

if TYPE_CHECKING:
    from mpi4py import MPI

_TAG = 7
_Value = TypeVar("_Value")


class World:
    """MPI, begun.

    Attributes:
        init_s: what MPI_Init took, seconds.
        began_it: whether MPI was not up before.
        comm: all ranks; errors of MPI calls are exceptions.

    Args:
        libmpi: where the MPI library is, as for MPI4PY_LIBMPI; empty leaves it to mpi4py.

    Raises:
        UsageFault: there is no mpi4py, or no MPI library that it can load.
    """

    def __init__(self, libmpi: str = "") -> None:
        if libmpi:
            os.environ["MPI4PY_LIBMPI"] = libmpi
        _load()
        from mpi4py import MPI

        self.mpi = MPI
        began = time.perf_counter()
        self.began_it = not MPI.Is_initialized()
        if self.began_it:
            MPI.Init()
        self.init_s = time.perf_counter() - began
        self.comm: MPI.Intracomm = MPI.COMM_WORLD
        self.rank = self.comm.Get_rank()
        self.size = self.comm.Get_size()

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    @property
    def is_last(self) -> bool:
        return self.rank == self.size - 1

    def max_to_first(self, values: Sequence[float]) -> list[float]:
        """Rank 0 gets the largest over ranks of each; others what their branch came to."""
        return self._combined(list(values), max)

    def min_to_first(self, values: Sequence[float]) -> list[float]:
        """Rank 0 gets the smallest over ranks of each."""
        return self._combined(list(values), min)

    def sum_to_first(self, values: Sequence[int]) -> list[int]:
        """Rank 0 gets the sum over ranks of each."""
        return self._combined(list(values), lambda a, b: a + b)

    def from_first(self, value: _Value) -> _Value:
        """Everybody gets rank 0's value."""
        step = 1
        while step < self.size:
            step *= 2
        step //= 2
        while step > 0:
            if self.rank % (2 * step) == 0 and self.rank + step < self.size:
                self.comm.send(value, dest=self.rank + step, tag=_TAG)
            elif self.rank % (2 * step) == step:
                value = self.comm.recv(source=self.rank - step, tag=_TAG)
            step //= 2
        return value

    def gather(self, value: _Value) -> list[_Value]:
        """Rank 0 gets the value of every rank, in their order; others get nothing."""
        if not self.is_first:
            self.comm.send(value, dest=0, tag=_TAG)
            return []
        others = [self.comm.recv(source=rank, tag=_TAG) for rank in range(1, self.size)]
        return [value, *others]

    def library(self) -> str:
        """The library's description of itself, first line."""
        return " ".join(self.mpi.Get_library_version().partition("\n")[0].strip("\0").split())

    def standard(self) -> str:
        """The MPI standard that the library follows."""
        version, subversion = self.mpi.Get_version()
        return f"{version}.{subversion}"

    def _combined(self, values: list[Any], combine: Callable[[Any, Any], Any]) -> list[Any]:
        step = 1
        while step < self.size:
            if self.rank % (2 * step):
                self.comm.send(values, dest=self.rank - step, tag=_TAG)
                return values
            if self.rank + step < self.size:
                other = self.comm.recv(source=self.rank + step, tag=_TAG)
                values = [combine(a, b) for a, b in zip(values, other, strict=True)]
            step *= 2
        return values


def _load() -> None:
    """Has mpi4py find its MPI library, which it doesn't begin."""
    try:
        import mpi4py
    except ImportError as error:
        raise UsageFault("this needs mpi4py: python -m pip install 'commtune[python]'") from error
    mpi4py.rc.initialize = False
    mpi4py.rc.finalize = False
    mpi4py.rc.threads = False  # MPI_Init, as the native benchmark; threads cost time
    try:
        from mpi4py import MPI  # noqa: F401  # that it can be loaded is all that counts
    except (ImportError, RuntimeError) as error:
        said = "; ".join(str(error).splitlines())
        raise UsageFault(
            f"mpi4py: {said}. Name the MPI library, or its folder, with --libmpi or MPI4PY_LIBMPI"
        ) from None
