"""The user's data folder where others can have written it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from made_files import give_away

from commtune.cluster.jobs.job_folder import JobFolder
from commtune.cluster.local.benchmark import make_folder
from commtune.errors import EnvironmentFault
from commtune.private_files import TRUSTED_VARIABLE, make_private_folder
from commtune.wiring.job_handover import store_copies
from commtune.wiring.user_folders import campaign_folder, data_folder, runs_folder

_REFUSED = "is not used: everybody can write"


@pytest.fixture
def data(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for data that others may enter."""
    folder = open_folder / "data"
    folder.mkdir()
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))
    return folder


@pytest.mark.parametrize("opened", ["", "commtune", "commtune/campaigns", "commtune/campaigns/x"])
def test_a_campaigns_folder_that_others_can_write_or_replace_is_not_used(
    data: Path, opened: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = runs_folder("x")
    make_private_folder(folder)
    for one in (data / "commtune", data / "commtune/campaigns", folder.parent):
        one.chmod(0o755)
    assert campaign_folder("x") == folder.parent
    (data / opened).chmod(0o777)
    for find in (campaign_folder, runs_folder):
        with pytest.raises(EnvironmentFault, match=_REFUSED):
            find("x")
    monkeypatch.setenv(TRUSTED_VARIABLE, str(data))
    assert runs_folder("x") == folder


@pytest.mark.parametrize(
    "write",
    [
        make_folder,
        lambda folder: JobFolder(folder).write_script("evil"),
        lambda folder: store_copies(folder / "submitted.json", {}),
    ],
)
def test_nothing_is_written_to_a_folder_that_others_laid_there(
    data: Path, write: Callable[[Path], None]
) -> None:
    data.chmod(0o1777)
    folder = data_folder()  # not there yet
    folder.mkdir()
    folder.chmod(0o1777)
    with pytest.raises(EnvironmentFault, match=f"the folder {folder} {_REFUSED} it"):
        write(folder)
    assert list(folder.iterdir()) == []


@pytest.mark.root
def test_another_users_data_folder_is_not_used(data: Path) -> None:
    data.chmod(0o777)
    give_away(data)
    with pytest.raises(
        EnvironmentFault, match="/commtune is not used: its folder belongs to nobody"
    ):
        runs_folder("x")
