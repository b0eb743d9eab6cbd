"""What people mistype gets a hint that helps them on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import text
from stored_campaigns import Made

from commtune.app.measure.benchmarking import list_settings_remarks
from commtune.app.measure.comparison import _read_operand
from commtune.app.measure.recording import record_campaign
from commtune.app.profiles.reporting import _places
from commtune.app.profiles.site_installation import install_campaign
from commtune.app.progress import LineReporter
from commtune.campaign.loading import load_campaign, parse_campaign
from commtune.commands.campaigns.init import init_command
from commtune.db.codec import list_differences
from commtune.db.storage.store import Store
from commtune.documents.files import write_file
from commtune.documents.nearest import find_nearest
from commtune.errors import CampaignError, ExportRefused, UserError
from commtune.model import Operation
from commtune.tuner.ports import Progress


def test_a_file_that_looks_like_an_option_is_named_as_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    init_command(Path("-x y.yaml"))
    assert capsys.readouterr().out.endswith(" tune './-x y.yaml'\n")


def test_a_folder_that_was_deleted_is_said_to_be(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = 'rmdir "$PWD" && exec "$0" -m commtune.cli status --db x.db'
    done = subprocess.run(
        ["sh", "-c", script, sys.executable], cwd=gone, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert done.stderr == "commtune: the current folder was deleted\n  cd to one that exists\n"


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("bcast", "broadcast"),
        ("pingpong", "ping-pong"),
        ("reduce_scatter", "reduce-scatter"),
        ("alltoal", "alltoall"),
        ("incst", "incast"),
    ],
)
def test_names_of_other_benchmarks_are_understood(word: str, meant: str) -> None:
    assert find_nearest(word, list(Operation)) == meant


def test_an_operation_is_not_named_as_its_own_guard() -> None:
    text = (
        "campaign: 1\nname: x\nspace: mpich-host\nworkload: {operation: alltoall}\n"
        "guard_operations: [alltoall]\n"
    )
    with pytest.raises(CampaignError) as raised:
        parse_campaign(text, Path())
    assert raised.value.hint == "name other operations, such as broadcast and allreduce"


@pytest.mark.parametrize(("key", "scheduler"), [("slurm", "Slurm"), ("pbs", "PBS")])
def test_a_recording_names_the_scheduler_that_it_can_not_use(
    tmp_path: Path, key: str, scheduler: str
) -> None:
    spec = parse_campaign(f"campaign: 1\nname: x\nspace: mpich-host\n{key}: {{}}\n", tmp_path)
    with pytest.raises(UserError, match=f"asks for {scheduler}, but") as raised:
        record_campaign(spec, tmp_path / "x.jsonl.gz", LineReporter(print), limit_s=60.0)
    assert raised.value.hint == f"remove '{key}:' and 'system:' to record on this machine"


def test_a_file_that_is_called_nearly_so_is_named(tmp_path: Path) -> None:
    (tmp_path / "campaign.yaml").write_text("")
    for wrong in ("campaign.yml", "campagin.yaml"):
        with pytest.raises(CampaignError) as raised:
            load_campaign(tmp_path / wrong)
        assert raised.value.hint == f"nearest: {tmp_path / 'campaign.yaml'}"
    with pytest.raises(CampaignError) as raised:
        load_campaign(tmp_path / "other.yaml")
    assert raised.value.hint == "check the path"


def test_beside_a_file_that_is_there_no_other_is_named(tmp_path: Path) -> None:
    (tmp_path / "campaign.yaml").write_text("")
    os.mkfifo(tmp_path / "campaign2.yaml")
    with pytest.raises(CampaignError, match="it is a pipe") as raised:
        load_campaign(tmp_path / "campaign2.yaml")
    assert raised.value.hint == "check the path"


def test_changes_of_long_lists_fit_a_screen() -> None:
    sizes = list(range(8, 240_000, 8))
    (line,) = list_differences({"sizes": sizes}, {"sizes": [*sizes, 7]})
    assert line.startswith("sizes: [8, 16, ") and line.endswith(", 239992, 7]")
    assert len(line) < 500
    assert list_differences({"sizes": [8]}, {"sizes": [8, 16]}) == ["sizes: [8] -> [8, 16]"]


def test_a_report_is_no_pdf_and_no_folder_of_that_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="can't write a report as"):
        _places(Path("report.pdf"), None)
    assert _places(Path("v1.2"), None) == (Path("v1.2/report.html"), Path("v1.2"))
    (tmp_path / "pages.md").mkdir()
    assert _places(tmp_path / "pages.md", None)[0] == tmp_path / "pages.md" / "report.html"


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        write_file(tmp_path / "no such" / "x", "text")
    assert raised.value.hint == f"mkdir -p '{tmp_path}/no such'"


def test_one_trial_is_one_trial() -> None:
    said: list[str] = []
    LineReporter(said.append).progress(Progress("search", 1, 1, 1.0, 2.0, 50.0))
    assert said == ["search: 1 trial, 1 run, 2 s of 50 s"]


def test_what_compare_is_given_is_held_against_the_catalogue() -> None:
    (said,) = list_settings_remarks(
        _read_operand("NCCL_PROTOO=LL", None).configuration, {"nccl": "2.28.9"}
    )
    assert said == "NCCL_PROTOO is not a known name; perhaps NCCL_PROTO is meant"
    assert not list_settings_remarks(
        _read_operand("NCCL_PROTO=LL NOTHING=1", None).configuration, {"nccl": "2.28.9"}
    )
    assert not list_settings_remarks(_read_operand("default", None).configuration, {})


def test_what_is_not_installed_for_lack_of_guards_says_how_to_measure_them(
    store: Store, url: str, tmp_path: Path
) -> None:
    Made(trials=20, blocks=12).store(store)
    with store.database.write() as connection:
        known = json.dumps({"mpi": "mpich", "version": "5.0.2"})
        connection.execute(text("UPDATE stacks SET description = :known"), {"known": known})
    with pytest.raises(ExportRefused, match="no other operation was measured") as refused:
        install_campaign("made-up", tmp_path / "site", db=url)
    assert "--guard broadcast" in refused.value.hint
