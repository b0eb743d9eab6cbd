"""``commtune show``, ``profiles``, ``rename`` and ``delete``, on a real database."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import database_values as given
import pytest
from database_values import profiles_of
from sqlalchemy import text

from commtune.commands.campaigns import manage
from commtune.commands.profiles import use
from commtune.db.lock_owner import LockOwner
from commtune.db.storage.store import Store
from commtune.errors import CampaignLocked, ExportRefused, UnknownName, UserError
from commtune.model import JobStage, Outcome, Verdict


@pytest.fixture
def store(store: Store) -> Store:
    """A store with two campaigns, each with a trial, a run and a profile."""
    what = {"workload": given.request().workload.plain(), "space": {"name": "mpich-host"}}
    for name in ("shm", "other"):
        campaign_id = given.begin(store, given.campaign(name, what=what))
        given.add_run(store, campaign_id, f"{name}-1", outcome=Outcome.OK)
        store.save_profiles(campaign_id, [given.profile("all-sizes")])
    return store


def names(store: Store) -> list[str]:
    return sorted(campaign.name for campaign in given.summaries_of(store))


def test_a_campaign_and_a_profile_are_described(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert names(store) == ["other", "shm"]
    manage.show_command("shm", url)
    said = capsys.readouterr().out
    assert said.startswith("shm: allreduce")
    assert "shm/all-sizes" in said and "other/" not in said
    manage.show_command("shm/all-sizes", url)
    said = capsys.readouterr().out
    for name, value in given.TUNED.items():
        assert f"  {name}={value}" in said
    assert "CI each" in said
    manage.profiles_command(db=url)
    said = capsys.readouterr().out
    assert "shm/all-sizes" in said and "other/all-sizes" in said
    with pytest.raises(UnknownName):
        manage.show_command("nothing", url)


def test_what_stands_beside_a_speedup_is_shown(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tails = (given.tail(1024), given.tail(1 << 20))
    store.save_profiles(
        given.begin(store, given.campaign("slow")),
        [given.profile("with", tails=tails), given.profile("without")],
    )
    manage.show_command("slow/with", url)
    above, table = capsys.readouterr().out.rsplit("\n\n", 1)
    header, row, other = table.splitlines()
    assert " ".join(header.split()) == (
        "size speedup of mean times, 95 % CI each of 95th percentiles slow runs"
    )
    assert " ".join(row.split()) == (
        "1 KiB 1.12x to 1.38x (1.25x, 15 pairs) 0.88x 1 of 15 (default: 0)"
    )
    assert other.lstrip().startswith("1 MiB ")
    manage.show_command("slow/without", url)
    without = capsys.readouterr().out
    assert without.replace("without", "with").splitlines()[1:] == above.splitlines()[1:]
    manage.show_command("slow/with", url, json_output=True)
    shown = json.loads(capsys.readouterr().out)
    assert shown["tails"] == [asdict(tail) for tail in tails]
    assert (shown["campaign"], shown["points"][0]["bytes"]) == ("slow", 1024)
    manage.show_command("slow", url, json_output=True)
    shown = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in shown["profiles"]] == ["with", "without"]
    assert (shown["name"], shown["seed"]) == ("slow", 7)


def test_the_list_has_the_notes_of_what_is_recommended(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = "more slow runs than with the default at 8 B; at 8 B, 4 of 20 took over 1.5 times"
    noted = given.profile("noted", note=slow)
    kept = given.profile("kept", verdict=Verdict.UNDECIDED, note="up to 41% at 1 KiB")
    store.save_profiles(given.begin(store, given.campaign("slow")), [noted, kept])
    manage.profiles_command("slow", db=url)
    rows, notes = capsys.readouterr().out.split("\n\n")
    assert [row.split("1 KiB to 1 MiB  2 ranks  ")[1] for row in rows.splitlines()[1:]] == [
        "faster, see its note",
        "inconclusive",
    ]
    assert notes == f"slow/noted: {slow}\n".replace("; ", ";\n  ")


def test_the_list_may_have_only_what_rests_on_enough(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    point = given.point(1024, "all")
    few = given.profile("few", points=(replace(point, gain=replace(point.gain, pairs=7)),))
    many = given.profile("many", points=(replace(point, gain=replace(point.gain, pairs=8)),))
    store.save_profiles(given.begin(store, given.campaign("pairs")), [few, many])
    manage.profiles_command("pairs", min_pairs=8, db=url)
    said = capsys.readouterr().out
    assert "pairs/many" in said and "pairs/few" not in said
    use.export_command("pairs/many", min_pairs=8, db=url)
    exported = capsys.readouterr().out
    assert "export MPIR_CVAR_X=" in exported and "# Rests on 8 pairs or more at each" in exported
    with pytest.raises(
        ExportRefused, match="few rests on less than --min-pairs 8: 7 pairs or more"
    ):
        use.export_command("pairs/few", min_pairs=8, db=url)
    manage.profiles_command("pairs", min_pairs=10**30, min_sessions=1, min_nodes=1, db=url)
    assert capsys.readouterr().out == "no such profiles; commtune tune makes them\n"


def test_a_campaign_is_renamed(store: Store, url: str) -> None:
    manage.rename_command("shm", "node7", url)
    assert names(store) == ["node7", "other"]
    for taken in ("other", "not a name"):
        with pytest.raises(UserError):
            manage.rename_command("node7", taken, url)
    assert names(store) == ["node7", "other"]


def test_deleting_takes_all_of_one_campaign_and_nothing_else(
    store: Store, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("builtins.input", lambda question: "n" if "1 profile" in question else "y")
    with pytest.raises(UserError, match="was not deleted"):
        manage.delete_command("shm", db=url)
    assert names(store) == ["other", "shm"]
    manage.delete_command("shm", yes=True, db=url)
    assert "the files of its runs stay in /home/ann/campaigns/shm" in capsys.readouterr().out
    assert names(store) == ["other"]
    assert [one.campaign for one in profiles_of(store)] == ["other"]
    with store.database.read() as connection:
        for table in ("runs", "trials", "profiles"):
            assert connection.execute(text(f"SELECT COUNT(*) FROM {table}")).scalar() == 1
        left = connection.execute(text("SELECT COUNT(*) FROM measurements")).scalar()
        assert left == len(given.result("x").measurements)
    with pytest.raises(UnknownName):
        manage.delete_command("shm", yes=True, db=url)


def test_what_somebody_works_on_stays(store: Store, url: str) -> None:
    (campaign,) = [one for one in given.summaries_of(store) if one.name == "shm"]
    elsewhere = replace(LockOwner.current(), host="another")
    store.lock(campaign.id, elsewhere)
    with pytest.raises(CampaignLocked):
        manage.delete_command("shm", yes=True, db=url)
    with pytest.raises(CampaignLocked):
        manage.rename_command("shm", "new", url)
    store.unlock(campaign.id)
    store.job_book(campaign.id).put_job(replace(given.job(), stage=JobStage.SUBMITTED))
    with pytest.raises(UserError, match="some of its jobs are not over"):
        manage.delete_command("shm", yes=True, db=url)
    assert names(store) == ["other", "shm"]
