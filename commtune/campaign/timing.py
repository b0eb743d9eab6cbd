"""Model of the section ``timing`` of a campaign file: how each size is timed, and how long."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from commtune.campaign.value_types import Seconds, Share, require_within
from commtune.errors import InvalidKey, WriteKey
from commtune.model import BATCHED, DEVICE, FEWEST_TAIL_SAMPLES, WALL, Backend, Timing, Workload
from commtune.spaces.schema import Model, Truth, Whole

#: The default number of operations in a batch, as in nccl-tests, and the largest.
DEFAULT_BATCH, _LARGEST_BATCH = 20, 100_000
#: Keys for how operations are timed; the others are for how long.
MODE_KEYS = frozenset({"mode", "operations", "timer", "graph"})
#: The samples of a size whose 95th percentile is asked for. Even slow operations need the time for
#: so many: the benchmark gives up after 20 caps, seconds.
_TAIL_SAMPLES, _TAIL_CAP_S = 60, 0.5


@dataclass(frozen=True)
class TimingChoice:
    """A choice of how operations are timed, for a file that doesn't say it.

    Attributes:
        said: the choice and its reason, in words.
        spent_s: wall seconds that the choice took of the search's budget.
    """

    said: str
    spent_s: float


class TimingPart(Model):
    """The section ``timing``."""

    warmup: Annotated[Whole, require_within(0, 10_000)] = 5
    min_samples: Annotated[Whole, require_within(3, 100_000)] = 10
    max_samples: Annotated[Whole, require_within(3, 100_000)] = 200
    relative_ci: Share = 0.01
    time_cap: Seconds = 0.05
    mode: Literal["blocking", "batched"] = "blocking"
    operations: Annotated[Whole, require_within(1, _LARGEST_BATCH)] = Field(
        default=DEFAULT_BATCH, description="of a batch, with mode: batched"
    )
    timer: Literal["wall", "device"] = "wall"
    graph: Truth = Field(
        default=False, description="with mode: batched: a batch is launched as one graph"
    )

    def as_timing(self, workload: Workload, *, is_tail: bool = False) -> Timing:
        """Returns the timing for a workload.

        Args:
            is_tail: whether times are 95th percentiles of samples. They depend on the number of
                samples, so each size then has the same number of them in every run.

        Raises:
            InvalidKey: keys conflict, or the workload can't be timed like that.
        """
        if self.max_samples < self.min_samples:
            raise InvalidKey(
                "max_samples",
                f"max_samples {self.max_samples} is less than min_samples {self.min_samples}",
                f"write at least {self.min_samples}",
            )
        same = self.model_dump(exclude={"time_cap", "operations"})
        # Without batches, the number of operations in one has no effect.
        operations = self.operations if self.mode == BATCHED else 0
        found = Timing(**same, time_cap_s=self.time_cap, operations=operations)
        check_timing(found, workload, is_counted="operations" in self.model_fields_set)
        return self._with_tail(found) if is_tail else found

    def _with_tail(self, timing: Timing) -> Timing:
        if timing.mode == BATCHED:
            words = "a batch hides its slowest operations, which estimand: p95 asks for"
            raise InvalidKey("mode", words, "remove it")
        named = self.model_fields_set
        usual = max(_TAIL_SAMPLES, self.min_samples)
        samples = self.max_samples if "max_samples" in named else usual
        if samples < FEWEST_TAIL_SAMPLES:
            raise InvalidKey(
                "max_samples",
                f"a 95th percentile takes {FEWEST_TAIL_SAMPLES} samples or more",
                f"write at least {FEWEST_TAIL_SAMPLES}, or leave it out for {usual}",
            )
        return replace(
            timing,
            percentile=95,
            operations=1,
            min_samples=samples,
            max_samples=samples,
            time_cap_s=self.time_cap if "time_cap" in named else _TAIL_CAP_S,
        )


def check_timing(timing: Timing, workload: Workload, *, is_counted: bool) -> None:
    """Checks that a workload can be timed in a mode.

    Args:
        is_counted: whether the number of operations in a batch was given.

    Raises:
        InvalidKey: it can't; with the key, and a hint on what to write.
    """
    is_batched = timing.mode == BATCHED
    if not is_batched and is_counted:
        raise InvalidKey(
            "operations",
            "operations are counted for batches only",
            lambda write: f"add `{write('mode', BATCHED)}`, or remove it",
        )
    if (is_batched or timing.timer == DEVICE) and workload.shape.backends:
        raise InvalidKey(
            "mode" if is_batched else "timer",
            "with backends inside, between or assemble there is no single stream to enqueue on",
            "remove it, or remove these from the workload",
        )
    if workload.backend != Backend.XCCL:
        _check_plain(timing, workload.backend)
    if timing.graph and not is_batched:
        raise InvalidKey(
            "graph",
            "a graph is a recorded batch, and each operation is waited for",
            lambda write: f"add `{write('mode', BATCHED)}`, or remove it",
        )


def _check_plain(timing: Timing, backend: str) -> None:
    """Refuses timing modes that need a library with GPU streams."""
    refused = (
        ("timer", timing.timer == DEVICE, "has no clock on the device"),
        ("graph", timing.graph, "can't be recorded as a graph"),
        ("mode", timing.mode == BATCHED, "enqueues nothing, so there are no batches"),
    )
    for key, is_asked, why in refused:
        if is_asked:
            raise InvalidKey(key, f"the backend {backend} {why}", partial(_describe_ways_out, key))


def _describe_ways_out(key: str, write: WriteKey) -> str:
    without = f"write {write('timer', WALL)}" if key == "timer" else "remove it"
    return f"{without}, or measure with {write('backend', Backend.XCCL)}"
