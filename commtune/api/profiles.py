"""Stored profiles, with their evidence as rows and as files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commtune import model
from commtune.app.profiles.use import export_profile
from commtune.db.records import ProfileAnswer
from commtune.errors import MissingComponent, install_command
from commtune.model import PointEvidence
from commtune.tuner.outcome.displayed_points import displayed_points

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


@dataclass(frozen=True, kw_only=True)
class Profile(Table, model.Profile):
    """A stored profile: settings for an operation and a range of sizes, with their evidence.

    Attributes:
        number: names it in its database; never used again for another.
        bytes_low, bytes_high: the sizes that it is for, bytes, both ends inclusive.
        configuration: what to set; empty where the default is to be kept.
        pinned: what was set in every run of its campaign, the default's too.
        verdict: faster than the default, the default itself, or undecided.
        level: confidence level at which all intervals of its campaign hold simultaneously.
        simulated: it was simulated or replayed, and says nothing of a real system.
        created: seconds since 1970.
        support: what it rests on as an answer to ``best``: ``measured``, or, of a size that was
            not, ``neighbours-agree`` or ``neighbours-disagree``.
        neighbours: the best at the measured sizes (bytes) below and above one that was not.
    """

    number: int
    campaign: str
    pinned: Mapping[str, str]
    system: str
    stack: str
    created: float
    support: str = "measured"
    neighbours: Mapping[int, Profile] = field(default_factory=dict)
    _answer: ProfileAnswer

    @property
    def reference(self) -> str:
        """How commands name it: ``CAMPAIGN/PROFILE``."""
        return f"{self.campaign}/{self.name}"

    @property
    def environment(self) -> dict[str, str]:
        """All variables that the profile sets, for ``subprocess`` or ``os.environ``."""
        return {**self.pinned, **self.configuration}

    def rows(self) -> list[Row]:
        """The evidence inside the profile's range, a row a size and machine state."""
        named = ("campaign", "operation", "ranks", "nodes")
        about = {"profile": self.name, **{name: getattr(self, name) for name in named}}
        inside = [p for p in self.points if self.bytes_low <= p.bytes <= self.bytes_high]
        return [{**about, **point_row(point)} for point in displayed_points(inside)]

    def export(
        self,
        file: str | Path | None = None,
        format: str | None = None,
        *,
        allow_unguarded: bool = False,
        accept_likely: bool = False,
    ) -> str:
        """The profile as a file that shells, programs or module systems load.

        Args:
            file: where to write it; ``None`` only returns its text.
            format: env, sh, csh, fish, json, task-prolog, lmod or tcl; by default what the
                file's name ends in, else sh.
            allow_unguarded: write a module file though other operations may be slower.
            accept_likely: write it though its speedup is likely and not proven.

        Raises:
            ExportRefused: the profile claims nothing, is simulated, or does not fit the format.
        """
        return export_profile(
            self._answer,
            format or _format_of(file),
            None if file is None else Path(file),
            allow_unguarded=allow_unguarded,
            accept_likely=accept_likely,
        )


def _format_of(file: str | Path | None) -> str:
    suffix = Path(file or "").suffix.removeprefix(".")
    if suffix == "lua":
        return "lmod"
    return suffix if suffix in ("env", "csh", "fish", "json", "tcl") else "sh"


def stored_profile(answer: ProfileAnswer) -> Profile:
    return Profile(
        **vars(answer.profile),
        number=answer.id,
        campaign=answer.campaign,
        pinned=answer.pinned,
        system=answer.system.name,
        stack=answer.stack.text,
        created=answer.created,
        _answer=answer,
    )


class Profiles(Table, Sequence[Profile]):
    """Profiles in a row; as a table, all their evidence."""

    def __init__(self, profiles: Iterable[Profile]) -> None:
        self._profiles = tuple(profiles)

    def __getitem__(self, index: Any) -> Any:
        return self._profiles[index]

    def __len__(self) -> int:
        return len(self._profiles)

    def __repr__(self) -> str:
        return f"Profiles({', '.join(profile.reference for profile in self._profiles)})"

    def rows(self) -> list[Row]:
        """The evidence of all of them, a row a size and machine state."""
        return [row for profile in self._profiles for row in profile.rows()]
