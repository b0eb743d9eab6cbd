"""The seconds that a run costs, by part: launching, initializing, measuring, ending."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from commtune.model.runs import RunResult


@dataclass(frozen=True)
class RunCost:
    """The seconds of one run: those of the launcher, and the parts of the ranks' time.

    All are differences of times of one clock, so clocks of nodes may differ.

    Attributes:
        wall_s: from the start of the launcher to its end; the parts add up to it.
        launch_s: until ``main()`` of rank 0; ``None`` where only ``around_s`` is known.
        mpi_init_s: ``MPI_Init``, longest over ranks.
        library_init_s: communicator of NCCL or RCCL; 0 without one.
        first_calls_s: of all sizes; ``None`` if they weren't stored. Then they are part of
            ``measuring_s``, as those of parts and pairs always are.
        measuring_s: warm-up, samples and checks of all sizes.
        rest_s: everything else that ranks did: backends, buffers, data, records.
        end_s: from the last record to the launcher's end; ``None`` as ``launch_s``.
        around_s: ``launch_s`` and ``end_s`` together.
    """

    wall_s: float
    launch_s: float | None
    mpi_init_s: float
    library_init_s: float
    first_calls_s: float | None
    measuring_s: float
    rest_s: float
    end_s: float | None
    around_s: float

    @classmethod
    def of(cls, result: RunResult) -> RunCost | None:
        """Computes what a run cost; ``None`` if its records don't tell."""
        calls = [m.first_call_s for m in result.measurements]
        known = [call for call in calls if call is not None]
        first_calls_s = sum(known) if known and len(known) == len(calls) else None
        header, footer = result.header or {}, result.footer or {}
        return cls.from_records(result.wall_s, result.end_s, first_calls_s, header, footer)

    @classmethod
    def from_records(
        cls,
        wall_s: float,
        end_s: float | None,
        first_calls_s: float | None,
        header: Mapping[str, Any],
        footer: Mapping[str, Any],
    ) -> RunCost | None:
        """Computes what a run cost from its stored values.

        Args:
            header, footer: the benchmark's records; other programs have no such numbers.
        """
        library = header.get("library")
        library_init = library.get("init_s") if isinstance(library, Mapping) else None
        init, measured = header.get("init_s"), footer.get("measure_s")
        elapsed = footer.get("elapsed_s")
        if not (_is_time(init) and _is_time(measured) and _is_time(elapsed)):
            return None
        library_init_s = float(library_init) if _is_time(library_init) else 0.0
        around_s = wall_s - elapsed
        if around_s <= 0:  # recovered from its records, so the launcher wasn't timed
            return None
        launch_s = None if end_s is None or not 0 <= end_s <= around_s else around_s - end_s
        return cls(
            wall_s=wall_s,
            launch_s=launch_s,
            mpi_init_s=float(init),
            library_init_s=library_init_s,
            first_calls_s=first_calls_s,
            measuring_s=measured - (first_calls_s or 0.0),
            rest_s=elapsed - init - library_init_s - measured,
            end_s=None if launch_s is None else end_s,
            around_s=around_s,
        )

    def parts(self) -> Iterator[tuple[str, float]]:
        """Yields the names and seconds of the known parts, in order of time."""
        if self.launch_s is None:
            yield "launch and end", self.around_s
        else:
            yield "launch", self.launch_s
        yield "MPI_Init", self.mpi_init_s
        if self.library_init_s:
            yield "library", self.library_init_s
        if self.first_calls_s is not None:
            yield "first calls", self.first_calls_s
        yield "measuring", self.measuring_s
        yield "rest", self.rest_s
        if self.end_s is not None:
            yield "end", self.end_s


def _is_time(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
