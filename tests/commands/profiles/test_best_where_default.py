"""``commtune best`` where the default stays: what is said is of the size that was asked for."""

from __future__ import annotations

import json
from functools import partial

import database_values as given
import pytest

import commtune as ct
from commtune.app.profiles.answers import answer_question
from commtune.commands.profiles import best
from commtune.db.storage.store import Store
from commtune.documents.quantities import parse_bytes
from commtune.model import DEFAULT, Interval, Operation, PointEvidence, Verdict
from commtune.model.conclusion import Conclusion

SIZES = {1024: 1.41, 65536: 1.07, 1 << 20: 1.01}
FOUND = {1024: 0.33, 65536: 0.05}


def stored(store: Store, *, compared: bool = True, concluded: bool = True) -> None:
    """A campaign that keeps the default from 1 KiB to 1 MiB."""
    campaign_id = store.open_campaign(given.campaign()).id
    points = tuple(
        PointEvidence("allreduce", size, "all", 2e-5, 2e-5, Interval(1, 0.99, high, 20),
                      Verdict.UNDECIDED)
        for size, high in SIZES.items()
    )  # fmt: skip
    undecided = given.profile(
        configuration=DEFAULT, verdict=Verdict.UNDECIDED, note="up to 41% at 1 KiB",
        points=points if compared else (), guards=(),
    )  # fmt: skip
    store.save_profiles(campaign_id, [undecided])
    if concluded:
        store.conclude(campaign_id, Conclusion(detectable={1024: 9.0}))
        store.conclude(campaign_id, Conclusion(detectable=FOUND))


def heading(url: str, size: str, capsys: pytest.CaptureFixture[str]) -> str:
    best.best_command("allreduce", size, db=url, json_output=False)
    return capsys.readouterr().out.splitlines()[0]


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (
            "1KiB",
            "keep the default (inconclusive: no speedup was shown at 1 KiB; up to 41 % is not "
            "ruled out; minimum detectable effect 33 % at 1 KiB (found in 9 of 10 cases))",
        ),
        (
            "100KiB",
            "keep the default (inconclusive: no speedup was shown at 64 KiB; up to 7 % is not "
            "ruled out; minimum detectable effect 5 % at 64 KiB (found in 9 of 10 cases))",
        ),
        ("1MiB", "keep the default (a speedup of 2 % is ruled out at 1 MiB)"),
    ],
)
def test_the_nearest_measured_size_has_its_own_numbers(
    store: Store, url: str, capsys: pytest.CaptureFixture[str], size: str, said: str
) -> None:
    stored(store)
    assert heading(url, size, capsys).endswith(said)
    told = answer_question(Operation.ALLREDUCE, parse_bytes(size), {}, db=url)
    assert told["message"] == said


def test_what_is_likely_stands_below_unless_it_is_accepted(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign_id = store.open_campaign(given.campaign()).id
    point = PointEvidence(
        "allreduce", 1024, "all", 2e-5, 1.7e-5, Interval(1.2, 0.99, 1.41, 20), Verdict.UNDECIDED
    )
    open_one = given.profile(
        configuration=DEFAULT, verdict=Verdict.UNDECIDED, points=(point,), guards=(),
        bytes_low=1024, bytes_high=65536,
    )  # fmt: skip
    likely = given.profile(
        name="small-likely", verdict=Verdict.LIKELY, points=(point,), guards=(),
        bytes_low=1024, bytes_high=1024, note="likely, not proven: 1.20x at 1 KiB",
    )  # fmt: skip
    store.save_profiles(campaign_id, [open_one, likely])

    best.best_command("allreduce", "1KiB", db=url, json_output=False)
    said = capsys.readouterr().out
    assert "keep the default (inconclusive" in said.splitlines()[0]
    assert "likely, not proven: 1.20x at 1 KiB" in said
    assert "verify shm/small-likely --db" in said
    assert "export shm/small-likely --accept likely --db" in said

    best.best_command("allreduce", "1KiB", db=url, json_output=True)
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["verdict"], row["configuration"]) == ("undecided", {})
    assert row["likely"]["profile"] == "shm/small-likely"
    assert row["likely"]["configuration"] == dict(likely.configuration)
    assert row["environment"] == {}

    best.best_command("allreduce", None, db=url)
    (row,) = (line for line in capsys.readouterr().out.splitlines() if "inconclusive" in line)
    assert row.endswith("  the default, inconclusive; likely, not proven: shm/small-likely")

    asked = partial(best.best_command, "allreduce", accept="likely", db=url)
    setting = "\n".join(f"{name}={value}" for name, value in likely.configuration.items())
    asked("1KiB")
    said = capsys.readouterr().out
    assert said.splitlines()[0].endswith(": shm/small-likely (likely, not proven)")
    assert f"\n\n{setting}\nlikely, not proven: 1.20x" in said
    asked(None)
    said = capsys.readouterr().out
    assert "shm/small-likely (likely, not proven)" in said
    assert setting in said.replace("\n  ", "\n")
    asked("1KiB", json_output=True)
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["answer"], row["environment"]) == ("likely", dict(likely.configuration))
    with ct.open_store(url) as opened:
        assert opened.best("allreduce", "1KiB").verdict == Verdict.UNDECIDED
        found = opened.best("allreduce", "1KiB", accept_likely=True)
        assert (found.reference, found.verdict) == ("shm/small-likely", Verdict.LIKELY)


def test_the_same_in_json(store: Store, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    stored(store)
    best.best_command("allreduce", "64KiB", db=url, json_output=True)
    (row,) = json.loads(capsys.readouterr().out)
    assert "shown at 64 KiB; up to 7 % is not ruled out; " in row["why"]


def test_without_a_comparison_the_nearest_size_with_a_limit_counts(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(store, compared=False)
    words = "no candidate kept a speedup in fresh runs at 64 KiB; minimum detectable effect 5 % "
    assert f"{words}at 64 KiB (found in 9 of 10 cases)" in heading(url, "40KiB", capsys)


def test_without_a_conclusion_the_profile_has_the_word(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stored(store, concluded=False, compared=False)
    assert heading(url, "64KiB", capsys).endswith("(inconclusive: up to 41% at 1 KiB)")


def test_what_is_recommended_needs_no_excuse(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store.save_profiles(store.open_campaign(given.campaign()).id, [given.profile()])
    best.best_command("allreduce", "64KiB", db=url, json_output=True)
    (row,) = json.loads(capsys.readouterr().out)
    assert row["why"] == ""
