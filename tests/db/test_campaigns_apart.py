"""What is stored of a campaign stays what it was, whatever is done to those beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import database_values as given
from stores import opened_store

from commtune.db.lock_owner import LockOwner
from commtune.db.queries.listing import count_phases, list_runs, list_trials
from commtune.db.queries.summaries import list_summaries
from commtune.db.storage.campaigns import delete_campaign, rename_campaign
from commtune.db.storage.pruning import prune_campaign
from commtune.db.storage.store import Store
from commtune.model import DEFAULT, JobStage
from commtune.model.conclusion import Decision

#: Numbers that a database gives, and moments of the clock.
_ITS_OWN = {"id", "created", "started_at", "last_run", "locked_by"}


def _fill(store: Store, name: str, seconds: float) -> int:
    """Everything that a campaign may have, all of it this campaign's; its number."""
    number = store.open_campaign(given.campaign(name)).id
    store.add_trial(number, 0, DEFAULT, name)
    store.add_trial(number, 1, given.TUNED, name)
    runs = [given.request(f"{name}-{position}", position=position) for position in range(4)]
    store.start_runs(number, runs, name)
    header = {"init_s": seconds, "library": {"init_s": 0.0}, "beside": {"gigabits_per_s": seconds}}
    footer = {"elapsed_s": 0.5, "measure_s": 0.2, "parts": [{"part": name}]}
    result = given.result(f"{name}-0", wall_s=seconds, header=header, footer=footer)
    store.finish_run(number, result, "allreduce")
    store.mark_interrupted(f"{name}-1", name)
    store.withdraw_run(number, f"{name}-2")
    store.plan_block(number, given.block(phase="confirm" if name == "middle" else "search"))
    store.add_execution(number, given.execution(why=name))
    store.decide(number, Decision(budget_s=seconds))
    store.save_profiles(number, [given.profile(f"{name}'s", note=name)])
    job = given.job(f"{name}-0004", stage=JobStage.SUBMITTED)
    store.job_book(number).put_job(job)
    over = replace(job, key=f"{name}-0003", stage=JobStage.OVER, node_hours=seconds)
    store.job_book(number).put_job(over)
    store.lock(number, LockOwner(name, "boot", 4711, 1, 2))
    return number


def _all_of(store: Store, number: int, name: str) -> dict[str, Any]:
    """What is told of a campaign, but for what its database numbered or dated."""
    url, book = store.database.whole_url, store.job_book(number)
    runs, times = store.timed_runs(number)
    holder = store.holder(number)
    told = {
        "trials": store.trials(number),
        "open runs": store.open_runs(number),
        "runs": list(store.runs(number)),
        "timed runs": [runs, str(times)],
        "cost": [store.costs(number), store.parts(number), store.traffic(number)],
        "course": [store.blocks(number), store.executions(number), store.decision(number)],
        "jobs": [book.all_jobs(), book.open_jobs(), book.node_hours()],
        "holder": holder and holder[0],
        "profiles": given.profiles_of(store, name),
        "runs and phases": [list_runs(url, name, limit=9), count_phases(url, number)],
        "configurations": list_trials(url, name, first=0, limit=9),
        "summary": list_summaries(url, number),
    }
    return {about: _plain(one) for about, one in told.items()}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items() if key not in _ITS_OWN}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def test_campaigns_do_not_touch_each_other(store: Store, tmp_path: Path) -> None:
    with opened_store(tmp_path / "alone.db") as alone:
        expected = _all_of(alone, _fill(alone, "middle", 0.5), "middle")
    assert all(expected.values())

    # One that came before and one that came after, of which each has less and more.
    first = _fill(store, "first", 0.25)
    middle = _fill(store, "middle", 0.5)
    last = _fill(store, "last", 0.75)
    assert _all_of(store, middle, "middle") == expected

    for number, name in ((first, "first"), (last, "last")):
        for run in (f"{name}-3", "middle-3"):
            store.withdraw_run(number, run)
        store.decide(number, Decision(blocks=7))
        store.save_profiles(number, [])
        store.finish_campaign(number)
        store.unlock(number)
        job = given.job(f"{name}-0004", stage=JobStage.OVER)
        store.job_book(number).put_job(job)
        with store.database.write() as connection:
            rename_campaign(connection, number, f"{name} of all")
            prune_campaign(connection, number)
            delete_campaign(connection, number)
    assert _all_of(store, middle, "middle") == expected
    assert [one.name for one in list_summaries(store.database.whole_url)] == ["middle"]
