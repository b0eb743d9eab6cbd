"""The same evidence is worded in the same way, whichever command, page or file says it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import database_values as given
import pytest
from stored_campaigns import Made
from stores import opened_store

import commtune as ct
from commtune.app.campaigns import stored as campaigns
from commtune.app.profiles.reporting import write_campaign_report
from commtune.commands.campaigns import manage, status, summary
from commtune.commands.measure import compare
from commtune.commands.profiles import best, use, verify
from commtune.export import document
from commtune.formatting import format_duration, format_speedup
from commtune.model import (
    Configuration,
    Interval,
    PointEvidence,
    Profile,
    Verdict,
    VerificationVerdict,
)
from commtune.model.conclusion import Ablation, Conclusion, ConfirmedCandidate, FurtherRuns
from commtune.model.effects import SizeEffect, VariableEffect
from commtune.report import page
from commtune.report.points import SizePoint
from commtune.service.rendering import point_rows
from commtune.tuner.outcome.profiles import _describe_unproven
from commtune.tuner.statistics.tails import describe_slow_runs, measure_tail
from commtune.tuner.verification.claims import SizeVerification
from commtune.tuner.verification.pairwise import Difference
from commtune.wording import describe_dropped, describe_strength

NAME, SIZE = "made-up", 65536


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database with one campaign that found something."""
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "none"))
    found = f"sqlite:///{tmp_path}/commtune.db"
    with opened_store(found) as store:
        Made(NAME, whole=True).store(store)
    return found


def test_a_speedup_has_its_interval_and_its_pairs() -> None:
    assert format_speedup(Interval(1.41, 1.372, 1.449, 12)) == "1.37x to 1.45x (1.41x, 12 pairs)"
    assert format_speedup(Interval(1.41, 1.37, 1.45, 4)) == "too few pairs (4)"
    assert format_speedup(Interval(1.0, 0.1, 9, 7)) == "nothing known, too noisy (7 pairs)"
    assert format_speedup(Interval(375, 1.1, 127774, 7)) == "nothing known, too noisy (7 pairs)"


def test_every_command_page_and_file_says_the_same(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = _faster(url)
    (point,) = (p for p in profile.points if p.bytes == SIZE)
    said = format_speedup(point.gain)
    assert said.endswith(f", {point.gain.pairs} pairs)")
    reference, page = f"{NAME}/{profile.name}", tmp_path / "page.html"
    status.status_command(url, json_output=False)
    best.best_command("allreduce", "64KiB", db=url)
    best.best_command("allreduce", None, db=url)
    manage.show_command(reference, url)
    for name in ("sh", "env", "fish", "csh", "json", "lmod", "tcl", "task-prolog"):
        use.export_command(reference, name, allow_unguarded=True, db=url)
    write_campaign_report(NAME, page, None, url)
    holds = SizeVerification(SIZE, VerificationVerdict.HOLDS, point.gain, point)
    difference = Difference(SIZE, "all", 2e-5, 1e-5, point.gain)
    texts = {
        "tune": " ".join(row for each in summary._rows(profile, 0.95) for row in each.values()),
        "verify, stated": verify._row(holds)[3],
        "verify, today": verify._row(holds)[4],
        "compare": " ".join(compare._row(difference).values()),
        "report": page.read_text(encoding="utf-8"),
        "page": point_rows([point])[0]["speedup"],
    }
    assert [name for name, text in texts.items() if said not in text] == []
    printed = capsys.readouterr().out
    # status, best for a size and for all, show, and eight files.
    assert printed.count(said) == 12
    strength = campaigns.load_profile(url, reference).strength
    rests_on = f"ests on {describe_strength(strength)}"
    assert "pairs or more at each size; 1 day, 1 session, 1 node; no verif" in rests_on
    # Best for a size and for all, and the files.
    assert printed.count(rests_on) == 10 and rests_on in texts["report"]
    # The level of each interval is not the level of all.
    assert profile.level == 0.998 and "simultaneous 99" not in printed


@pytest.mark.parametrize(
    ("gain", "verdict", "said"),
    [
        (Interval(0.68, 0.52, 0.88, 20), Verdict.DEFAULT, "slower than the default"),
        (Interval(1.14, 1.0, 1.3, 16), Verdict.UNDECIDED, "inconclusive"),
    ],
)
def test_a_size_at_which_a_profile_is_not_faster_is_called_the_same_everywhere(
    url: str, capsys: pytest.CaptureFixture[str], gain: Interval, verdict: Verdict, said: str
) -> None:
    found = _faster(url)
    hurt = PointEvidence("allreduce", 1024, "all", 1e-5, 1.5e-5, gain, verdict)
    profile = replace(found, points=(hurt,), bytes_low=8)
    answer = replace(campaigns.load_profile(url, f"{NAME}/{found.name}"), profile=profile)
    with opened_store(url) as store:
        store.save_profiles(given.begin(store, given.campaign("one")), [profile])
    printed = []
    for size in ("1KiB", None):
        best.best_command("allreduce", size, campaign="one", db=url)
        printed.append(capsys.readouterr().out)
    texts = {
        "best": printed[0],
        "best of all sizes": printed[1],
        "tune": " ".join(row for each in summary._rows(profile, 0.95) for row in each.values()),
        "show": manage._describe_profile(answer),
        "page": point_rows([hurt])[0]["verdict"],
        "report": page._FILTERS["verdict"](SizePoint(hurt, profile, None, ())),
        "export": "\n".join(document._evidence_table(profile, None)),
    }
    assert [name for name, text in texts.items() if said not in text] == []
    few = replace(hurt, gain=replace(gain, pairs=4), verdict=Verdict.UNDECIDED)
    assert point_rows([few])[0]["verdict"] == "inconclusive"


def test_what_ablation_dropped_is_said_with_what_it_cost() -> None:
    """Nobody says that a variable brought nothing whose interval shows that it helped."""
    sizes = {64: (1.01, 1.03), 1024: (0.9, 1.2), 1 << 22: (1.09, 4.51)}
    points = tuple(
        SizeEffect(bytes=size, ratio=(low * high) ** 0.5, low=low, high=high, pairs=9)
        for size, (low, high) in sizes.items()
    )
    both, small = Configuration({"A": "1", "B": "1"}), Configuration({"A": "1"})
    effects = (VariableEffect(("A",), kept=True), VariableEffect(("B",), points=points))
    ablation = Ablation(both, small, 9, 0.87, effects)
    said = describe_dropped(ablation)
    assert said == (
        "dropped by ablation in 9 blocks: B (87 % of the speedup kept; "
        "B helped at 64 B, 4 MiB by its 95 % interval)"
    )
    assert summary._conclusions(Conclusion(ablations=(ablation,))) == [said]
    confirmed = (ConfirmedCandidate(both),)
    assert summary._conclusions(Conclusion(ablations=(ablation,), confirmed=confirmed)) == []


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        (1200, "a further confirmation of about 1,200 runs (1 min 10 s) would decide it"),
        (5_208_092, "more runs on this machine will not decide it; a quieter machine may"),
    ],
)
def test_what_would_decide_a_size_is_said_by_the_report_as_by_tune(
    tmp_path: Path, runs: int, said: str
) -> None:
    found = Conclusion(more=FurtherRuns(runs, 70.0, 8, "8 B is inconclusive"))
    url, written = f"sqlite:///{tmp_path}/more.db", tmp_path / "page.html"
    with opened_store(url) as store:
        store.conclude(Made(NAME, trials=1, blocks=0).store(store), found)
    write_campaign_report(NAME, written, None, url)
    assert summary._conclusions(found) == [f"8 B is inconclusive: {said}"]
    assert f"8 B is inconclusive: {said}." in written.read_text(encoding="utf-8")


def test_slow_runs_and_idle_variables_are_said_by_all_in_the_same_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "none"))
    tail = measure_tail(1024, [[(1.1, 1.0)] * 17 + [(1.1, 3.0)] * 3])
    slow, of_b = (describe_slow_runs([tail], of) for of in ("the default", "A"))
    idle = _describe_unproven(["A", "B"])
    assert of_b == slow.replace("the default", "A").replace("(default:", "(A:")
    assert "--ablate" in idle
    note, url = f"{slow}; {idle}", f"sqlite:///{tmp_path}/slow.db"
    # Not the one with the best speedup of the campaign.
    point = given.point(4096, "all", 1.1)
    other = given.profile("other", note=f"other: {note}", points=(point,), bytes_low=4096)
    with opened_store(url) as store:
        campaign_id = given.begin(store, given.campaign("one"))
        store.save_profiles(campaign_id, [given.profile("slow", note=note), other])

    def printed(command: Callable[..., None], *args: Any, **named: Any) -> str:
        with suppress(SystemExit):
            command(*args, **named, db=url)
        return " ".join(capsys.readouterr().out.split())

    module = partial(printed, use.export_command, "one/slow", allow_unguarded=True)
    said = {
        "status": printed(status.status_command),
        "status --since": printed(status.status_command, since="today"),
        "profiles": printed(manage.profiles_command),
        "show": printed(manage.show_command, "one/slow"),
        "best": printed(best.best_command, "allreduce", "1KiB"),
        "export": printed(use.export_command, "one/slow", "json"),
        "lmod": module("lmod").partition("whatis(")[2],
        "tcl": module("tcl").partition("module-whatis ")[2],
    }
    assert [name for name, text in said.items() if note not in text] == []
    with ct.open_store(url) as opened:
        rows = [row for one in opened.profiles("one") for row in one.rows()]
        rows += opened.best("allreduce", "1KiB").rows()
    assert {(row["profile"], row["note"]) for row in rows} == {
        ("slow", note),
        ("other", f"other: {note}"),
    }
    assert [name for name in said if f"other: {note}" in said[name]] == [*said][:3]
    assert [name for name in said if ", see its note" in said[name]] == [*said][:3]


def _faster(url: str) -> Profile:
    (found,) = (p for p in campaigns.find_profiles(url, NAME) if p.verdict == "faster")
    return campaigns.load_profile(url, f"{NAME}/{found.name}").profile


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (4.2e-9, "4.20 ns"),
        (6.4e-8, "64.0 ns"),
        (2.5e-7, "0.25 us"),
        (1.23e-6, "1.23 us"),
        (0.0456, "45.6 ms"),
    ],
)
def test_short_times_have_three_digits_too(seconds: float, said: str) -> None:
    assert format_duration(seconds) == said
