"""The Python API: what ``import commtune`` gives. Its page is docs/python-api.md."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from commtune import model
from commtune.app.profile_use import export_profile
from commtune.app.progress import LineReporter
from commtune.campaign import loading as campaign_files
from commtune.db.connection.location import database_url
from commtune.db.queries import results
from commtune.db.queries.profiles import find_profiles, load_profile
from commtune.db.records import CampaignSummary, ProfileAnswer
from commtune.documents.quantities import QuantityError, parse_bytes, parse_seconds
from commtune.errors import MissingComponent, UserError, install_command
from commtune.export.tables import in_groups
from commtune.kernels.python_bench import Pattern as Pattern
from commtune.model import Configuration as Configuration
from commtune.model import PointEvidence
from commtune.spaces.loading import load_space as load_space
from commtune.spaces.space import Space as Space
from commtune.tuner.campaign import CampaignResult
from commtune.tuner.outcome.displayed_points import displayed_points

if TYPE_CHECKING:
    from commtune.app.comparison import ComparisonResult
    from commtune.app.verification import VerificationResult

#: Takes a line of what a long call does, such as ``print``.
_OnProgress = Callable[[str], object]

_Row = dict[str, Any]


Campaign = campaign_files.CampaignSpec


class _Table:
    """Results that are rows: one a message size and machine state."""

    def rows(self) -> list[_Row]:
        """Plain rows: times in seconds, sizes in bytes, speedups as ratios."""
        raise NotImplementedError

    def to_frame(self) -> Any:
        """The rows as a pandas DataFrame.

        Raises:
            MissingComponent: pandas is not installed.
        """
        return _pandas().DataFrame(self.rows())


def _pandas() -> Any:
    try:
        import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError as error:
        raise MissingComponent(
            "pandas is not installed, and .to_frame() makes one of its tables",
            hint=f"{install_command('pandas')}\n.rows() gives the same as plain Python",
        ) from error
    return pandas


@dataclass(frozen=True, kw_only=True)
class Profile(_Table, model.Profile):
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

    def rows(self) -> list[_Row]:
        """The evidence inside the profile's range, a row a size and machine state."""
        named = ("campaign", "operation", "ranks", "nodes")
        about = {"profile": self.name, **{name: getattr(self, name) for name in named}}
        inside = [p for p in self.points if self.bytes_low <= p.bytes <= self.bytes_high]
        return [{**about, **_point_row(point)} for point in displayed_points(inside)]

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
            format: env, sh, csh, fish, json, lmod or tcl; by default what the file's name ends
                in, else sh.
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


def _point_row(point: PointEvidence) -> _Row:
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


def _format_of(file: str | Path | None) -> str:
    suffix = Path(file or "").suffix.removeprefix(".")
    if suffix == "lua":
        return "lmod"
    return suffix if suffix in ("env", "csh", "fish", "json", "tcl") else "sh"


def _profile(answer: ProfileAnswer) -> Profile:
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


class _Profiles(_Table, Sequence[Profile]):
    """Profiles in a row; as a table, all their evidence."""

    def __init__(self, profiles: Iterable[Profile]) -> None:
        self._profiles = tuple(profiles)

    def __getitem__(self, index: Any) -> Any:
        return self._profiles[index]

    def __len__(self) -> int:
        return len(self._profiles)

    def __repr__(self) -> str:
        return f"Profiles({', '.join(profile.reference for profile in self._profiles)})"

    def rows(self) -> list[_Row]:
        """The evidence of all of them, a row a size and machine state."""
        return [row for profile in self._profiles for row in profile.rows()]


class _Measurements(_Table, Iterable[_Row]):
    """Every measurement of campaigns; each iteration reads them anew and holds few at a time."""

    def __init__(self, found: results.Results) -> None:
        self._found = found

    def __iter__(self) -> Iterator[_Row]:
        names = list(self._found.columns)
        return (dict(zip(names, row, strict=True)) for row in self._found)

    def rows(self) -> list[_Row]:
        """All of them at once, a row a measurement."""
        return list(self)

    def to_frame(self) -> Any:
        """All of them as a pandas DataFrame with the same columns, typed.

        Raises:
            MissingComponent: pandas is not installed.
        """
        pandas, columns = _pandas(), self._found.columns
        kinds = {int: "Int64", float: "float64", bool: "bool"}
        types = {name: kinds.get(kind, "string") for name, kind in columns.items()}

        def frame(rows: Sequence[Sequence[Any]]) -> Any:
            made = pandas.DataFrame(rows, columns=list(columns)).astype(types)
            for name in (name for name, kind in columns.items() if kind is datetime):
                made[name] = pandas.to_datetime(made[name], format="ISO8601", utc=True)
            return made

        # In parts, so that what pandas makes of them is all that is held.
        parts = [frame(group) for group in in_groups(self._found)]
        return pandas.concat(parts, ignore_index=True) if parts else frame([])


@dataclass(frozen=True)
class Result(_Table):
    """What a campaign came to.

    Attributes:
        campaign: its name.
        profiles: those that it stored; without a proven gain they keep the default.
        evidence: all else that is known: counts, times, the conclusion.
    """

    campaign: str
    profiles: _Profiles
    evidence: CampaignResult

    def rows(self) -> list[_Row]:
        """The evidence of all profiles, a row a size and machine state."""
        return self.profiles.rows()


class Store:
    """A database of campaigns and their profiles; a context manager.

    Args:
        where: a file, an SQLAlchemy URL, or ``None`` for the user's own database.
    """

    def __init__(self, where: str | Path | None = None) -> None:
        from commtune.db.connection.engine import open_database

        self.url = database_url(None if where is None else str(where))
        self._database = open_database(self.url)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        from commtune.db.connection.location import shown_url

        return f"Store({shown_url(self.url)!r})"

    def close(self) -> None:
        """Closes it; also done at the end of ``with``."""
        self._database.close()

    def campaigns(self) -> list[CampaignSummary]:
        """All campaigns, newest first: their counts of trials and runs, who works on them."""
        from commtune.db.storage.store import Store as Storage

        return Storage(self._database).campaigns()

    def profiles(self, campaign: str | None = None) -> _Profiles:
        """All profiles, or those of one campaign: newest first, then by size."""
        found = find_profiles(self.url, campaign)
        return _Profiles(self.profile(line.id) for line in found)

    def profile(self, reference: str | int) -> Profile:
        """One profile by ``CAMPAIGN/PROFILE``, name or number.

        Raises:
            UnknownName: none, or several, are called so.
        """
        return _profile(load_profile(self.url, str(reference), with_details=True))

    def results(self, *campaigns: str) -> _Measurements:
        """Every measurement of these campaigns, or of all, as ``commtune results`` has them.

        Iterate over it where there are more than memory holds.

        Raises:
            UnknownName: there is no such campaign.
        """
        return _Measurements(results.find_results(self.url, campaigns))

    def best(
        self,
        operation: str,
        bytes: int | str,
        *,
        ranks: int | None = None,
        nodes: int | None = None,
        system: str | None = None,
        backend: str | None = None,
        campaign: str | None = None,
    ) -> Profile:
        """The best that is known for an operation and a message size.

        Its configuration is empty where the default is to be kept. Of a size that was not
        measured, it is the best at the nearest one, and its ``neighbours`` are set: where
        ``support`` says that they disagree, nobody knows which of them is best.

        Args:
            bytes: 1048576, or ``"1MiB"``.
            system: part of a system's name, or its fingerprint.

        Raises:
            NoAnswer: nothing was measured there; the hint says what was.
        """
        from commtune.app.best import Support, best, find_neighbours

        filters = {
            "ranks": ranks, "nodes": nodes, "system": system, "backend": backend,
            "campaign": campaign,
        }  # fmt: skip
        size = _bytes(bytes)
        row = best(operation, size, filters, db=self.url)[0]
        near = find_neighbours(row, size, self.url)
        return replace(
            self.profile(row.id),
            support=str(Support.of(near)),
            neighbours={bytes: self.profile(one.id) for bytes, one in near.items()},
        )


def _bytes(size: int | str) -> int:
    try:
        return size if isinstance(size, int) else parse_bytes(size)
    except QuantityError as error:
        raise UserError(f"bytes={size!r}: {error}", hint="write 8, '64KiB' or '1MiB'") from error


def _seconds(time: float | str) -> float:
    try:
        return parse_seconds(time) if isinstance(time, str) else float(time)
    except QuantityError as error:
        raise UserError(f"time={time!r}: {error}", hint="write 90, '90s' or '2min'") from error


def _reporter(on_progress: _OnProgress | None) -> LineReporter:
    return LineReporter(on_progress or str)


def open_store(where: str | Path | None = None) -> Store:
    """Opens a database of campaigns; a new file is made, an older one brought up to date.

    Raises:
        DatabaseFault: it can't be had, or is another program's.
    """
    return Store(where)


def load_campaign(source: Campaign | str | Path | Mapping[str, Any]) -> Campaign:
    """A campaign from its file, or from the same keys as a mapping; one that is loaded stays.

    Raises:
        CampaignError: something in it is wrong; with the line of a file.
    """
    if isinstance(source, Campaign):
        return source
    if isinstance(source, Mapping):
        return campaign_files.parse_campaign(json.dumps({"campaign": 1, **source}), Path.cwd())
    return campaign_files.load_campaign(Path(source))


def tune(
    campaign: Campaign | str | Path,
    *,
    store: Store,
    replay: str | Path | None = None,
    on_progress: _OnProgress | None = None,
    take_over: bool = False,
) -> Result:
    """Runs a campaign, or continues it where it stopped, and stores its profiles.

    Args:
        campaign: from ``load_campaign``, or its file.
        replay: a recording to play back in the place of measuring; profiles are marked so.
        on_progress: takes a line now and then, such as ``print``.
        take_over: take over the lock of a controller that died.

    Raises:
        CampaignChanged: the stored campaign of this name asks another question.
        CampaignLocked: another controller works on it.
        EnvironmentFault: something is missing here.
    """
    from commtune.app.tuning import prepare_campaign, replay_campaign, tune_campaign
    from commtune.replay.recording import load_grid

    reporter = _reporter(on_progress)
    spec, opened = load_campaign(campaign), store._database
    if replay is not None:
        grid = load_grid(Path(replay))
        found = replay_campaign(spec, grid, opened, reporter, take_over=take_over)
    else:
        spec, mpi = prepare_campaign(spec, store.url)
        found = tune_campaign(spec, mpi, opened, reporter, take_over=take_over)
    return Result(spec.plan.name, store.profiles(spec.plan.name), found)


def best(operation: str, bytes: int | str, *, store: Store, **where: Any) -> Profile:
    """The best that is known for an operation and a size; see ``Store.best``."""
    return store.best(operation, bytes, **where)


def record(
    campaign: Campaign | str | Path,
    file: str | Path,
    *,
    runs: int = 8,
    limit: float | str = "4h",
    on_progress: _OnProgress | None = None,
) -> Path:
    """Records runs of every configuration of a campaign's space, for ``tune(..., replay=)``.

    Args:
        file: the packed recording, ``NAME.jsonl.gz``.
        runs: of every configuration.
        limit: seconds or ``"30min"``; what would take longer is refused.
    """
    from commtune.app.recording import record_campaign

    reporter, limit_s = _reporter(on_progress), _seconds(limit)
    record_campaign(load_campaign(campaign), Path(file), reporter, runs=runs, limit_s=limit_s)
    return Path(file)


@dataclass(frozen=True)
class Verification(_Table):
    """What came of measuring a profile again.

    Attributes:
        finding: holds, weaker, gone, worse or undecided.
        changes: what changed around the profile since, in words.
        evidence: all else that is known.
    """

    profile: str
    finding: str
    changes: tuple[str, ...]
    evidence: VerificationResult

    def rows(self) -> list[_Row]:
        """Today's evidence, a row a size."""
        return [
            {
                **(_point_row(size.point) if size.point else {"bytes": size.bytes}),
                "finding": str(size.finding),
                "stated_speedup": size.stated.ratio if size.stated else None,
            }
            for size in self.evidence.verification.sizes
        ]


def verify(
    profile: Profile | str,
    *,
    store: Store,
    time: float | str = "30s",
    mpi: str | None = None,
    on_progress: _OnProgress | None = None,
) -> Verification:
    """Measures a profile against the default in fresh runs, which are stored.

    Args:
        time: wall time of the runs, seconds or ``"2min"``.
        mpi: another MPI than the campaign's, as for ``commtune tune --mpi``.

    Raises:
        UserError: the profile claims nothing, or is of another system or library.
    """
    from commtune.app import verification

    reference = profile.reference if isinstance(profile, Profile) else profile
    found = verification.verify(
        reference, db=store.url, time_s=_seconds(time), mpi=mpi, reporter=_reporter(on_progress)
    )
    return Verification(found.profile, str(found.verification.finding), found.changes, found)


@dataclass(frozen=True)
class Comparison(_Table):
    """What came of measuring two configurations against each other; nothing is stored."""

    a: str
    b: str
    evidence: ComparisonResult

    def rows(self) -> list[_Row]:
        """A row a size and machine state; above 1, B is faster."""
        return [
            {
                "bytes": one.bytes,
                "machine_state": one.speed,
                "a_s": one.a_s,
                "b_s": one.b_s,
                "a_over_b": one.ratio and one.ratio.ratio,
                "low": one.ratio and one.ratio.low,
                "high": one.ratio and one.ratio.high,
                "pairs": one.ratio.pairs if one.ratio else 0,
                "faster": str(one.faster) if one.faster else None,
            }
            for one in self.evidence.pairs.differences
        ]


def compare(
    a: Profile | str,
    b: Profile | str = "default",
    *,
    store: Store | None = None,
    time: float | str = "30s",
    mpi: str | None = None,
    on_progress: _OnProgress | None = None,
    **workload: Any,
) -> Comparison:
    """Measures two configurations against each other, in blocks of one run of each.

    Args:
        a, b: ``"default"``, a profile, or settings: ``"NAME=VALUE NAME=VALUE"``.
        store: where profiles are.
        time: wall time of the runs, seconds or ``"2min"``.
        workload: operation, ranks, sizes (bytes), backend: what a profile's campaign, or else
            the default, would do otherwise.
    """
    from commtune.app import comparison

    a, b = (one.reference if isinstance(one, Profile) else one for one in (a, b))
    found = comparison.compare(
        a,
        b,
        changes=comparison.WorkloadChanges(**workload),
        mpi=mpi,
        time_s=_seconds(time),
        db=store.url if store else None,
        reporter=_reporter(on_progress),
    )
    found.check_worked()
    return Comparison(a, b, found)
