"""Prunes old campaigns: deletes samples and outputs, and compresses record files."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from commtune.db.connection.engine import open_database, open_readable
from commtune.db.connection.location import database_url
from commtune.db.storage.pruning import (
    OldCampaign,
    find_old_campaigns,
    prune_campaign,
    shrink_file,
)
from commtune.documents.packed_files import pack_file
from commtune.errors import CampaignLocked, UserError

_DAY_S = 86400


def find_prunable(days: int, db: str | None = None) -> list[OldCampaign]:
    """Returns the campaigns without a run in the last ``days`` days, which can be pruned.

    Raises:
        NoAnswer: there is no database.
    """
    with open_readable(db) as opened, opened.read() as connection:
        return find_old_campaigns(connection, time.time() - days * _DAY_S)


def prune_campaigns(found: Iterable[OldCampaign], db: str | None = None) -> list[tuple[str, str]]:
    """Deletes samples and outputs, then compresses record files; can be repeated.

    Returns:
        The campaigns that were not pruned, with the reason.

    Raises:
        DatabaseFault: the database can't be written; campaigns before that are pruned.
    """
    left = []
    with open_database(db) as opened:
        for campaign in found:
            try:
                with opened.write() as connection:
                    prune_campaign(connection, campaign.id)
            except (CampaignLocked, UserError) as error:
                left.append((campaign.name, error.message))
                continue
            for file in record_files(campaign):
                pack_file(file)
    shrink_file(database_url(db))
    return left


def record_files(campaign: OldCampaign) -> list[Path]:
    """Returns the record files of a campaign's stored runs that are on this machine."""
    if campaign.folder:
        with suppress(OSError):  # it is another user's, or is being deleted
            files = sorted(Path(campaign.folder).glob("*.jsonl"))
            return [file for file in files if file.stem in campaign.stored]
    return []
