"""The live state of a campaign on its page, and event streams (server-sent events) of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from commtune import formatting as text
from commtune.app.campaigns.progress import CampaignProgress, PhaseProgress, read_progress
from commtune.app.campaigns.stored import (
    CampaignState,
    RunLine,
    count_job_states,
    describe_best_gain,
    describe_job,
    sort_jobs,
)
from commtune.db.connection.reader import OpenConnections
from commtune.db.settings import node_hours_budget
from commtune.errors import CommtuneError
from commtune.service.replies import HEADERS, Refusal, Reply, json_reply, problem_of

#: Seconds between two polls of the state, and between two keep-alive comments without a change.
_LOOK_S, _SIGN_S = 1.0, 15.0
#: The longest duration of a stream, seconds; the browser then reconnects by itself.
_STREAM_S = 1800.0
#: The most jobs that are listed.
_JOBS = 20
#: The most streams at once.
_MOST = 200


def describe_live(found: CampaignProgress) -> dict[str, Any]:
    """Returns the texts that the page of a campaign shows and updates."""
    summary = found.summary
    hours, budget = summary.node_hours, node_hours_budget(summary.settings)
    of = "" if budget is None else f" of {text.format_node_hours(budget)}"
    return {
        "words": {
            "state": str(summary.state),
            "by": summary.locked_by or "nobody",
            "phase": found.phase or "none yet",
            "pace": "-" if found.runs_a_minute is None else f"{found.runs_a_minute:.3g}",
            "trials": f"{summary.trials:,}",
            "runs": f"{summary.runs:,}",
            "open": str(summary.open_runs),
            "failed": f"{summary.failed:,}",
            "lost": f"{summary.lost:,}",
            "measured": text.format_wall_time(summary.wall_s),
            "confirmed": describe_best_gain(summary),
            "single": _single_words(found.single_run),
            "node_hours": f"{text.format_node_hours(hours)}{of}",
            "jobs": count_job_states(summary.jobs) or "none",
            "profiles": str(summary.profiles),
        },
        "phases": [_phase(one) for one in found.phases],
        "jobs": [
            {**describe_job(one), "since": _clock(one.started_at or one.prepared_at)}
            for one in sort_jobs(summary.jobs)[:_JOBS]
        ],
        "runs": [run_cells(one) for one in found.recent],
        "over": summary.state is CampaignState.FINISHED,
    }


def _clock(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))


def _single_words(found: tuple[int, float] | None) -> str:
    if found is None or found[1] <= 1:
        return "none ahead of the default"
    size, ratio = found
    return f"{ratio:.3g}x at {text.format_size(size)} (single unconfirmed run)"


def _phase(one: PhaseProgress) -> dict[str, Any]:
    measured = text.format_wall_time(one.measured_s)
    of = "" if one.budget_s is None else f" of {text.format_wall_time(one.budget_s)}"
    share = min(1.0, one.measured_s / one.budget_s) if one.budget_s else None
    return {
        "phase": one.phase,
        "runs": f"{one.runs:,}",
        "measured": f"{measured}{of}",
        "share": share,
    }


def run_cells(run: RunLine) -> dict[str, str]:
    """Returns a run as a row of a table."""
    settings = " ".join(f"{name}={value}" for name, value in run.environment.items())
    return {
        "run": run.run_id,
        "started": _clock(run.started_at),
        "phase": run.phase,
        "block": str(run.block),
        "outcome": run.outcome or run.state,
        "took": "-" if run.wall_s is None else text.format_duration(run.wall_s),
        "settings": settings or "the default",
    }


def read_live(name: str, db: str, connections: OpenConnections) -> Reply:
    """Returns the live state of a campaign as JSON, or the error."""
    try:
        with connections.borrow():
            return json_reply(describe_live(read_progress(name, db)))
    except CommtuneError as error:
        return tell_fault(f"{error.message}. {error.hint}".strip(), problem_of(error).status)


def tell_fault(words: str, status: int) -> Reply:
    """Returns an error in the form that the page's script shows."""
    return json_reply({"fault": words}, status)


class Viewers:
    """The open event streams of campaigns."""

    def __init__(self) -> None:
        self.count = 0
        self._end = asyncio.Event()

    def end(self) -> None:
        """Ends all streams, because the service stops."""
        self._end.set()

    async def follow(self, request: Request, look: Callable[[], Awaitable[Reply]]) -> Response:
        """Returns an event stream with the current state, and with each change of it."""
        first = await look()
        if first.status == 404:
            return first.response()
        if self.count >= _MOST:
            busy = Refusal(503, f"{_MOST} pages are followed already", "reload it by hand")
            return busy.problem.reply().response()
        events = self._events(request, look)
        await anext(events)  # counts it at once: other requests run only where this one waits
        headers = {**HEADERS, "x-accel-buffering": "no"}
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)

    async def _events(
        self, request: Request, look: Callable[[], Awaitable[Reply]]
    ) -> AsyncIterator[bytes]:
        self.count += 1
        try:
            last, said_at = b"", time.monotonic()
            # A HEAD has no events: the server sends its headers, and ends it.
            ends = said_at if request.method == "HEAD" else said_at + _STREAM_S
            yield b""  # for ``follow``, which starts this before it answers
            yield b"retry: 3000\n\n"
            while not self._end.is_set() and time.monotonic() < ends:
                if await request.is_disconnected():
                    break
                now = (await look()).body
                if now != last:
                    # The JSON has no line breaks, so that it is a single line of data.
                    yield b"data: " + now + b"\n\n"
                elif time.monotonic() - said_at > _SIGN_S:
                    yield b": still here\n\n"
                if now != last or time.monotonic() - said_at > _SIGN_S:
                    last, said_at = now, time.monotonic()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._end.wait(), _LOOK_S)
        finally:
            self.count -= 1
