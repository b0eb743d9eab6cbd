"""Ending a campaign: its jobs, or its controller on this machine; what was measured is kept."""

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
from commtune.db.connection.location import database_url
from commtune.db.lock_owner import LockOwner, death_of
from commtune.db.queries.description import describe_campaign, find_holder
from commtune.errors import DatabaseFault, NotCancellable
from commtune.model import JobScheduler
from commtune.paths import is_folder
from commtune.wiring.user_folders import Folders


def cancel_campaign(name: str, db: str | None) -> Cancelled:
    """Ends what of a campaign is with its scheduler; without one, its controller stops here.

    Raises:
        UnknownName: there is no such campaign.
        NotCancellable: it is another user's or another site's; or it has no scheduler, and its
            controller is gone, or not on this machine.
        SchedulerFault: the scheduler gives no answer.
    """
    folder = Folders.of_user().runs(name).parent
    try:
        stored = describe_campaign(database_url(db), name)
    except DatabaseFault as fault:
        # SQLite can't even be read on a full disk where nobody has it open.
        check_campaign_name(name)  # no other one may lead to a folder
        if not is_folder(folder):
            raise
        from commtune.wiring.slurm_submission import cancel_by_folder

        return cancel_by_folder(folder, fault)
    if stored.site:
        raise NotCancellable(f"{name} was measured at {stored.site}", hint="only they can end it")
    kind = JobScheduler.find_in(stored.what) or JobScheduler.find_in(stored.settings)
    if kind is None:
        holder = find_holder(database_url(db), stored.id)
        return Cancelled(controller=_stop_controller(name, holder))
    with suppress(OSError):
        if Path(stored.folder).stat().st_uid != os.geteuid():
            raise _of_another_user(f"{name}, with its files in {stored.folder},", name)
    # Imported here: what writes is for campaigns with jobs only.
    from commtune.db.connection.opening import opened_database, readable_database
    from commtune.wiring.slurm_submission import cancel_campaign as cancel_jobs

    cancel = partial(cancel_jobs, stored.id, kind, folder)
    try:
        with opened_database(db) as opened:
            return cancel(opened)
    except DatabaseFault as fault:
        # A full disk keeps no job alive.
        with readable_database(db) as opened:
            return replace(cancel(opened), problem=fault.message)


def end_campaign(name: str, db: str | None) -> str:
    """The same for programs: returns what was ended, in words.

    Raises:
        NotCancellable: also where nothing of it is with its scheduler.
        EnvironmentFault: it could not be written down.
    """
    ended = cancel_campaign(name, db)
    ended.require_written(name)
    if not (ended.numbers or ended.controller):
        raise NotCancellable(f"{name}: {ended.describe()}", hint="commtune status")
    return ended.describe()


def _stop_controller(name: str, owner: LockOwner | None) -> str:
    """Interrupts a controller as Ctrl-C does; returns which one.

    Raises:
        NotCancellable: there is none that this user may interrupt from here.
    """
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
    # A program that calls commtune handles signals in its own way. And who writes the database
    # must not choose which process is ended.
    if not any(Path(word).name in ("commtune", "commtune.cli") for word in command.split("\0")):
        raise NotCancellable(
            f"{name}: its controller, {who}, is not the command 'commtune'",
            hint=f"end it as you end that program; kill {owner.pid} ends it at once",
        )
    # Not SIGINT: a shell's background jobs ignore that.
    os.kill(owner.pid, signal.SIGTERM)
    return who


def _of_another_user(what: str, name: str) -> NotCancellable:
    return NotCancellable(
        f"{what} belongs to another user", hint=f"as that user: commtune cancel {name}"
    )
