"""The folders of a user's data and built benchmarks."""

from __future__ import annotations

from pathlib import Path

import platformdirs


def data_folder() -> Path:
    """Returns the folder of campaigns' records, and of the database unless it is elsewhere."""
    return platformdirs.user_data_path("commtune")


def cache_folder() -> Path:
    """Returns the folder of built benchmarks, which may be deleted at any time."""
    return platformdirs.user_cache_path("commtune")


def campaign_folder(campaign: str) -> Path:
    return data_folder() / "campaigns" / campaign


def runs_folder(campaign: str) -> Path:
    """Returns the folder of a campaign's record files."""
    return campaign_folder(campaign) / "runs"
