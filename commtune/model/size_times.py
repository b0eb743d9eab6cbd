"""The times of measurements as columns, which take less memory than objects."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Any

from commtune.model.runs import SizeTime

_COLUMNS = ("bytes", "time_s", "canary_s", "canary_after_s")


@dataclass(frozen=True)
class SizeTimes:
    """The times of measurements as columns: a long campaign has millions of them.

    Attributes:
        run: index of the measurement's run in a list of runs, ascending.
        bytes: message size.
        time_s, canary_s, canary_after_s: as in ``SizeTime``; NaN for ``None``.
    """

    run: array[int] = field(default_factory=lambda: array("q"))
    bytes: array[int] = field(default_factory=lambda: array("q"))
    time_s: array[float] = field(default_factory=lambda: array("d"))
    canary_s: array[float] = field(default_factory=lambda: array("d"))
    canary_after_s: array[float] = field(default_factory=lambda: array("d"))

    def add(self, run: int, measured: Sequence[SizeTime]) -> None:
        """Adds the measurements of a run."""
        if not measured:
            return
        columns = ([getattr(one, name) for one in measured] for name in _COLUMNS)
        self.extend([run] * len(measured), *columns)

    def extend(self, run: Sequence[int], *columns: Sequence[Any]) -> None:
        """Adds measurements; columns in the order of the other attributes."""
        self.run.fromlist(list(run))  # in half the time of ``extend``
        for name, column in zip(_COLUMNS, columns, strict=True):
            known = [nan if one is None else one for one in column] if None in column else column
            getattr(self, name).fromlist(list(known))
