"""A pattern of your own: the halo exchange of a program that divides a square among its ranks.

Ranks stand in a grid, as nearly square as it gets, and both directions wrap around. Each has
``size`` bytes at each of its four edges, which its neighbours need. First the rows, then the
columns: what arrived with the rows travels on with the columns, so that corners get there too.

Tune for it:    commtune tune examples/halo.yaml
Only measure:   mpiexec -n 4 python examples/halo.py
"""

from __future__ import annotations

import math

from commtune import Pattern


class Halo(Pattern):
    """Two steps: left and right, then up and down."""

    def define(self) -> None:
        rows = next(n for n in range(math.isqrt(self.ranks), 0, -1) if self.ranks % n == 0)
        columns = self.ranks // rows
        self.vertical = self.part()
        for rank in range(self.ranks):
            row, column = divmod(rank, columns)
            for step in (-1, 1):
                beside = row * columns + (column + step) % columns
                above = (row + step) % rows * columns + column
                self.add(rank, beside, self.size)
                self.vertical.add(rank, above, self.size)

    def run(self) -> None:
        self.start()
        self.wait()
        self.vertical.start()
        self.vertical.wait()


if __name__ == "__main__":
    for found in Halo.measure([64, 4096, 262144]):
        print(f"{found['bytes']:>8} B {found['time_s']['median'] * 1e6:9.1f} us")
