"""Ends the jobs of a campaign, or its controller on this machine; its measurements are kept."""

from __future__ import annotations

import math
import os
import signal
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from commtune.campaign.campaign_name import check_campaign_name
from commtune.cluster.jobs.cancellation import Cancelled
from commtune.db.lock_owner import LockOwner, death_of
from commtune.db.queries.description import describe_campaign, read_holder
from commtune.errors import DatabaseFault, NotCancellable
from commtune.model import JobScheduler
from commtune.paths import is_folder
from commtune.wiring.user_folders import campaign_folder


def cancel_campaign(name: str, db: str | None) -> Cancelled:
    """Cancels a campaign's jobs; without a scheduler, stops its controller on this machine.

    Raises:
        UnknownName: there is no such campaign.
        NotCancellable: it is another user's or another site's; or it has no scheduler, and its
            controller is gone, or not on this machine.
        SchedulerFault: the scheduler doesn't answer.
    """
    folder = campaign_folder(name)
    try:
        stored = describe_campaign(db, name)
    except DatabaseFault as fault:
        # On a full disk, SQLite can't read a database that no other process has open.
        check_campaign_name(name)  # an invalid name could be a path to any folder
        if not is_folder(folder):
            raise
        from commtune.wiring.job_submission import cancel_by_folder

        return cancel_by_folder(folder, fault)
    if stored.site:
        raise NotCancellable(f"{name} was measured at {stored.site}", hint="only they can end it")
    kind = JobScheduler.find_in(stored.what) or JobScheduler.find_in(stored.settings)
    if kind is None:
        holder = read_holder(db, stored.id)
        return Cancelled(controller=_stop_controller(name, holder))
    with suppress(OSError):
        if Path(stored.folder).stat().st_uid != os.geteuid():
            raise _of_another_user(f"{name}, with its files in {stored.folder},", name)
    # Imported here, because only campaigns with jobs need SQLAlchemy.
    from commtune.db.connection.engine import open_database, open_readable
    from commtune.wiring.job_submission import cancel_jobs

    cancel = partial(cancel_jobs, stored.id, kind, folder)
    try:
        with open_database(db) as opened:
            return cancel(opened)
    except DatabaseFault as fault:
        # Jobs can be cancelled even if the database can't be written, as on a full disk.
        with open_readable(db) as opened:
            return replace(cancel(opened), problem=fault.message)


def end_campaign(name: str, db: str | None) -> str:
    """Cancels a campaign for programs; returns a message about what was ended.

    Raises:
        NotCancellable: as for ``cancel_campaign``, or it has no job.
        EnvironmentFault: the cancellation could not be stored.
    """
    ended = cancel_campaign(name, db)
    ended.require_written(name)
    if not (ended.numbers or ended.controller):
        raise NotCancellable(f"{name}: {ended.describe()}", hint="commtune status")
    return ended.describe()


def _stop_controller(name: str, owner: LockOwner | None) -> str:
    """Interrupts a controller like Ctrl-C, if this user can from here; returns its description."""
    if owner is None or death_of(owner, LockOwner.current(), 0.0, math.inf):
        raise NotCancellable(f"{name}: no controller works on it", hint="commtune status")
    who = owner.describe()
    if not owner.lives_here:
        raise NotCancellable(
            f"{name}: its controller, {who}, is not on this machine",
            hint=f"there: commtune cancel {name}",
        )
    process = Path("/proc") / str(owner.pid)
    try:
        user, command = process.stat().st_uid, (process / "cmdline").read_text(errors="replace")
    except OSError as gone:
        raise NotCancellable(f"{name}: {who} is gone", hint="commtune status") from gone
    if user != os.geteuid():
        raise _of_another_user(f"{name}: its controller, {who},", name)
    # Other programs that use commtune handle signals in their own way. And a database that others
    # can write must not determine which process is killed.
    if not any(Path(word).name in ("commtune", "commtune.cli") for word in command.split("\0")):
        raise NotCancellable(
            f"{name}: its controller, {who}, is not the command 'commtune'",
            hint=f"end it as you end that program; kill {owner.pid} ends it at once",
        )
    # Not SIGINT, which background jobs of a shell ignore.
    os.kill(owner.pid, signal.SIGTERM)
    return who


def _of_another_user(what: str, name: str) -> NotCancellable:
    return NotCancellable(
        f"{what} belongs to another user", hint=f"as that user: commtune cancel {name}"
    )
