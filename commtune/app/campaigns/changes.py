"""Stored campaigns are renamed and deleted."""

from __future__ import annotations

from commtune.campaign.campaign_name import check_campaign_name
from commtune.db.connection.location import database_url
from commtune.db.queries.description import describe_campaign
from commtune.db.storage import campaigns
from commtune.wiring.campaign_control import opened_database


def rename_campaign(name: str, new: str, db: str | None = None) -> None:
    """Gives a campaign another name; its file must be given the same.

    Raises:
        UnknownName: there is no such campaign.
        UserError: the new name can't name one, is taken, or jobs are not over.
        CampaignLocked: a controller works on it.
    """
    check_campaign_name(new)
    campaign = describe_campaign(database_url(db), name)
    with opened_database(db) as opened, opened.write() as connection:
        campaigns.rename_campaign(connection, campaign.id, new)


def delete_campaign(name: str, db: str | None = None) -> None:
    """Deletes a campaign with its runs and profiles; files that jobs wrote stay on disk.

    Raises:
        UnknownName: there is no such campaign.
        UserError: some of its jobs are not over.
        CampaignLocked: a controller works on it.
    """
    campaign = describe_campaign(database_url(db), name)
    with opened_database(db) as opened, opened.write() as connection:
        campaigns.delete_campaign(connection, campaign.id)
