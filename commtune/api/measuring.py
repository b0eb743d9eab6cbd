"""Functions that measure: campaigns, recordings, verifications and comparisons."""

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
from commtune.documents.quantities import parse_duration
from commtune.errors import InvalidValue, UserError
from commtune.tuner.campaign import CampaignResult

if TYPE_CHECKING:
    from commtune.app.measure.comparison import ComparisonResult
    from commtune.app.measure.verification import VerificationResult

#: A function, such as ``print``, that is called with lines on the progress of a long call.
OnProgress = Callable[[str], object]

Campaign = campaign_files.CampaignSpec


@dataclass(frozen=True)
class Result(Table):
    """The result of a campaign.

    Attributes:
        profiles: the stored profiles; without a proven gain they keep the default.
        evidence: all other data: counts, times, the conclusion.
    """

    campaign: str
    profiles: Profiles
    evidence: CampaignResult

    def rows(self) -> list[Row]:
        """Returns the evidence of all profiles, a row for each size and machine state."""
        return self.profiles.rows()


def load_campaign(source: Campaign | str | Path | Mapping[str, Any]) -> Campaign:
    """Loads a campaign from a file, or from the same keys as a mapping.

    A campaign that is already loaded is returned unchanged.

    Raises:
        CampaignError: it is invalid; with the line of a file.
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
    """Runs a campaign, or resumes it, and stores its profiles.

    Args:
        campaign: from ``load_campaign``, or its file.
        replay: a recording to play back instead of measuring; profiles are marked as replayed.
        on_progress: called with lines on the progress, such as ``print``.
        take_over: whether to take over the lock of a controller that died.

    Raises:
        CampaignChanged: results would not be comparable with the stored campaign of this name.
        CampaignLocked: another controller works on it.
        EnvironmentFault: something is missing on this machine.
    """
    from commtune.app.campaigns.preparing import prepare_campaign
    from commtune.app.campaigns.tuning import replay_campaign, tune_campaign
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
        file: the compressed recording to write, ``NAME.jsonl.gz``.
        runs: number of runs of every configuration.
        limit: seconds or ``"30min"``; a recording that would take longer is refused.
    """
    from commtune.app.measure.recording import record_campaign

    reporter, limit_s = _reporter(on_progress), _seconds(limit)
    record_campaign(load_campaign(campaign), Path(file), reporter, runs=runs, limit_s=limit_s)
    return Path(file)


@dataclass(frozen=True)
class Verification(Table):
    """The result of measuring a profile again.

    Attributes:
        finding: holds, weaker, gone, worse or undecided.
        changes: what has changed on the system since the profile was made, in words.
        evidence: all other data.
    """

    profile: str
    finding: str
    changes: tuple[str, ...]
    evidence: VerificationResult

    def rows(self) -> list[Row]:
        """Returns the new evidence, a row for each size; ``slow_runs`` are those of all sizes."""
        found = self.evidence.verification
        return [
            {
                **(point_row(size.point) if size.point else {"bytes": size.bytes}),
                "finding": str(size.finding),
                "stated_speedup": size.stated.ratio if size.stated else None,
                "slow_runs": found.slow_runs,
            }
            for size in found.sizes
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
        time: wall time of the runs, in seconds or as ``"2min"``.
        mpi: an MPI to use instead of the campaign's, as for ``commtune tune --mpi``.

    Raises:
        UserError: the profile claims no speedup, or is of another system or library.
    """
    from commtune.app.measure import verification

    reference = profile.reference if isinstance(profile, Profile) else profile
    found = verification.verify_profile(
        reference, db=store.url, time_s=_seconds(time), mpi=mpi, reporter=_reporter(on_progress)
    )
    return Verification(found.profile, str(found.verification.finding), found.changes, found)


@dataclass(frozen=True)
class Comparison(Table):
    """The result of comparing two configurations, which is not stored."""

    a: str
    b: str
    evidence: ComparisonResult

    def rows(self) -> list[Row]:
        """Returns a row for each size and machine state; above 1, ``a_over_b`` favours B.

        ``slow`` is the side that has more slow runs, if one has.
        """
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
                "slow": str(one.slow) if one.slow else None,
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
    """Compares two configurations, in blocks of one run of each.

    Args:
        a, b: ``"default"``, a profile, or settings: ``"NAME=VALUE NAME=VALUE"``.
        store: the database with the profiles; intervals allow for the variation between sessions
            that it knows of this system.
        time: total wall time of the runs, in seconds or as ``"2min"``.
        workload: operation, ranks, sizes (bytes), backend: changes to the workload of a profile's
            campaign, or to the default workload.
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
        return parse_duration(time)
    except InvalidValue as error:
        raise UserError(f"time={time!r}: {error}", hint="write 90, '90s' or '2min'") from error


def _reporter(on_progress: OnProgress | None) -> LineReporter:
    return LineReporter(on_progress or str)
