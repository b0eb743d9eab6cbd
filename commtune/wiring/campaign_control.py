"""Opens a campaign for its one controller: the store and the lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from commtune import process_trees
from commtune.cluster.scheduler import KEY_VARIABLE
from commtune.db.connection.busy_retry import BusyRetry
from commtune.db.connection.engine import Database, open_database
from commtune.db.connection.location import UNREACHABLE_WAIT_S, wait_s
from commtune.db.records import CampaignRecord
from commtune.db.storage.store import Store
from commtune.tuner.ports import Reporter

_T = TypeVar("_T")


def when_usable(attempt: Callable[[BusyRetry], _T], say: Callable[[str], None]) -> _T:
    """Returns what the attempt returns; reports and repeats it while the database's disk is full.

    In a job of ``submit``, also while the database server doesn't answer, as nobody is there to
    restart it. Elsewhere the URL may be wrong, and a user waits.

    Args:
        attempt: gets the patience with a database that another program holds.
    """
    server_s = wait_s(UNREACHABLE_WAIT_S) if KEY_VARIABLE in os.environ else 0.0
    patience = BusyRetry(wait_s(), say, server_s)
    return patience.with_faults(partial(attempt, patience))


def open_when_usable(db: str | None, say: Callable[[str], None]) -> Database:
    """Opens a database, with the patience of ``when_usable``."""
    return when_usable(partial(open_database, db), say)


@contextmanager
def controlled_campaign(
    opened: Database,
    record: CampaignRecord,
    reporter: Reporter,
    remarks: Sequence[str] = (),
    *,
    take_over: bool,
) -> Iterator[tuple[Store, int]]:
    """Locks a campaign; yields its store and its number in it.

    Reports ``remarks`` unless the campaign is refused or finished.
    """
    store = Store(opened, say=reporter.say)
    try:
        handle, before = store.begin(record, take_over=take_over)
        finished = f"{handle.name} is finished: nothing is measured; a larger budget continues it"
        for remark in [finished] if handle.is_finished else remarks:
            reporter.say(remark)
        if before:
            reporter.say(f"note: continuing where another controller stopped ({before})")
        if handle.earlier:
            _end_what_is_left(store, handle.earlier_id)
        yield store, handle.id
        store.finish_campaign(handle.id)
    finally:
        store.unlock_all()


@contextmanager
def held_campaign(
    opened: Database, record: CampaignRecord, reporter: Reporter, *, take_over: bool
) -> Iterator[tuple[Store, int]]:
    """As ``controlled_campaign``, but for more runs only: keeps settings and state."""
    store = Store(opened, say=reporter.say)
    try:
        campaign_id = store.open_campaign(record).id
        store.lock(campaign_id, take_over=take_over)
        yield store, campaign_id
    finally:
        store.unlock_all()


def _end_what_is_left(store: Store, campaign_id: int) -> None:
    """Ends the local runs that a killed controller left of an earlier campaign of this name.

    Runs in jobs are left: the scheduler knows these, and 'commtune cancel' ends them.
    """
    left = [run.run_id for run in store.open_runs(campaign_id)]
    if not left or store.job_book(campaign_id).open_jobs():
        return
    process_trees.end_marked(set(left))
    for run_id in left:
        store.mark_interrupted(run_id, "its controller died")
