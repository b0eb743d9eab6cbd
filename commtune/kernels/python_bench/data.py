"""The data that ranks send, and what they must receive; as src/operations/check.cpp has it.

``xp`` is the module of the arrays: numpy, or cupy with the same functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any

_MASK = 2**64 - 1
_TABLE_BITS = 12
_TABLE_SIZE = 1 << _TABLE_BITS
_GOLDEN = 0x9E3779B97F4A7C15
_FACTORS = (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)
_LEAST_VARIETY = 8
_POISON = 0xA5
#: Elements that are looked at together, so that indices need little memory.
_CHUNK = 1 << 18
#: Largest value that every kind of arithmetic on the type leaves exact.
_LARGEST_EXACT = {"float32": 2**24, "float64": 2**52, "int32": 2**31 - 1, "uint8": 255}


@dataclass(frozen=True)
class Expected:
    """Elements that this rank must have received."""

    #: offset, count: where they are in the receive buffer.
    offset: int
    count: int
    source: int | None  # whose they are; ``None`` for the reduction over all ranks
    first: int  # index of the first of them in the sender's buffer


class DataPattern:
    """Values that depend on rank and index, by a hash, so that every mix-up is found."""

    def __init__(self, xp: Any, dtype: str, reduction: str, seed: int, ranks: int) -> None:
        import numpy

        self._np = numpy
        self._xp = xp
        self._dtype = dtype
        self._reduction = reduction
        self._seed = seed
        self._ranks = ranks
        self._golden = xp.arange(_CHUNK, dtype=xp.uint64) * xp.uint64(_GOLDEN)
        self.table = cache(self._made)

    def fill(self, data: Any, rank: int) -> None:
        """Writes what ``rank`` sends."""
        table = self.table(rank)
        for begin in range(0, len(data), _CHUNK):
            part = data[begin : begin + _CHUNK]
            part[:] = table[self._entries(begin, len(part))]

    def count_wrong(self, received: Any, expected: Sequence[Expected]) -> tuple[int, int]:
        """Elements compared, and those that are not as they should be."""
        checked = wrong = 0
        for part in expected:
            found = received[part.offset : part.offset + part.count]
            checked += part.count
            wrong += self.count_different(found, self.table(part.source), part.first)
        return checked, wrong

    def count_different(self, data: Any, table: Any, first: int) -> int:
        """How many elements differ from the table's, ``first`` being the index of the first."""
        wrong = 0
        for begin in range(0, len(data), _CHUNK):
            part = data[begin : begin + _CHUNK]
            expected = table[self._entries(first + begin, len(part))]
            wrong += int(self._xp.count_nonzero(part != expected))
        return wrong

    @staticmethod
    def poison(data: Any) -> None:
        """Overwrites it, so that an operation that does nothing is found out."""
        data.view("uint8")[:] = _POISON

    def _entries(self, first: int, count: int) -> Any:
        xp = self._xp
        offset = xp.uint64(first * _GOLDEN & _MASK)
        return (self._golden[:count] + offset) >> xp.uint64(64 - _TABLE_BITS)

    def _made(self, rank: int | None) -> Any:
        """The values of a rank; or of all, reduced."""
        if rank is not None:
            return self._xp.asarray(self._values(rank))
        combine = self._np.add if self._reduction == "sum" else self._np.maximum
        return self._xp.asarray(reduce(combine, map(self._values, range(self._ranks))))

    def _values(self, rank: int) -> Any:
        np = self._np
        exact = _LARGEST_EXACT[self._dtype]
        largest = exact if self._reduction == "max" else exact // self._ranks
        entries = np.arange(_TABLE_SIZE, dtype=np.uint64)
        if largest >= _LEAST_VARIETY:
            mixed = int(self._mixed_all(np.array([rank + 1], dtype=np.uint64))[0])
            base = np.uint64((self._seed + mixed) & _MASK)
            values = self._mixed_all(entries + base) % np.uint64(largest + 1)
        else:
            # Many ranks share a small sum: as many as the entry says contribute a one each.
            of_entry = self._mixed_all(entries + np.uint64(self._seed))
            contributors = of_entry % np.uint64(exact + 1)
            turn = (self._mixed_all(entries) + np.uint64(rank)) % np.uint64(self._ranks)
            values = turn < contributors
        return values.astype(self._dtype)

    def _mixed_all(self, values: Any) -> Any:
        np = self._np
        for factor in _FACTORS:
            values = (values ^ (values >> np.uint64(33))) * np.uint64(factor)
        return values ^ (values >> np.uint64(33))
