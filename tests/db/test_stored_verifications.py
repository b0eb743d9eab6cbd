"""A verification that holds makes a profile stronger; one that is gone or worse withdraws it."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import database_values as given
import pytest
from best_rows import best_profiles
from sqlalchemy import text
from stores import opened_store

from commtune.app.campaigns.stored import rename_campaign
from commtune.app.profiles.use import export_profile
from commtune.db.queries import profiles
from commtune.db.queries.profiles import find_profiles, load_profile
from commtune.db.queries.summaries import list_summaries
from commtune.db.storage.store import Store
from commtune.errors import ExportRefused, NoAnswer
from commtune.formatting import format_day
from commtune.model import DEFAULT, Phase, Strength, Verdict, VerificationVerdict


def test_verifications_that_hold_make_a_profile_stronger(url: str, store: Store) -> None:
    campaign = given.begin(store)
    for day, phase in enumerate((Phase.CONFIRM, Phase.VERIFY, Phase.VERIFY)):
        run = given.request(f"r{day}", phase=phase, block=4 + day)
        at = 1_700_000_000.0 + 86400 * day
        given.add_run(store, campaign, run, f"s{day}", started_at=at, nodes=(f"n{day}",))
    store.save_profiles(campaign, [given.profile(points=(given.point(1024, "all"),))])

    def strength() -> Strength:
        return load_profile(url, "shm/allreduce-large").strength

    assert strength() == Strength(pairs=7, days=1, sessions=1, nodes=1)
    asked: dict[str, Any] = {"ranks": 2, "min_days": 2, "min_sessions": 2, "min_nodes": 2}
    with pytest.raises(NoAnswer, match="min days 2"):
        best_profiles(url, "allreduce", 4096, **asked)
    held = given.verification(first_block=5, last_block=5)
    for one in (
        held,
        replace(held, profile="another"),
        replace(held, first_block=6, last_block=6, finding=VerificationVerdict.WEAKER),
        replace(held, finding=VerificationVerdict.UNDECIDED),
    ):
        store.add_verification(campaign, one)
    assert strength() == Strength(7, 2, 2, 2, 3, VerificationVerdict.WEAKER, held.ended_at)
    (row,) = best_profiles(url, "allreduce", 4096, **asked)
    assert row.note == f"verified {format_day(held.ended_at)}: weaker; steady"


@pytest.mark.parametrize("finding", [VerificationVerdict.GONE, VerificationVerdict.WORSE])
def test_a_profile_that_was_found_harmful_or_useless_is_withdrawn(
    url: str, store: Store, finding: VerificationVerdict
) -> None:
    campaign = given.begin(store)
    store.save_profiles(campaign, [given.profile()])
    asked: dict[str, Any] = {"ranks": 2, "campaign": "shm"}
    found = given.verification(finding=finding)
    store.add_verification(campaign, found)
    store.add_verification(campaign, replace(found, finding=VerificationVerdict.UNDECIDED))
    day = format_day(found.ended_at)
    (row,) = best_profiles(url, "allreduce", 4096, **asked)
    assert (row.verdict, row.configuration) == ("withdrawn", DEFAULT)
    assert row.note == f"verified {day}: {finding}; steady"
    assert load_profile(url, "shm/allreduce-large").profile.verdict is Verdict.WITHDRAWN
    assert [one.verdict for one in find_profiles(url, "shm")] == ["withdrawn"]
    with store.database.read() as connection:
        seen = connection.execute(text("SELECT verdict FROM profiles_overview")).scalars().all()
    assert seen == ["withdrawn"]
    assert [one.best for one in list_summaries(url) if one.name == "shm"] == [None]
    with pytest.raises(ExportRefused, match=f"was withdrawn .verified {day}: {finding}"):
        export_profile(load_profile(url, "shm/allreduce-large"), "env", None)
    store.add_verification(campaign, replace(found, finding=VerificationVerdict.HOLDS))
    (row,) = best_profiles(url, "allreduce", 4096, **asked)
    assert (row.verdict, row.note) == ("faster", "steady")


def test_a_verification_with_a_campaign_of_its_own_follows_the_name_of_what_it_verifies(
    url: str, store: Store
) -> None:
    for name, verified in (("shm", ""), ("one", "shm/large"), ("other", "shm2/large")):
        store.open_campaign(given.campaign(name, settings={"verifies": verified, "mpi": name}))
    rename_campaign("shm", "night", url)
    found = {one.name: one.settings for one in list_summaries(url)}
    assert found["one"] == {"verifies": "night/large", "mpi": "one"}
    assert found["other"] == {"verifies": "shm2/large", "mpi": "other"}
    assert found["night"] == {"verifies": "", "mpi": "shm"}


def test_a_likely_profile_says_that_it_holds(url: str, store: Store) -> None:
    campaign = given.begin(store)
    store.save_profiles(campaign, [given.profile(verdict=Verdict.LIKELY)])
    store.add_verification(campaign, held := given.verification())
    found = load_profile(url, "shm/allreduce-large").profile
    assert found.verdict is Verdict.LIKELY
    assert found.note == f"verified {format_day(held.ended_at)}: holds; steady"


def test_a_profile_that_was_confirmed_again_is_not_withdrawn(url: str, store: Store) -> None:
    campaign = given.begin(store)
    store.save_profiles(campaign, [given.profile()])
    ended_at = time.time()
    gone = given.verification(finding=VerificationVerdict.GONE, ended_at=ended_at)
    store.add_verification(campaign, gone)
    store.save_profiles(campaign, [given.profile(points=(given.point(1024, "all"),))])
    (row,) = best_profiles(url, "allreduce", 4096, ranks=2, campaign="shm")
    assert row.verdict == "faster"


def test_a_profile_stays_withdrawn_when_another_one_changes(store: Store) -> None:
    campaign = given.begin(store)
    large, small = given.profile(), given.profile("small", bytes_low=8, bytes_high=8)
    store.save_profiles(campaign, [large, small])
    (before,) = [one for one in given.profiles_of(store) if one.name == large.name]
    gone = given.verification(finding=VerificationVerdict.GONE, ended_at=before.created + 1e-3)
    store.add_verification(campaign, gone)
    time.sleep(2e-3)
    changed = replace(small, points=(given.point(8, "all"),))
    store.save_profiles(campaign, [large, changed])
    after = {one.name: one for one in given.profiles_of(store)}
    found = f"verified {format_day(gone.ended_at)}: gone; {before.note}"
    assert after[large.name] == replace(before, verdict=Verdict.WITHDRAWN, note=found)
    assert after["small"].created > before.created


def test_the_runs_of_each_verification_are_found_by_an_index(tmp_path: Path) -> None:
    """A profile that is verified every night has thousands of runs behind it."""
    counted = [profiles.STRENGTH[name] for name in ("days", "sessions", "nodes")]
    statements = [f"SELECT {one} FROM profiles p WHERE p.id = :id" for one in counted]
    url = f"sqlite:///{tmp_path}/commtune.db"
    with opened_store(url) as opened, opened.database.read() as connection:
        for statement in statements:
            plan = connection.execute(text(f"EXPLAIN QUERY PLAN {statement}"), {"id": 1})
            steps = [row.detail for row in plan if row.detail.startswith("SEARCH r ")]
            assert len(steps) == 2, statement
            assert "phase=? AND block>? AND block<?" in steps[1]
