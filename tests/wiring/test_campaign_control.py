"""What is said of a campaign when a controller begins, or goes on with it."""

from __future__ import annotations

from pathlib import Path

import database_values as given
import pytest
from quiet import QuietReporter

from commtune.db.connection.engine import open_database
from commtune.db.records import CampaignRecord
from commtune.errors import CampaignChanged
from commtune.wiring.campaign_control import controlled_campaign


class _Listener(QuietReporter):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)


def test_what_will_be_measured_is_said_only_where_something_will_be(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path}/test.db")

    def said(record: CampaignRecord) -> list[str]:
        tell = _Listener()
        with controlled_campaign(database, record, tell, take_over=False, remarks=["budget"]) as (
            store,
            number,
        ):
            if not list(store.runs(number)):
                store.add_trial(number, 1, given.TUNED, "user")
                store.start_runs(number, [given.request()], "s1")
                store.finish_run(number, given.result(), "allreduce")
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
    database.close()
