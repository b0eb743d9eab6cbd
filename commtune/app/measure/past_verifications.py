"""Reads all verifications of a profile, and judges each again from its runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby

from commtune.campaign.plan import Plan
from commtune.db.connection.opening import readable_database
from commtune.db.queries.description import describe_campaign
from commtune.db.queries.listing import count_phases, list_canaries, list_verified_profiles
from commtune.db.queries.profiles import load_profile
from commtune.db.queries.summaries import list_summaries
from commtune.db.records import CampaignDescription, ProfileAnswer
from commtune.db.storage.store import Store
from commtune.errors import UserError
from commtune.formatting import format_count
from commtune.model import Estimand, Phase, PointEvidence, Run
from commtune.model.conclusion import Decision
from commtune.tuner.confirmation.comparison import Rules
from commtune.tuner.statistics.blocks import whole_blocks
from commtune.tuner.statistics.evidence import Evidence, never_works
from commtune.tuner.statistics.machine_states import fit_states
from commtune.tuner.statistics.session_spread import (
    MeasuredSession,
    SessionSpread,
    measure_spread,
)
from commtune.tuner.verification.claims import Claim, VerificationVerdict, judge_profile
from commtune.tuner.verification.phase import EARLIER

#: On a scheduler each block is a session of its own. Blocks whose starts are closer than this are
#: of one verification, seconds.
_NEAR_S = 6 * 3600.0
#: The most earlier runs from which the machine's states are fitted: more don't improve the fit.
_MOST_RUNS = 1000
#: The most profiles from which the spread between sessions is measured: each takes 0.2 s.
_MOST_PROFILES = 10
#: A number of blocks for which several interim looks are planned.
_MANY = 1000


@dataclass(frozen=True)
class PastVerification(MeasuredSession):
    """A verification of a profile.

    Attributes:
        campaign: name of the campaign that has its runs.
        blocks: number of complete blocks of the default and the profile's configuration.
        points: the evidence, by size and machine state.
        nodes: names of the nodes, if a scheduler gave them.
    """

    campaign: str
    blocks: int
    finding: VerificationVerdict
    points: tuple[PointEvidence, ...]
    nodes: frozenset[str]


def describe_strength(past: Sequence[PastVerification]) -> str:
    """Formats how often a profile was verified: ``6 verifications on 4 days and 3 nodes``."""
    said = format_count(len(past), "verification")
    days = len({int(one.began_at // 86400) for one in past})
    nodes = len(frozenset[str]().union(*(one.nodes for one in past)))
    on = f"{said} on {format_count(days, 'day')}"
    return f"{on} and {format_count(nodes, 'node')}" if nodes else on


def read_verifications(reference: str, db: str | None = None) -> list[PastVerification]:
    """Returns all verifications of a profile, oldest first.

    The interim look at which each ended is not stored. So all are judged as if at the first look,
    which may spend the smallest share of the error rate: intervals are never narrower than those
    that ``verify`` printed, and a finding may be inconclusive that was conclusive then.

    Raises:
        UserError: the profile claims nothing that can be verified.
        UnknownName, NoAnswer, DatabaseFault: there is none, or it can't be read.
    """
    answer, stored, claim = _load_claim(reference, db)
    rules = _rules_of(stored, claim)
    found: list[PastVerification] = []
    with readable_database(db) as opened:
        store = Store(opened)
        campaigns = _campaigns_with(answer, stored.id, db)
        if not campaigns:
            return []
        earlier = list_canaries(db, stored.id, EARLIER, _MOST_RUNS)
        for number, name in campaigns.items():
            found += _judge_campaign(store, number, name, claim, earlier, rules)
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
    _, stored, claim = _load_claim(profile, db)
    rules = _rules_of(stored, claim)
    earlier = list_canaries(db, stored.id, EARLIER, _MOST_RUNS)
    with readable_database(db) as opened:
        store = Store(opened)
        later = list(_judge_campaign(store, stored.id, stored.name, claim, earlier, rules))
        confirmed = list(store.runs(stored.id, Phase.CONFIRM))
        plans = {one.number: one for one in store.blocks(stored.id)}
    if not confirmed:  # another site may not have sent them
        return [*later]
    judged = claim.judge_blocks(whole_blocks(confirmed, plans), fit_states(earlier), rules)
    ended = max(run.started_at for run in confirmed)
    return [MeasuredSession(ended, judged.estimates), *later]


def _load_claim(
    reference: str, db: str | None
) -> tuple[ProfileAnswer, CampaignDescription, Claim]:
    answer = load_profile(db, reference)
    stored = describe_campaign(db, answer.campaign)
    named = (stored.what.get("workload") or {}).get("sizes") or ()
    sizes = sorted({*named, *(point.bytes for point in answer.profile.points)})
    return answer, stored, Claim.of_profile(answer.profile, sizes)


def _rules_of(stored: CampaignDescription, claim: Claim) -> Rules:
    # A campaign of another site may lack some of these.
    level, minimum_gain, tolerance = (
        stored.settings.get(name, getattr(Plan, name))
        for name in ("level", "minimum_gain", "tolerance")
    )
    share = min(Decision(blocks=_MANY).shares)
    estimand = Estimand(stored.what.get("estimand", Estimand.MEDIAN))
    return Rules(level, minimum_gain, tolerance, len(claim.sizes), share, estimand=estimand)


def _campaigns_with(answer: ProfileAnswer, own: int, db: str | None) -> dict[int, str]:
    """Returns the campaigns that have runs of a profile's verifications: names by number."""
    return {
        one.id: one.name
        for one in list_summaries(db)
        if (one.id == own or one.settings.get("verifies") == answer.reference)
        and Phase.VERIFY in count_phases(db, one.id)
    }


def _judge_campaign(
    store: Store,
    number: int,
    campaign: str,
    claim: Claim,
    earlier: Sequence[float],
    rules: Rules,
) -> Iterable[PastVerification]:
    """Judges all verifications of a claim whose runs a campaign has.

    Args:
        earlier: canaries of the runs before the profile was made, seconds.
    """
    own = Evidence.of_runs(store.runs(number, Phase.VERIFY))
    speeds = fit_states([*earlier, *own.canaries(Phase.VERIFY)])
    plans = {one.number: one for one in store.blocks(number)}
    for session in _sessions(own.of(Phase.VERIFY)):
        tuned = [run for run in session if run.configuration == claim.configuration]
        if not tuned:  # another profile's
            continue
        blocks = whole_blocks(session, plans)
        sizes, points, estimates = claim.judge_blocks(blocks, speeds, rules)
        finding = judge_profile(sizes, rules)
        if never_works([run for run in tuned if not run.outcome.is_lost]):
            finding = VerificationVerdict.WORSE
        if any(run.oversubscribed for run in session):  # such times are not comparable
            finding = VerificationVerdict.UNDECIDED
        began = min(run.started_at for run in session)
        stated = {size: estimates.get(size) for size in claim.stated}
        nodes = frozenset(node for run in session for node in run.nodes)
        yield PastVerification(began, stated, campaign, len(blocks), finding, points, nodes)


def _sessions(runs: Sequence[Run]) -> Iterable[list[Run]]:
    """Returns the runs of each verification."""
    found: list[list[Run]] = []
    for _, same in groupby(runs, key=lambda run: run.session):
        session = list(same)
        if found and _goes_on(found[-1], session):
            found[-1] += session
        else:
            found.append(session)
    return found


def _goes_on(runs: Sequence[Run], later: Sequence[Run]) -> bool:
    are_of_jobs = all(one[0].session.startswith("job of block ") for one in (runs, later))
    return are_of_jobs and later[0].started_at - runs[-1].started_at < _NEAR_S
