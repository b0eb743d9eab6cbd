"""Pydantic models of a campaign file."""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from commtune.campaign.campaign_name import check_campaign_name
from commtune.campaign.job_keys import PbsPart, SlurmPart
from commtune.campaign.jobs import AggressorPart
from commtune.campaign.plan import Budget
from commtune.campaign.timing import TimingPart
from commtune.campaign.value_types import AUTO, Seconds, Share, Words, parse_share, require_within
from commtune.campaign.workload import WorkloadPart, parse_sizes
from commtune.documents.exact_values import exact_text
from commtune.documents.nearest import quote_value
from commtune.documents.quantities import decimal_number
from commtune.documents.yaml_document import Document
from commtune.errors import InvalidValue
from commtune.formatting import format_wall_time
from commtune.model import LEVEL, Estimand, Operation
from commtune.spaces.schema import CustomizationDocument, Model, Text, Truth, VersionOne, Whole


def _amount(written: Any) -> float:
    number = decimal_number(exact_text(written))
    if number is None:
        raise InvalidValue(f"{quote_value(written)} is not a number", hint="write it in digits")
    if number <= 0:
        raise InvalidValue(
            f"{quote_value(written)} is out of range", hint="write a number above 0"
        )
    return number


_Assignment = dict[str, Text]
_Amount = Annotated[
    float, BeforeValidator(_amount), WithJsonSchema({"type": ["string", "number"]})
]
_Level = Annotated[float, BeforeValidator(parse_share(0.5, "from 50% to below 100%"))]


def _messages(written: object) -> dict[int, float]:
    """Parses a histogram of message sizes: counts by size in bytes."""
    if not isinstance(written, dict):
        raise InvalidValue("no histogram", hint="write it like {64KiB: 1000, 1MiB: 20}")
    found: dict[int, float] = {}
    for size, count in written.items():
        sizes = parse_sizes(size)
        if len(sizes) != 1:
            raise InvalidValue(
                f"{quote_value(size)} is not a single size", hint="a line for each size"
            )
        is_number = isinstance(count, int | float) and not isinstance(count, bool)
        if not (is_number and 0 < count < math.inf):
            raise InvalidValue(
                f"{quote_value(count)} is not a number of messages", hint="write a number above 0"
            )
        (bytes_,) = sizes
        found[bytes_] = found.get(bytes_, 0.0) + count
    return found


def _as_listed(
    written: object, *, of: str = "reference settings", takes_none: bool = False
) -> object:
    """Turns ``auto`` into a list of one word and ``none`` into an empty list; else unchanged.

    Args:
        of: what the list has, for the error.
        takes_none: whether ``none`` is legal.

    Raises:
        InvalidValue: the value is another single word.
    """
    if written == AUTO:
        return (AUTO,)
    if takes_none and written in ("none", ["none"]):
        return ()
    if isinstance(written, str) or written is None:
        raise InvalidValue(
            f"{quote_value(written)} is not a list of {of}",
            hint=f"write auto,{' none,' if takes_none else ''} or [NAME, NAME]",
        )
    return written


_Output = Literal["", "nccl-tests", "nccl-tests-in-place", "osu", "imb", "json-line"]


class BenchmarkPart(Model):
    """A replacement for the native benchmark, given by ``python`` or ``command``."""

    python: Text = ""
    command: Words = ()
    output: _Output = ""
    name: Text = ""


#: The default shares of the phases in the whole time.
_SHARES = {"search": 0.5, "ablation": 0.2, "confirmation": 0.3}


class BudgetPart(Model):
    """The budget; all given limits apply."""

    search: Seconds = 50.0
    ablation: Seconds = 20.0
    confirmation: Seconds = 30.0
    trials: Annotated[Whole, require_within(0, 2**31 - 1, "0 or more")] | None = None
    node_hours: _Amount | None = None

    def as_budget(self, document: Document, nodes: int) -> Budget:
        """Returns the budget; times that were not given are derived from node-hours, if given.

        Args:
            nodes: number of nodes of a run.

        Raises:
            DocumentError: the sum of the times takes more node-hours than the budget has.
        """
        times = {name: getattr(self, name) for name in _SHARES}
        if self.node_hours is not None:
            given = {n: time for n, time in times.items() if n in self.model_fields_set}
            whole_s = self.node_hours * 3600 / nodes
            left_s = whole_s - sum(given.values())
            shares = {name: share for name, share in _SHARES.items() if name not in given}
            # If all times are given, they may exceed the node-hours by a rounding error.
            if left_s < -1e-6 * whole_s or (shares and left_s <= 0):
                raise _too_much(document, self.node_hours, nodes, sum(given.values()), whole_s)
            times |= {n: left_s * share / sum(shares.values()) for n, share in shares.items()}
        return Budget(
            times["search"], times["ablation"], times["confirmation"], self.trials, self.node_hours
        )


def _too_much(
    document: Document, node_hours: float, nodes: int, asked_s: float, whole_s: float
) -> Exception:
    needed = asked_s * nodes / 3600
    return document.error(
        f"{format_wall_time(asked_s)} on {nodes} node{'s' if nodes > 1 else ''} are {needed:.4g} "
        f"node-hours, and there are {node_hours:g}",
        ("budget", "node_hours"),
        hint=f"raise node_hours above {needed:.4g}, or leave the times out: they then share "
        f"{format_wall_time(whole_s)}",
    )


class CampaignFile(CustomizationDocument):
    """A campaign file."""

    campaign: VersionOne
    name: Annotated[str, AfterValidator(check_campaign_name)]
    space: str
    mpi: str = "auto"
    benchmark: BenchmarkPart | None = None
    workload: WorkloadPart = WorkloadPart()
    timing: TimingPart = TimingPart()
    budget: BudgetPart = BudgetPart()
    seed: Annotated[Whole, require_within(0, 2**31 - 1)] = 1
    strategy: str = "table-gp"
    minimum_gain: Share = 0.02
    tolerance: Share = 0.05
    confidence: _Level = LEVEL
    estimand: Estimand = Estimand.MEDIAN
    first: tuple[_Assignment, ...] = ()
    reference_settings: Annotated[
        tuple[str, ...] | None,
        BeforeValidator(_as_listed),
        WithJsonSchema({"anyOf": [{"const": "auto"}, {"type": "array"}]}),
    ] = None
    learn_from: Annotated[
        tuple[str, ...],
        BeforeValidator(partial(_as_listed, of="campaigns", takes_none=True)),
        WithJsonSchema({"anyOf": [{"enum": ["auto", "none"]}, {"type": "array"}]}),
    ] = (AUTO,)
    guard_operations: tuple[Operation, ...] = ()
    protected_variables: tuple[str, ...] = ()
    messages: Annotated[dict[int, float], BeforeValidator(_messages)] = Field(
        default_factory=dict, description="how many messages of each size your programs send"
    )
    run_time_limit: Seconds | None = None
    shared_launches: Truth = True
    system: str | None = None
    slurm: SlurmPart | None = None
    pbs: PbsPart | None = None
    aggressor: AggressorPart | None = None
