"""The folders of a user's data and built benchmarks."""

from __future__ import annotations

from pathlib import Path

import platformdirs

from commtune.private_files import require_own


def data_folder() -> Path:
    """Returns the folder of campaigns' records, and of the database unless it is elsewhere.

    Raises:
        EnvironmentFault: others can write it, as for all folders below it.
    """
    return _own(platformdirs.user_data_path("commtune"))


def cache_folder() -> Path:
    """Returns the folder of built benchmarks, which may be deleted at any time."""
    return platformdirs.user_cache_path("commtune")


def campaign_folder(campaign: str) -> Path:
    return _own(data_folder() / "campaigns" / campaign)


def runs_folder(campaign: str) -> Path:
    """Returns the folder of a campaign's record files."""
    return _own(campaign_folder(campaign) / "runs")


def _own(folder: Path) -> Path:
    require_own(f"the folder {folder} is not used", folder)
    return folder
