"""Stored profiles, with their evidence as tables and their settings as files."""

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
    """Results with a row for each message size and machine state."""

    def rows(self) -> list[Row]:
        """Returns plain rows: times in seconds, sizes in bytes, speedups as ratios."""
        raise NotImplementedError

    def to_frame(self) -> Any:
        """Returns the rows as a pandas DataFrame.

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
        number: its identifier in the database, which is never reused.
        bytes_low, bytes_high: the closed range of sizes that it is for, bytes.
        configuration: the variables to set; empty if the default is best.
        pinned: variables set in every run of its campaign, including the default's.
        verdict: faster than the default, the default itself, undecided, likely, or withdrawn
            after a verification.
        level: confidence level at which all intervals of its campaign hold simultaneously.
        strength: pairs, days, sessions and nodes that it rests on, and its verifications.
        simulated: whether it was simulated or replayed, and says nothing about a real system.
        created: seconds since 1970.
        support: its basis as an answer to ``best``: ``measured``; or for a size that was not
            measured, ``neighbours-agree`` or ``neighbours-disagree``.
        neighbours: the best at the nearest measured sizes (bytes) below and above such a size.
    """

    number: int
    campaign: str
    pinned: Mapping[str, str]
    system: str
    stack: str
    created: float
    strength: model.Strength
    support: str = "measured"
    neighbours: Mapping[int, Profile] = field(default_factory=dict)
    _answer: ProfileAnswer

    @property
    def reference(self) -> str:
        """Its name for commands: ``CAMPAIGN/PROFILE``."""
        return f"{self.campaign}/{self.name}"

    @property
    def environment(self) -> dict[str, str]:
        """All variables that the profile sets, for ``subprocess`` or ``os.environ``."""
        return {**self.pinned, **self.configuration}

    def rows(self) -> list[Row]:
        """Returns the evidence in the profile's range, a row for each size and machine state.

        Each has the profile's note: slow runs and unproven variables are no part of a speedup.
        """
        named = ("campaign", "operation", "ranks", "nodes", "note")
        about = {"profile": self.name, **{name: getattr(self, name) for name in named}}
        return [{**about, **point_row(point)} for point in displayed_points(self.points_inside)]

    def export(
        self,
        file: str | Path | None = None,
        format: str | None = None,
        *,
        allow_unguarded: bool = False,
        accept_likely: bool = False,
    ) -> str:
        """Writes the profile as a file for shells, programs or module systems; returns its text.

        Args:
            file: the file to write; ``None`` only returns its text.
            format: env, sh, csh, fish, json, task-prolog, lmod or tcl; by default the suffix of
                the file, else sh.
            allow_unguarded: write a module file even if other operations may be slower.
            accept_likely: write it even if its speedup is likely but not proven.

        Raises:
            ExportRefused: the profile claims no speedup, is simulated, or has a name or value
                that the format can't represent.
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
        strength=answer.strength,
        _answer=answer,
    )


class Profiles(Table, Sequence[Profile]):
    """A sequence of profiles; its table has all their evidence."""

    def __init__(self, profiles: Iterable[Profile]) -> None:
        self._profiles = tuple(profiles)

    def __getitem__(self, index: Any) -> Any:
        return self._profiles[index]

    def __len__(self) -> int:
        return len(self._profiles)

    def __repr__(self) -> str:
        return f"Profiles({', '.join(profile.reference for profile in self._profiles)})"

    def rows(self) -> list[Row]:
        """Returns the evidence of all profiles, a row for each size and machine state."""
        return [row for profile in self._profiles for row in profile.rows()]
