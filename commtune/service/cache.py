"""Keeps replies for a moment, so that a thousand who ask the same at once cost one question."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial

from anyio import CapacityLimiter, to_thread

from commtune.service.replies import Reply

#: A reply is at most this old, in seconds; or, where it took long to make, as old as keeps the
#: service below a twentieth of a core for it: campaigns may measure on this machine.
_KEPT_S = 1.0
_COSTS = 20.0
_LONGEST_S = 60.0
#: Bytes and replies that are kept.
_MOST_BYTES = 64 << 20
_MOST_REPLIES = 2048


#: A reply, the version that it is of, and the seconds that it took.
_Made = tuple[Reply, Hashable, float]


@dataclass
class _Kept:
    task: asyncio.Task[Reply]
    version: Hashable = None
    until: float = float("inf")
    bytes: int = 0


class Busy(Exception):
    """So many different questions wait for an answer that no other is taken."""


class Cache:
    """Replies by what was asked; whoever asks what is being made waits for that.

    Args:
        threads: questions that are asked of the database at once.
        most: different questions that are asked, or wait to be.
    """

    def __init__(self, threads: int = 4, most: int = 2500) -> None:
        self._kept: dict[Hashable, _Kept] = {}
        self._bytes = 0
        self._threads = CapacityLimiter(threads)
        self._open, self._most = 0, most

    async def get(
        self,
        key: Hashable,
        make: Callable[[], Reply],
        version: Callable[[], Hashable] = lambda: None,
    ) -> Reply:
        """The reply to a question, made in a thread if there is none that is young enough.

        Args:
            version: of what the reply is made of. While it stays the same the reply is kept;
                ``None`` is never the same.

        Raises:
            Busy: too many other questions wait.
        """
        found = self._kept.get(key)
        if found is None or found.until < time.monotonic():
            if self._open >= self._most:
                raise Busy
            self._open += 1
            self._drop(key)
            renew = partial(_renew, found, make, version)
            found = self._kept[key] = _Kept(asyncio.create_task(self._make(key, renew)))
        # Shielded: one who goes away takes nothing from the others who wait.
        return await asyncio.shield(found.task)

    async def _make(self, key: Hashable, renew: Callable[[], _Made]) -> Reply:
        try:
            reply, version, took_s = await to_thread.run_sync(renew, limiter=self._threads)
        except BaseException:
            self._kept.pop(key, None)
            raise
        finally:
            self._open -= 1
        kept = self._kept[key]
        kept.version = version
        kept.until = time.monotonic() + min(max(_KEPT_S, _COSTS * took_s), _LONGEST_S)
        kept.bytes = len(reply.body)
        self._bytes += kept.bytes
        self._make_room()
        return reply

    def _make_room(self) -> None:
        # The oldest first; those that are being made stay.
        while self._bytes > _MOST_BYTES or len(self._kept) > _MOST_REPLIES:
            oldest = next((key for key, one in self._kept.items() if one.task.done()), None)
            if oldest is None:
                return
            self._drop(oldest)

    def _drop(self, key: Hashable) -> None:
        dropped = self._kept.pop(key, None)
        if dropped is not None:
            self._bytes -= dropped.bytes


def _renew(
    found: _Kept | None, make: Callable[[], Reply], version: Callable[[], Hashable]
) -> _Made:
    """The reply that was found if it is of the same version, else a new one."""
    # Asked for first: what is written meanwhile may not be in the reply.
    now = version()
    if found is not None and now is not None and found.version == now:
        return found.task.result(), now, 0.0
    began = time.monotonic()
    reply = make()
    # What went wrong may be right in a moment, without a write.
    return reply, now if reply.status == 200 else None, time.monotonic() - began
