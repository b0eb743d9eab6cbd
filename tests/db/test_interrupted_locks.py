"""Ctrl-C at any statement of beginning or going on with a campaign: nobody seems to work on it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import database_values as given
import pytest
from quiet import QuietReporter
from struck_statements import struck

from commtune.db.connection.engine import Database, open_database
from commtune.db.records import CampaignRecord
from commtune.db.storage.store import Store
from commtune.wiring.campaign_control import controlled_campaign, held_campaign

Begin = Callable[[Database, CampaignRecord], AbstractContextManager[tuple[Store, int]]]


def begun(database: Database, record: CampaignRecord) -> AbstractContextManager[tuple[Store, int]]:
    return controlled_campaign(database, record, QuietReporter(), take_over=False)


def verified(
    database: Database, record: CampaignRecord
) -> AbstractContextManager[tuple[Store, int]]:
    return held_campaign(database, record, QuietReporter(), take_over=False)


@pytest.mark.parametrize("begin", [begun, verified])
def test_wherever_it_comes_the_campaign_is_free(begin: Begin, tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path}/test.db")
    interrupts = 0
    for statement in range(1, 100):
        entered = False
        with struck(database, statement) as seen:
            try:
                with begin(database, given.campaign(f"number-{statement}")):
                    entered = True
            except KeyboardInterrupt:
                interrupts += not entered
        if len(seen) < statement:
            break
        locked = {c.name: c.locked_by for c in given.summaries_of(Store(database)) if c.locked_by}
        assert locked == {}, f"struck in {seen[statement - 1]}"
    else:
        pytest.fail("it never ends")
    assert interrupts > 5
    database.close()
