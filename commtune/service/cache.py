"""Caches replies for a short time, so that a thousand equal requests cost one query."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial

from anyio import CapacityLimiter, to_thread

from commtune.service.replies import Refusal, Reply

#: The lifetime of a reply, seconds; or this factor times the seconds that it took, within the
#: maximum. So a reply uses at most a twentieth of a core: campaigns may measure on this machine.
_KEPT_S = 1.0
_COSTS = 20.0
_LONGEST_S = 60.0
#: The size of the cache, in bytes and in replies.
_MOST_BYTES = 64 << 20
_MOST_REPLIES = 2048


#: A reply, its version, and the seconds that it took.
_Made = tuple[Reply, Hashable, float]


@dataclass
class _Kept:
    task: asyncio.Task[Reply]
    version: Hashable = None
    until: float = float("inf")
    bytes: int = 0


class Cache:
    """A cache of replies by request, in which equal requests at the same time share one reply.

    Args:
        threads: the most queries of the database at once.
        most: the most different requests that are running or waiting.
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
        """Returns the cached reply of a request, or makes it in a thread.

        Args:
            version: returns the version of the data. An expired reply is used again if its
                version is still the same, and not ``None``.

        Raises:
            Refusal: too many other requests are waiting.
        """
        found = self._kept.get(key)
        if found is None or found.until < time.monotonic():
            if self._open >= self._most:
                raise Refusal(
                    503, "too many different questions wait for an answer", "ask again in 1 s"
                )
            self._open += 1
            self._drop(key)
            renew = partial(_renew, found, make, version)
            found = self._kept[key] = _Kept(asyncio.create_task(self._make(key, renew)))
        # Shielded, because other requests may wait for the task if this one is cancelled.
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
        # Drops the oldest first, but none that are still being made.
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
    """Returns the cached reply if its version is still the same, or else a new one."""
    # Read before the reply is made, which may lack data that are written meanwhile.
    now = version()
    if found is not None and now is not None and found.version == now:
        return found.task.result(), now, 0.0
    began = time.monotonic()
    reply = make()
    # Errors have no version, because their cause may vanish without a write.
    return reply, now if reply.status == 200 else None, time.monotonic() - began
