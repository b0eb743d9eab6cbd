"""The mean log speedups of configurations, as a table that grows with them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from commtune.model import DEFAULT, Configuration
from commtune.tuner.search.encoding import Matrix

#: Rows that an empty table has room for; it doubles when they are used up.
_FIRST_ROOM = 256


class MeanTable:
    """The mean log speedups of configurations by size, with their numbers of runs.

    One table instead of a row for each configuration, since every fit reads all of it. The default
    is the first row, other configurations follow in the order of their first runs.

    Args:
        sizes: number of sizes.
    """

    def __init__(self, sizes: int) -> None:
        self._places = {DEFAULT: 0}
        self._runs = np.zeros(_FIRST_ROOM)
        self._values = np.zeros((_FIRST_ROOM, sizes))

    def __len__(self) -> int:
        """The number of configurations with a run."""
        return len(self._places) - (not self._runs[0])

    def __contains__(self, configuration: Configuration) -> bool:
        return self.runs_of(configuration) > 0

    @property
    def others(self) -> list[Configuration]:
        """The configurations with a run, without the default."""
        return list(self._places)[1:]

    @property
    def values_of_others(self) -> Matrix:
        """The means of ``others``, configurations x sizes."""
        return self._values[1 : len(self._places)]

    def runs_of(self, configuration: Configuration) -> int:
        """Returns the number of runs of a configuration."""
        place = self._places.get(configuration)
        return 0 if place is None else int(self._runs[place])

    def look_up(
        self, configurations: Sequence[Configuration], unknown: tuple[int, Matrix]
    ) -> tuple[Matrix, Matrix]:
        """Returns the numbers of runs, as a column, and the means of some configurations.

        Args:
            unknown: number of runs, and means, of configurations without a run.
        """
        places = np.array([self._places.get(one, -1) for one in configurations], dtype=np.intp)
        runs, values = self._runs[places], self._values[places]
        is_unknown = (places < 0) | (runs == 0)
        runs[is_unknown], values[is_unknown] = unknown
        return runs[:, None], values

    def add(
        self, configurations: Sequence[Configuration], values: Matrix
    ) -> tuple[Matrix, Matrix]:
        """Adds runs to the means.

        Args:
            values: log speedups, one row a run.

        Returns:
            Of each further run of a configuration its deviation from the mean before it; and the
            number of runs up to it, as a column.
        """
        known = self._places
        places = np.array(
            [known.setdefault(one, len(known)) for one in configurations], dtype=np.intp
        )
        self._make_room()
        _, first = np.unique(places, return_index=True)
        first = first[self._runs[places[first]] == 0]
        self._values[places[first]] = values[first]
        self._runs[places[first]] = 1
        deviations, counts = [], []
        for n in np.delete(np.arange(len(places)), first).tolist():
            place = places[n]
            self._runs[place] += 1
            deviations.append(values[n] - self._values[place])
            counts.append(self._runs[place])
            self._values[place] += deviations[-1] / counts[-1]
        return np.array(deviations), np.array(counts)[:, None]

    def _make_room(self) -> None:
        lacking = len(self._places) - len(self._runs)
        if lacking > 0:
            more = max(lacking, len(self._runs))
            self._runs = np.pad(self._runs, (0, more))
            self._values = np.pad(self._values, ((0, more), (0, 0)))
