"""What was measured beside an aggressor is said wherever somebody could take it for quiet."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import database_values as given
import pytest
from export_documents import DOCUMENT, FOR_ALL_NAMES

from commtune import formatting
from commtune.commands.campaigns import status
from commtune.commands.profiles import best
from commtune.db.storage.store import Store
from commtune.errors import CampaignChanged
from commtune.export import render_profile
from commtune.model import Aggressor, AggressorPattern, Conditions, Verdict

NOISE = Aggressor(AggressorPattern.INCAST, nodes=2, ranks_per_node=2)
WORDS = "beside an aggressor: incast of 128 KiB from 4 ranks on 2 nodes"


def stored(store: Store, name: str, aggressor: Aggressor | None, **changes: Any) -> None:
    """A campaign with a profile."""
    record = given.campaign(name)
    if aggressor is not None:
        record = replace(record, what={**record.what, "aggressor": aggressor.plain()})
        changes["conditions"] = Conditions(beside=formatting.describe_aggressor(aggressor))
    campaign_id = given.begin(store, record)
    store.save_profiles(campaign_id, [given.profile(**changes)])


def answer(url: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    question = ("allreduce", "1KiB")
    best.best_command(*question, db=url)
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("aggressor", "words"),
    [
        (NOISE, WORDS),
        (
            Aggressor(AggressorPattern.ALLTOALL, 1, 2, 1000, 0.5, 2.0),
            "beside an aggressor: alltoall of 1000 B from 2 ranks on 1 node, 0.5 s on and 2 s off",
        ),
    ],
)
def test_it_has_words_and_is_stored_as_plain_data(aggressor: Aggressor, words: str) -> None:
    assert formatting.describe_aggressor(aggressor) == words
    assert Aggressor.of_plain(json.loads(json.dumps(aggressor.plain()))) == aggressor


def test_conditions_in_words() -> None:
    assert formatting.describe_conditions(Conditions()) == ""
    assert formatting.describe_conditions(Conditions(WORDS)) == f"measured {WORDS}"
    whole = Conditions(emulated_nodes=2, timing="in batches of 20", pattern="window of 8")
    assert formatting.describe_conditions(whole) == (
        f"{formatting.describe_emulated(2)}; timed: in batches of 20; pattern: window of 8"
    )


def test_status_tells_of_it(store: Store, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    stored(store, "quiet", None)
    stored(store, "noisy", NOISE)
    status.status_command(url, json_output=False)
    said = capsys.readouterr().out
    assert f"noisy: 0 jobs in flight; 0 node-hours used; runs {WORDS}\n" in said
    assert "quiet:" not in said
    status.status_command(url, json_output=True)
    found = {c["name"]: c["aggressor"] for c in json.loads(capsys.readouterr().out)}
    assert found == {"quiet": None, "noisy": NOISE.plain()}


def test_best_tells_of_it(store: Store, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    stored(store, "noisy", NOISE)
    assert answer(url, capsys)[2] == f"measured {WORDS}"


def test_best_prefers_what_was_measured_without(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(store, "quiet", None)
    stored(store, "noisy", NOISE)  # newer
    lines = answer(url, capsys)
    assert lines[0].endswith(": quiet/allreduce-large")
    assert WORDS not in "\n".join(lines[:-1])
    assert lines[-1].endswith(f", measured {WORDS}")


@pytest.mark.parametrize(
    ("conditions", "preferred"),
    [
        (Conditions(emulated_nodes=2), "plain"),
        (Conditions(emulated_nodes=2, pattern="x"), "plain"),
        (Conditions(pattern="x"), "odd"),
    ],
)
def test_best_prefers_real_nodes_and_has_nothing_against_patterns(
    store: Store,
    url: str,
    capsys: pytest.CaptureFixture[str],
    conditions: Conditions,
    preferred: str,
) -> None:
    stored(store, "plain", None)
    stored(store, "odd", None, conditions=conditions)  # newer
    assert answer(url, capsys)[0].endswith(f": {preferred}/allreduce-large")


def test_why_nothing_is_known_stands_apart_from_it(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(store, "noisy", NOISE, note="too noisy", verdict=Verdict.UNDECIDED, points=())
    heading, _, noise, *_ = answer(url, capsys)
    assert heading.endswith("keep the default (inconclusive: too noisy)")
    assert noise == f"measured {WORDS}"


@pytest.mark.parametrize("name", FOR_ALL_NAMES)
def test_exported_files_tell_of_it(name: str) -> None:
    profile = replace(DOCUMENT.profile, note="and more", conditions=Conditions(WORDS))
    document = replace(DOCUMENT, profile=profile)
    exported = render_profile(name, document)
    assert exported.count(f"measured {WORDS}") == 1
    assert "and more" in exported


@pytest.mark.parametrize(
    ("before", "after"), [(None, NOISE), (NOISE, None), (NOISE, replace(NOISE, nodes=3))]
)
def test_another_noise_is_another_question(
    store: Store, before: Aggressor | None, after: Aggressor | None
) -> None:
    stored(store, "night", before)
    # Without a good run it would begin anew.
    (night,) = (campaign.id for campaign in given.summaries_of(store))
    given.add_run(store, night)
    with pytest.raises(CampaignChanged, match="aggressor"):
        stored(store, "night", after)
