"""Prunes old campaigns: deletes samples and outputs, and compresses record files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from commtune.db.connection.location import database_url
from commtune.db.connection.opening import opened_database, readable_database
from commtune.db.storage.pruning import (
    OldCampaign,
    find_old_campaigns,
    prune_campaign,
    shrink_file,
)
from commtune.documents.packed_files import pack_file
from commtune.errors import CampaignLocked, UserError

_DAY_S = 86400


@dataclass(frozen=True)
class Prunable:
    """The campaigns that can be pruned."""

    campaigns: tuple[OldCampaign, ...]

    @property
    def runs(self) -> int:
        """The number of runs that would lose samples or output."""
        return sum(campaign.runs for campaign in self.campaigns)

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """The record files of stored runs that are on this machine."""
        return tuple(file for one in self.campaigns for file in _record_files(one))


def find_prunable(days: int, db: str | None = None) -> Prunable:
    """Returns the campaigns without a run in the last ``days`` days, which can be pruned.

    Raises:
        NoAnswer: there is no database.
    """
    with readable_database(db) as opened, opened.read() as connection:
        return Prunable(tuple(find_old_campaigns(connection, time.time() - days * _DAY_S)))


def prune_campaigns(found: Prunable, db: str | None = None) -> list[tuple[str, str]]:
    """Deletes samples and outputs, then compresses record files; can be repeated.

    Returns:
        The campaigns that were not pruned, with the reason.

    Raises:
        DatabaseFault: the database can't be written; campaigns before that are pruned.
    """
    left = []
    with opened_database(db) as opened:
        for campaign in found.campaigns:
            try:
                with opened.write() as connection:
                    prune_campaign(connection, campaign.id)
            except (CampaignLocked, UserError) as error:
                left.append((campaign.name, error.message))
                continue
            for file in _record_files(campaign):
                pack_file(file)
    shrink_file(database_url(db))
    return left


def _record_files(campaign: OldCampaign) -> Iterator[Path]:
    if campaign.folder:
        with suppress(OSError):  # it is another user's, or is being deleted
            files = sorted(Path(campaign.folder).glob("*.jsonl"))
            yield from (file for file in files if file.stem in campaign.stored)
