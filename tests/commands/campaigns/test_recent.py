"""``commtune status --since``: what a mail in the morning says, and the exit code beside it."""

from __future__ import annotations

import json
import re
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import database_values as given
import pytest
from stored_campaigns import Made

from commtune.commands.campaigns.status import _parse_since, status_command
from commtune.db.lock_owner import LockOwner
from commtune.db.storage.store import Store
from commtune.errors import UserError
from commtune.model import Outcome, VerificationVerdict

NOW = datetime(2026, 11, 23, 7, 0)


def ran(store: Store, name: str, *outcomes: Outcome, started_at: float | None = None) -> int:
    """A campaign with runs of the last minutes, or of another time."""
    number = given.begin(store, given.campaign(name))
    for place, outcome in enumerate(outcomes):
        at = started_at or time.time()
        run_id = f"{name}-{place}"
        given.add_run(store, number, run_id, outcome=outcome, started_at=at, wall_s=30.0)
    return number


def said(
    store: Store, capsys: pytest.CaptureFixture[str], since: str = "12h", **options: Any
) -> tuple[int, str]:
    """The exit code and what is printed, without the moments."""
    with pytest.raises(SystemExit) as ended:
        status_command(store.database.whole_url, since=since, **options)
    printed = capsys.readouterr().out
    return int(ended.value.code or 0), re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "NOW", printed)


def test_a_night_that_went_well(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    Made(name="night", trials=10, blocks=8, whole=True).store(store)
    code, printed = said(store, capsys, "2023-11-01")
    headline, campaign, result = printed.splitlines()
    assert code == 0
    assert headline == "commtune, NOW to NOW: 1 campaign, 28 runs, 6 s measured"
    assert campaign.startswith("night: finished ")
    assert "night/allreduce-65536-1048576: " in result
    assert re.search(r"\d+\.\d+x to \d+\.\d+x \(\d+\.\d+x, 8 pairs\) at .*", result)


def test_notes_of_profiles_are_told_in_json_too(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    store.save_profiles(ran(store, "night", Outcome.OK), [given.profile(note="slow runs")])
    assert "night/allreduce-large: slow runs" in said(store, capsys)[1]
    (campaign,) = json.loads(said(store, capsys, json_output=True)[1])["campaigns"]
    assert campaign["notes"] == {"allreduce-large": "slow runs"}


def test_a_profile_that_was_withdrawn_at_night_is_counted(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    number = ran(store, "night", Outcome.OK)
    store.save_profiles(number, [given.profile()])
    store.add_verification(number, given.verification(finding=VerificationVerdict.WORSE))
    _, printed = said(store, capsys)
    assert "  keep the default; 1 profile withdrawn" in printed.splitlines()


def test_what_stopped_comes_first_and_asks_for_somebody(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(store, "stopped", Outcome.OK, Outcome.CRASHED, Outcome.PREEMPTED)
    store.finish_campaign(ran(store, "failed", Outcome.CRASHED))
    store.finish_campaign(ran(store, "good", Outcome.OK))
    store.lock(ran(store, "under-way", Outcome.OK), LockOwner.current())
    code, printed = said(store, capsys)
    assert code == 20
    lines = printed.splitlines()
    assert lines[0].endswith("4 campaigns, 6 runs (2 failed, 1 lost), 3 min 00 s measured")
    assert [line for line in lines if "LOOK" in line] == [
        "  LOOK: no run succeeded",
        "  LOOK: stopped before its end",
    ]
    assert "stopped: stopped; 3 runs (1 failed, 1 lost)" in lines
    assert [line.partition(":")[0] for line in lines[5:]] == ["under-way", "good"]


def test_only_what_was_since_then_counts(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    number = ran(store, "old", Outcome.OK, started_at=1_700_000_000.0)
    with store.database.write() as connection:
        connection.exec_driver_sql("UPDATE campaigns SET created = 1700000000.0")
    assert said(store, capsys) == (4, "commtune, NOW to NOW: no campaign ran\n")
    given.add_run(store, number, "new", started_at=time.time())
    code, printed = said(store, capsys, json_output=True)
    data = json.loads(printed)
    (campaign,) = data["campaigns"]
    assert (code, data["exit_code"]) == (20, 20)
    assert (campaign["runs"], campaign["look"]) == (1, "stopped before its end")
    assert data["until"] - data["since"] == pytest.approx(12 * 3600)


def test_a_campaign_without_a_folder_has_no_job_that_said_something(
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / "jobs/other/job.out"
    output.parent.mkdir(parents=True)
    output.write_text("commtune: another campaign's\n")
    monkeypatch.chdir(tmp_path)
    given.begin(store, given.campaign("replayed", folder=""))
    _, printed = said(store, capsys)
    assert printed.endswith("  LOOK: stopped before its end\n")


def test_many_campaigns_fit_on_a_screen(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(12):
        ran(store, f"c{number}", Outcome.OK)
    _, printed = said(store, capsys)
    assert len(printed.splitlines()) < 24
    assert printed.endswith("and 5 further campaigns: commtune status\n")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("yesterday", datetime(2026, 11, 22)),
        ("today", datetime(2026, 11, 23)),
        ("12h", datetime(2026, 11, 22, 19)),
        ("1h30min", datetime(2026, 11, 23, 5, 30)),
        ("2d", datetime(2026, 11, 21, 7)),
        ("2026-11-20", datetime(2026, 11, 20)),
        ("2026-11-22T18:00", datetime(2026, 11, 22, 18)),
    ],
)
def test_moments(written: str, meant: datetime) -> None:
    assert _parse_since(written, NOW) == meant.timestamp()


@pytest.mark.parametrize("written", ["", "tomorrow", "2026-11-24", "-3h", "99999999d", "1e300h"])
def test_what_is_no_moment_is_refused(written: str) -> None:
    with pytest.raises(UserError):
        _parse_since(written, NOW)
