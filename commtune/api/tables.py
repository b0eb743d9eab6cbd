"""Results that are rows, for a program or pandas."""

from __future__ import annotations

from typing import Any

from commtune.errors import MissingComponent, install_command
from commtune.model import PointEvidence

Row = dict[str, Any]


class Table:
    """Results that are rows: one a message size and machine state."""

    def rows(self) -> list[Row]:
        """Plain rows: times in seconds, sizes in bytes, speedups as ratios."""
        raise NotImplementedError

    def to_frame(self) -> Any:
        """The rows as a pandas DataFrame.

        Raises:
            MissingComponent: pandas is not installed.
        """
        return import_pandas().DataFrame(self.rows())


def import_pandas() -> Any:
    try:
        import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError as error:
        raise MissingComponent(
            "pandas is not installed, and .to_frame() makes one of its tables",
            hint=f"{install_command('pandas')}\n.rows() gives the same as plain Python",
        ) from error
    return pandas


def point_row(point: PointEvidence) -> Row:
    return {
        "bytes": point.bytes,
        "machine_state": point.speed,
        "default_s": point.default_s,
        "tuned_s": point.tuned_s,
        "speedup": point.gain.ratio,
        "low": point.gain.low,
        "high": point.gain.high,
        "pairs": point.gain.pairs,
        "verdict": str(point.verdict),
    }
