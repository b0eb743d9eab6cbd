"""Commands that write a file: where it can't be written, they say why, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from stored_campaigns import Made
from stores import opened_store

from commtune.app.profiles.plotting import write_plot
from commtune.app.profiles.reporting import write_campaign_report
from commtune.commands.campaigns.init import init_command
from commtune.commands.campaigns.results import results_command
from commtune.commands.reference.findings import findings_reproduce_command
from commtune.errors import UserError


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> str:
    """With a campaign."""
    url = f"sqlite:///{tmp_path_factory.mktemp('stored')}/commtune.db"
    with opened_store(url) as store:
        Made(name="night").store(store)
    return url


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("page.html", lambda file, db: write_campaign_report("night", file, None, db)),
        ("plot.svg", lambda file, db: write_plot("night", file, db)),
        ("plot.png", lambda file, db: write_plot("night", file, db)),
        ("table.csv", lambda file, db: results_command(["night"], None, file, db)),
        ("campaign.yaml", lambda file, _: init_command(file, force=True)),
    ],
)
def test_a_full_disk_says_what_to_do(
    name: str, write: Callable[[Path, str], object], db: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.symlink_to("/dev/full")
    with pytest.raises(UserError) as raised:
        write(file, db)
    assert raised.value.message == f"can't write {file}: No space left on device"
    assert raised.value.hint == "free some space, or name another place"


def test_a_report_is_no_folder_where_there_is_a_file(db: str) -> None:
    with pytest.raises(UserError, match="can't write a report as /dev/full") as raised:
        write_campaign_report("night", Path("/dev/full"), None, db)
    assert raised.value.hint.startswith("end it in .html")


def test_a_folder_that_is_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError) as raised:
        findings_reproduce_command("affinity-alltoall", "alps", output=tmp_path / "file")
    assert raised.value.message == f"can't write {tmp_path / 'file'}: File exists"
    assert raised.value.hint == "name another place"
