"""What earlier campaigns of a database found best comes first in a new one, and how much of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import database_values as given
import pytest
from stores import opened_store

from commtune.app.campaigns.first_proposals import find_proposals
from commtune.campaign.loading import CampaignSpec, load_campaign, parse_campaign
from commtune.db.queries.proven import proven_profiles
from commtune.db.settings import learned_configurations
from commtune.errors import CampaignError
from commtune.model import Configuration, Profile, Verdict
from commtune.wiring.campaign_records import _settings

Keep = Callable[..., None]

#: Legal in the space of these tests, each of them.
LEGAL = [
    Configuration({"MPIR_CVAR_DEVICE_COLLECTIVES": "none"}),
    Configuration({"MPIR_CVAR_DEVICE_COLLECTIVES": "all"}),
    Configuration({"MPIR_CVAR_ALLREDUCE_POSIX_INTRA_ALGORITHM": "mpir"}),
    Configuration({"MPIR_CVAR_REDUCE_INTRANODE_NUM_CELLS": "4"}),
]
TEXT = "campaign: 1\nname: new\nspace: mpich-host-allreduce\n"


def campaign(more: str = "") -> CampaignSpec:
    return parse_campaign(TEXT + more, Path.cwd())


def profile(configuration: Configuration, low: float = 1.3, **changes: Any) -> Profile:
    points = (given.point(1024, "all", low),)
    return given.profile(configuration=configuration, points=points, guards=(), **changes)


@pytest.fixture
def keep(url: str) -> Keep:
    """Stores a campaign with profiles, and runs that take 0.75 s."""

    def store_campaign(name: str, *profiles: Profile, runs: int = 0, **changes: Any) -> None:
        with opened_store(url) as store:
            number = given.begin(store, given.campaign(name, **changes))
            for index in range(runs):
                given.add_run(store, number, f"{name}-{index}")
            found = [replace(one, name=f"p{index}") for index, one in enumerate(profiles)]
            store.save_profiles(number, found)

    return store_campaign


def propose_from_earlier(spec: CampaignSpec, url: str) -> CampaignSpec:
    return find_proposals(spec, url)(spec)


def tried(url: str, more: str = "") -> tuple[Configuration, ...]:
    return propose_from_earlier(campaign(more), url).plan.first


def test_these_are_legal_here() -> None:
    assert [campaign().plan.space.check(one) for one in LEGAL] == [[]] * len(LEGAL)


def test_only_proven_and_measured_ones_that_are_legal_in_the_space(url: str, keep: Keep) -> None:
    unproven = replace(profile(LEGAL[1], 3.0), verdict=Verdict.LIKELY)
    keep("night", profile(LEGAL[0]), unproven, profile(given.TUNED))
    keep("replayed", profile(LEGAL[2], simulated=True))
    spec = propose_from_earlier(campaign(), url)
    assert spec.plan.first == (LEGAL[0],)
    assert spec.learned == {LEGAL[0]: "night"}
    assert spec.remarks[-1] == f"note: tried first, as night found it best: {LEGAL[0]}"


def test_those_of_the_same_question_come_first_then_the_largest_speedups(
    url: str, keep: Keep
) -> None:
    keep("broadcasts", profile(LEGAL[0], 3.0, operation="broadcast"))
    keep("four-nodes", profile(LEGAL[1], 2.0, nodes=4, ranks=8))
    keep("same", profile(LEGAL[2], 1.1), profile(LEGAL[3], 1.2, bytes_low=1, bytes_high=2))
    found = proven_profiles(url, campaign().plan.workload)
    assert [one.configuration for one in found] == [LEGAL[3], LEGAL[2], LEGAL[0], LEGAL[1]]


def test_at_most_three_each_once_and_none_that_the_user_lists(url: str, keep: Keep) -> None:
    best_first = [profile(one, 2.0 - index / 10) for index, one in enumerate(LEGAL)]
    keep("night", *best_first)
    keep("again", *best_first)
    assert tried(url) == tuple(LEGAL[:3])
    own = f"first: [{dict(LEGAL[1])}]\n"
    assert tried(url, own) == (LEGAL[1], LEGAL[0], LEGAL[2], LEGAL[3])


@pytest.mark.parametrize(("budget", "count"), [("14s", 1), ("7s", 0), ("16s", 2), ("1h", 3)])
def test_no_more_than_a_tenth_of_the_runs_that_are_expected(
    url: str, keep: Keep, budget: str, count: int
) -> None:
    keep("night", *map(profile, LEGAL), runs=2)
    assert len(tried(url, f"budget: {{search: {budget}}}\n")) == count


def test_no_more_than_a_tenth_of_the_configurations_that_may_be_tried(
    url: str, keep: Keep
) -> None:
    keep("night", *map(profile, LEGAL))
    assert len(tried(url, "budget: {trials: 19}\n")) == 1
    assert len(tried(url, "budget: {trials: 9}\n")) == 0


def test_what_was_stored_after_it_began_is_left_out(url: str, keep: Keep) -> None:
    keep("night", profile(LEGAL[0]))
    begun = propose_from_earlier(campaign(), url)
    settings = _settings(begun)
    keep("new", profile(LEGAL[1], 4.0), settings=settings)
    keep("later", profile(LEGAL[2], 4.0))
    again = propose_from_earlier(campaign(), url)
    assert (again.plan, again.learned) == (begun.plan, begun.learned)
    assert learned_configurations(_settings(again)) == {LEGAL[0]: "night"}
    keep("begun-without", settings={"budget": {}})
    without = replace(campaign(), plan=replace(campaign().plan, name="begun-without"))
    assert propose_from_earlier(without, url).plan.first == ()


def test_from_all_from_none_or_from_those_that_are_named(url: str, keep: Keep) -> None:
    keep("night", profile(LEGAL[0], 2.0))
    keep("day", profile(LEGAL[1]))
    assert tried(url, "learn_from: auto\n") == tried(url) == (LEGAL[0], LEGAL[1])
    assert tried(url, "learn_from: none\n") == tried(url, "learn_from: []\n") == ()
    assert tried(url, "learn_from: [day]\n") == (LEGAL[1],)
    assert tried(url, "learn_from: [day, night]\n") == (LEGAL[0], LEGAL[1])


def test_where_those_that_are_named_have_nothing_that_is_said(url: str, keep: Keep) -> None:
    keep("night", profile(given.TUNED))
    spec = propose_from_earlier(campaign("learn_from: [night]\n"), url)
    assert spec.plan.first == ()
    assert "nothing of the campaigns to learn from is tried first" in spec.remarks[-1]
    assert propose_from_earlier(campaign(), url).remarks == campaign().remarks


def test_a_name_that_is_unknown(url: str, keep: Keep, tmp_path: Path) -> None:
    keep("night", profile(LEGAL[0]))
    file = tmp_path / "c.yaml"
    file.write_text(TEXT + "learn_from: [night, nigth]\n")
    with pytest.raises(CampaignError) as refused:
        propose_from_earlier(load_campaign(file), url)
    assert refused.value.message == f"{file}:4: there is no campaign 'nigth' to learn from"
    assert refused.value.hint == "nearest: night"


def test_without_a_database(tmp_path: Path) -> None:
    nowhere = f"sqlite:///{tmp_path}/none.db"
    assert propose_from_earlier(campaign(), nowhere) == campaign()
    with pytest.raises(CampaignError, match="database"):
        propose_from_earlier(campaign("learn_from: [night]\n"), nowhere)


def test_a_word_that_is_no_list() -> None:
    with pytest.raises(CampaignError, match="'night' is not a list of campaigns") as refused:
        campaign("learn_from: night\n")
    assert refused.value.hint == "write auto, none, or [NAME, NAME]"
