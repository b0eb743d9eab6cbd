"""Metrics for Prometheus: requests and their times, and the campaigns by state."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping

from commtune import __version__
from commtune.app.campaigns import stored
from commtune.app.campaigns.stored import CampaignState

#: The media type of Prometheus' text format.
KIND = "text/plain; version=0.0.4; charset=utf-8"
#: The upper bounds of the histogram's buckets, seconds.
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Counters of requests since the start of the service."""

    def __init__(self) -> None:
        self._statuses: Counter[int] = Counter()
        self._times = [0] * (len(_BOUNDS) + 1)
        self._sum_s = 0.0

    def count_request(self, status: int, seconds: float) -> None:
        """Counts a request, and the seconds until its reply began."""
        self._statuses[status] += 1
        self._times[bisect_left(_BOUNDS, seconds)] += 1
        self._sum_s += seconds

    def describe(self, states: Mapping[str, int], viewers: int) -> str:
        """Returns all metrics in Prometheus' text format, with the campaigns by state."""
        return "".join(f"{line}\n" for line in self._lines(states, viewers))

    def _lines(self, states: Mapping[str, int], viewers: int) -> Iterator[str]:
        yield from _head("commtune_info", "gauge", "the version that serves")
        yield f'commtune_info{{version="{__version__}"}} 1'
        yield from _head("commtune_campaigns", "gauge", "campaigns by state")
        yield from (f'commtune_campaigns{{state="{one}"}} {n}' for one, n in states.items())
        yield from _head("commtune_viewers", "gauge", "pages that follow a campaign")
        yield f"commtune_viewers {viewers}"
        yield from _head("commtune_requests_total", "counter", "requests by status of the reply")
        for status, n in sorted(self._statuses.items()):
            yield f'commtune_requests_total{{status="{status}"}} {n}'
        name = "commtune_request_seconds"
        yield from _head(name, "histogram", "time until a reply begins")
        below = 0
        for bound, n in zip((*_BOUNDS, "+Inf"), self._times, strict=True):
            below += n
            yield f'{name}_bucket{{le="{bound}"}} {below}'
        yield f"{name}_sum {self._sum_s}"
        yield f"{name}_count {below}"


def _head(name: str, kind: str, help: str) -> Iterator[str]:
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} {kind}"


def count_states(db: str) -> dict[str, int]:
    """Returns the number of campaigns by state, also for states without any."""
    found = Counter(one.state for one in stored.list_campaigns(db))
    return {str(state): found[state] for state in CampaignState}
