"""Reads the verifications of a profile, and judges each size again from their runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from commtune.campaign.plan import Plan
from commtune.db.connection.engine import open_readable
from commtune.db.queries.description import describe_campaign
from commtune.db.queries.listing import list_canaries, list_verified_profiles
from commtune.db.queries.profiles import load_profile
from commtune.db.queries.summaries import list_summaries
from commtune.db.records import CampaignDescription, ProfileAnswer
from commtune.db.storage.store import Store
from commtune.errors import UserError
from commtune.model import Phase, PointEvidence, VerificationRecord
from commtune.tuner.confirmation.comparison import Rules
from commtune.tuner.statistics.blocks import whole_blocks
from commtune.tuner.statistics.evidence import Evidence
from commtune.tuner.statistics.machine_states import fit_states
from commtune.tuner.statistics.session_spread import (
    MeasuredSession,
    SessionSpread,
    measure_spread,
)
from commtune.tuner.statistics.tails import describe_slow_runs
from commtune.tuner.verification.claims import Claim
from commtune.tuner.verification.phase import EARLIER

#: The most earlier runs from which the machine's states are fitted: more don't improve the fit.
_MOST_RUNS = 1000
#: The most profiles from which the spread between sessions is measured: each takes 0.2 s.
_MOST_PROFILES = 10


@dataclass(frozen=True)
class PastVerification(MeasuredSession):
    """A verification of a profile.

    Attributes:
        campaign: name of the campaign that has its runs.
        blocks: number of complete blocks of the default and the profile's configuration.
        points: the evidence, by size and machine state.
        slow_runs: more slow runs than with the default, in words; empty if there are none.
    """

    campaign: str
    blocks: int
    record: VerificationRecord
    points: tuple[PointEvidence, ...]
    slow_runs: str


def read_verifications(reference: str, db: str | None = None) -> list[PastVerification]:
    """Returns all verifications of a profile, oldest first.

    Raises:
        UserError: the profile claims nothing that can be verified.
        UnknownName, NoAnswer, DatabaseFault: there is none, or it can't be read.
    """
    claimed = _load_claim(reference, db)
    with open_readable(db) as opened:
        store = Store(opened)
        own = (claimed.stored.id, claimed.stored.name)
        named = [
            (one.id, one.name)
            for one in list_summaries(db)
            if one.settings.get("verifies") == claimed.answer.reference
        ]
        found = [
            one
            for number, name in (own, *named)
            for one in _judge_campaign(store, number, name, claimed)
        ]
    return sorted(found, key=lambda one: one.began_at)


def measure_session_spread(system: str, db: str | None) -> SessionSpread:
    """Measures how much speedups on a system differ between sessions.

    From the confirmations of campaigns and the verifications of their profiles. Verifications with
    another library or kernel are not among them: they are campaigns of their own.

    Args:
        system: the fingerprint of the system.

    Raises:
        DatabaseFault, NoAnswer: the database can't be read, or there is none.
    """
    profiles: list[list[MeasuredSession]] = []
    for number in list_verified_profiles(db, system, _MOST_PROFILES):
        with suppress(UserError):  # a damaged one claims nothing
            profiles.append(_read_sessions(str(number), db))
    return measure_spread(profiles)


def _read_sessions(profile: str, db: str | None) -> list[MeasuredSession]:
    """Returns the confirmation of a profile, and its verifications under the same conditions."""
    claimed = _load_claim(profile, db)
    stored, claim = claimed.stored, claimed.claim
    with open_readable(db) as opened:
        store = Store(opened)
        later = list(_judge_campaign(store, stored.id, stored.name, claimed))
        confirmed = list(store.runs(stored.id, Phase.CONFIRM))
        plans = {one.number: one for one in store.blocks(stored.id)}
    if not confirmed:  # another site may not have sent them
        return [*later]
    blocks, speeds = whole_blocks(confirmed, plans), fit_states(claimed.canaries)
    _, compared = claim.judge_blocks(blocks, speeds, claimed.rules)
    ended = max(run.started_at for run in confirmed)
    return [MeasuredSession(ended, compared.estimates), *later]


@dataclass(frozen=True)
class _Claimed:
    """A stored profile and what it claims.

    Attributes:
        rules: of its campaign; those of a verification have its own share and spread.
        canaries: those of the runs before the profile was made, seconds.
    """

    answer: ProfileAnswer
    stored: CampaignDescription
    claim: Claim
    rules: Rules
    canaries: Sequence[float]


def _load_claim(reference: str, db: str | None) -> _Claimed:
    answer = load_profile(db, reference, with_details=False)
    stored = describe_campaign(db, answer.campaign)
    named = (stored.what.get("workload") or {}).get("sizes") or ()
    sizes = sorted({*named, *(point.bytes for point in answer.profile.points)})
    claim = Claim.of_profile(answer.profile, sizes)
    # A campaign of another site may lack some of these.
    level, minimum_gain, tolerance = (
        stored.settings.get(name, getattr(Plan, name))
        for name in ("level", "minimum_gain", "tolerance")
    )
    rules = Rules(level, minimum_gain, tolerance, len(claim.sizes), 1.0, estimand=stored.estimand)
    canaries = list_canaries(db, stored.id, EARLIER, _MOST_RUNS)
    return _Claimed(answer, stored, claim, rules, canaries)


def _judge_campaign(
    store: Store, number: int, campaign: str, claimed: _Claimed
) -> Iterator[PastVerification]:
    """Judges the verifications of a claim of which a campaign has the runs."""
    claim, name = claimed.claim, claimed.answer.profile.name
    records = [
        one
        for one in store.verifications(number)
        if (one.profile, one.configuration) == (name, claim.configuration)
    ]
    if not records:
        return
    own = Evidence.of_runs(store.runs(number, Phase.VERIFY))
    speeds = fit_states([*claimed.canaries, *own.canaries(Phase.VERIFY)])
    plans = {one.number: one for one in store.blocks(number)}
    for record in records:
        wanted = range(record.first_block, record.last_block + 1)
        runs = [run for run in own.of(Phase.VERIFY) if run.block in wanted]
        if not runs:  # pruned, or another site did not send them
            continue
        rules = replace(claimed.rules, share=record.share, spread=record.session_spread)
        blocks = whole_blocks(runs, plans)
        _, compared = claim.judge_blocks(blocks, speeds, rules)
        yield PastVerification(
            began_at=min(run.started_at for run in runs),
            estimates={size: compared.estimates.get(size) for size in claim.stated},
            campaign=campaign,
            blocks=len(blocks),
            record=record,
            points=compared.points,
            slow_runs=describe_slow_runs(compared.tails),
        )
