"""A database as a whole: its schema, damage in it, copies, its size."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from commtune.db import repair
from commtune.db.connection import engine
from commtune.db.connection.location import database_url, shown_url, sqlite_path
from commtune.db.connection.opening import opened_database, readable_database
from commtune.db.damage import Damage
from commtune.db.inspection import find_damage
from commtune.db.storage.pruning import (
    OldCampaign,
    find_old_campaigns,
    prune_campaign,
    shrink_file,
)
from commtune.documents.packed_files import pack_file
from commtune.errors import CampaignLocked, NoAnswer, UserError
from commtune.paths import exists


def upgrade_database(db: str | None = None) -> str:
    """Upgrades a database to the schema of this version; returns where it is.

    Raises:
        NoAnswer: there is no such file.
    """
    url = database_url(db)
    file = sqlite_path(url)
    if file is not None and not exists(file):
        raise NoAnswer(
            f"there is no database at {file} yet",
            hint="commtune tune makes one; another one is named with --db or COMMTUNE_DB",
        )
    engine.upgrade_database(url)
    return str(file or shown_url(url))


def check_database(db: str | None = None) -> tuple[str, list[Damage]]:
    """Reads all of a database; where it is, and what is damaged in it."""
    url = database_url(db)
    with closing(engine.open_readable(url)) as opened:
        return opened.url, find_damage(opened)


def back_up_database(target: Path, db: str | None = None) -> None:
    """Writes a consistent copy, while campaigns write (see ``db.repair``)."""
    repair.back_up(database_url(db), target)


def repair_database(db: str | None = None) -> repair.Repair | None:
    """Sets damaged campaigns apart (see ``db.repair``); ``None`` where nothing is damaged."""
    return repair.set_damaged_apart(database_url(db))


_DAY_S = 86400


@dataclass(frozen=True)
class Prunable:
    """What can be pruned.

    Attributes:
        campaigns: all that are old enough.
    """

    campaigns: tuple[OldCampaign, ...]

    @property
    def runs(self) -> int:
        """How many runs lose samples or output."""
        return sum(campaign.runs for campaign in self.campaigns)

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """Record files of stored runs, as far as they are on this machine."""
        return tuple(file for one in self.campaigns for file in _record_files(one))


def find_prunable(days: int, db: str | None = None) -> Prunable:
    """What campaigns without a run in so many days can do without.

    Raises:
        NoAnswer: there is no database.
    """
    with readable_database(db) as opened, opened.read() as connection:
        return Prunable(tuple(find_old_campaigns(connection, time.time() - days * _DAY_S)))


def prune_campaigns(found: Prunable, db: str | None = None) -> list[tuple[str, str]]:
    """Removes samples and output, then compresses record files; a second call goes on.

    Returns:
        The campaigns that were left as they are, with the reason.

    Raises:
        DatabaseFault: a database can't be written; what was done until then stays.
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
        for file in sorted(Path(campaign.folder).glob("*.jsonl")):
            if file.stem in campaign.stored:
                yield file
