"""What measures: campaigns, recordings, verifications and comparisons."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commtune.api.profiles import Profile, Profiles, Row, Table, point_row
from commtune.api.store import Store
from commtune.app.progress import LineReporter
from commtune.campaign import loading as campaign_files
from commtune.documents.quantities import QuantityError, parse_seconds
from commtune.errors import UserError
from commtune.tuner.campaign import CampaignResult

if TYPE_CHECKING:
    from commtune.app.measure.comparison import ComparisonResult
    from commtune.app.measure.verification import VerificationResult

#: Takes a line of what a long call does, such as ``print``.
OnProgress = Callable[[str], object]

Campaign = campaign_files.CampaignSpec


@dataclass(frozen=True)
class Result(Table):
    """What a campaign came to.

    Attributes:
        campaign: its name.
        profiles: those that it stored; without a proven gain they keep the default.
        evidence: all else that is known: counts, times, the conclusion.
    """

    campaign: str
    profiles: Profiles
    evidence: CampaignResult

    def rows(self) -> list[Row]:
        """The evidence of all profiles, a row a size and machine state."""
        return self.profiles.rows()


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
    on_progress: OnProgress | None = None,
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
    from commtune.app.campaigns.tuning import prepare_campaign, replay_campaign, tune_campaign
    from commtune.replay.recording import load_grid

    reporter = _reporter(on_progress)
    spec, opened = load_campaign(campaign), store.database
    if replay is not None:
        grid = load_grid(Path(replay))
        found = replay_campaign(spec, grid, opened, reporter, take_over=take_over)
    else:
        spec, mpi = prepare_campaign(spec, store.url, reporter.say)
        found = tune_campaign(spec, mpi, opened, reporter, take_over=take_over)
    return Result(spec.plan.name, store.profiles(spec.plan.name), found)


def record(
    campaign: Campaign | str | Path,
    file: str | Path,
    *,
    runs: int = 8,
    limit: float | str = "4h",
    on_progress: OnProgress | None = None,
) -> Path:
    """Records runs of every configuration of a campaign's space, for ``tune(..., replay=)``.

    Args:
        file: the packed recording, ``NAME.jsonl.gz``.
        runs: of every configuration.
        limit: seconds or ``"30min"``; what would take longer is refused.
    """
    from commtune.app.measure.recording import record_campaign

    reporter, limit_s = _reporter(on_progress), _seconds(limit)
    record_campaign(load_campaign(campaign), Path(file), reporter, runs=runs, limit_s=limit_s)
    return Path(file)


@dataclass(frozen=True)
class Verification(Table):
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

    def rows(self) -> list[Row]:
        """Today's evidence, a row a size."""
        return [
            {
                **(point_row(size.point) if size.point else {"bytes": size.bytes}),
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
    on_progress: OnProgress | None = None,
) -> Verification:
    """Measures a profile against the default in fresh runs, which are stored.

    Args:
        time: wall time of the runs, seconds or ``"2min"``.
        mpi: another MPI than the campaign's, as for ``commtune tune --mpi``.

    Raises:
        UserError: the profile claims nothing, or is of another system or library.
    """
    from commtune.app.measure import verification

    reference = profile.reference if isinstance(profile, Profile) else profile
    found = verification.verify_profile(
        reference, db=store.url, time_s=_seconds(time), mpi=mpi, reporter=_reporter(on_progress)
    )
    return Verification(found.profile, str(found.verification.finding), found.changes, found)


@dataclass(frozen=True)
class Comparison(Table):
    """What came of measuring two configurations against each other; nothing is stored."""

    a: str
    b: str
    evidence: ComparisonResult

    def rows(self) -> list[Row]:
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
    on_progress: OnProgress | None = None,
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
    from commtune.app.measure import comparison

    a, b = (one.reference if isinstance(one, Profile) else one for one in (a, b))
    found = comparison.compare_configurations(
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


def _seconds(time: float | str) -> float:
    try:
        return parse_seconds(time) if isinstance(time, str) else float(time)
    except QuantityError as error:
        raise UserError(f"time={time!r}: {error}", hint="write 90, '90s' or '2min'") from error


def _reporter(on_progress: OnProgress | None) -> LineReporter:
    return LineReporter(on_progress or str)
