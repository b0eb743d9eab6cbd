"""What is said of a campaign when a controller begins, or goes on with it."""

from __future__ import annotations

import database_values as given
import pytest
from quiet import QuietReporter

from commtune.db.records import CampaignRecord
from commtune.db.storage.store import Store
from commtune.errors import CampaignChanged
from commtune.wiring.campaign_control import controlled_campaign


class _Listener(QuietReporter):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)


def test_what_will_be_measured_is_said_only_where_something_will_be(store: Store) -> None:
    database = store.database

    def said(record: CampaignRecord) -> list[str]:
        tell = _Listener()
        with controlled_campaign(database, record, tell, take_over=False, remarks=["budget"]) as (
            held,
            number,
        ):
            if not list(held.runs(number)):
                held.add_trial(number, 1, given.TUNED, "user")
                given.add_run(held, number)
        return tell.said

    first = given.campaign()
    assert said(first) == ["budget"]
    (finished,) = said(first)
    assert finished.startswith("shm is finished: nothing is measured; ")
    assert said(given.campaign(settings={"budget": {"wall_s": 120}})) == ["budget"]
    tell, other = _Listener(), given.campaign(what={"operation": "ring"})
    refused = controlled_campaign(database, other, tell, ["budget"], take_over=False)
    with pytest.raises(CampaignChanged), refused:
        pass
    assert tell.said == []
