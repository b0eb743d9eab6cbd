"""Ctrl-C at any statement of beginning or going on with a campaign: nobody seems to work on it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import database_values as given
import pytest
from quiet import QuietReporter
from struck_statements import struck

from commtune.db.connection.engine import Database
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
def test_wherever_it_comes_the_campaign_is_free(begin: Begin, sqlite_store: Store) -> None:
    interrupts = 0
    for statement in range(1, 100):
        entered = False
        with struck(sqlite_store.database, statement) as seen:
            try:
                with begin(sqlite_store.database, given.campaign(f"number-{statement}")):
                    entered = True
            except KeyboardInterrupt:
                interrupts += not entered
        if len(seen) < statement:
            break
        locked = {c.name: c.locked_by for c in given.summaries_of(sqlite_store) if c.locked_by}
        assert locked == {}, f"struck in {seen[statement - 1]}"
    else:
        pytest.fail("it never ends")
    assert interrupts > 5
