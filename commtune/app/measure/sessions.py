"""Measures how much the speedups of a system differ between sessions, from its verifications."""

from __future__ import annotations

from contextlib import suppress

from commtune.app.measure.past_verifications import (
    MOST_RUNS,
    build_rules,
    load_claim,
    read_verifications,
)
from commtune.db.connection.opening import readable_database
from commtune.db.queries.listing import list_canaries, list_verified_profiles
from commtune.db.storage.store import Store
from commtune.errors import UserError
from commtune.model import Phase
from commtune.tuner.statistics.blocks import whole_blocks
from commtune.tuner.statistics.machine_states import fit_states
from commtune.tuner.statistics.session_spread import (
    MeasuredSession,
    SessionSpread,
    measure_spread,
)
from commtune.tuner.verification.phase import EARLIER

#: The most profiles that are read: each takes 0.1 s.
_MOST_PROFILES = 10


def measure_session_spread(system: str, db: str | None) -> SessionSpread:
    """Returns how much speedups on a system differ between sessions.

    From the campaigns' confirmations and their profiles' verifications. Verifications with another
    library or kernel are not among them: they are campaigns of their own.

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
    _, stored, claim = load_claim(profile, db)
    with readable_database(db) as opened:
        store = Store(opened)
        confirmed = list(store.runs(stored.id, Phase.CONFIRM))
        plans = {one.number: one for one in store.blocks(stored.id)}
    later = [one for one in read_verifications(profile, db) if one.campaign == stored.name]
    if not confirmed:  # another site may not have sent them
        return list(later)
    states = fit_states(list_canaries(db, stored.id, EARLIER, MOST_RUNS))
    judged = claim.judge_blocks(whole_blocks(confirmed, plans), states, build_rules(stored, claim))
    ended = max(run.started_at for run in confirmed)
    return [MeasuredSession(ended, judged.estimates), *later]
