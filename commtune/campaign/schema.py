"""The keys of a campaign file, with the kinds of their values."""

from __future__ import annotations

import math
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, WithJsonSchema

from commtune.campaign.budget import BudgetPart
from commtune.campaign.reference_settings import as_listed
from commtune.campaign.slurm import AggressorPart, SlurmPart
from commtune.campaign.timing import TimingPart
from commtune.campaign.values import Level, Part, Seconds, Share, Words, require_within
from commtune.campaign.workload import WorkloadPart, parse_sizes
from commtune.documents.nearest import quote_value
from commtune.documents.quantities import QuantityError
from commtune.model import Operation
from commtune.spaces import CustomizationDocument, Text, VersionOne, Whole

#: Keys with the names that they had before, which files still may have.
REFERENCE_KEYS = ("reference_settings", "baselines")
PROTECTED_KEYS = ("protected_variables", "guard_variables")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def check_campaign_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise QuantityError(
            f"{quote_value(name)} can't name a campaign",
            hint="use letters, digits and . _ -, 64 at most; begin with a letter or digit",
        )
    return name


_Assignment = dict[str, Text]


def _messages(written: object) -> dict[int, float]:
    """A histogram of message sizes: counts by size in bytes."""
    if not isinstance(written, dict):
        raise QuantityError("no histogram", hint="write it like {64KiB: 1000, 1MiB: 20}")
    found: dict[int, float] = {}
    for size, count in written.items():
        sizes = parse_sizes(size)
        if len(sizes) != 1:
            raise QuantityError(f"{quote_value(size)} is no one size", hint="a line for each size")
        is_number = isinstance(count, int | float) and not isinstance(count, bool)
        if not (is_number and 0 < count < math.inf):
            raise QuantityError(
                f"{quote_value(count)} is no number of messages", hint="write a number above 0"
            )
        (bytes_,) = sizes
        found[bytes_] = found.get(bytes_, 0.0) + count
    return found


_Output = Literal["", "nccl-tests", "nccl-tests-in-place", "osu", "imb", "json-line"]


class BenchmarkPart(Part):
    """What measures in the place of the native benchmark; one of ``python`` and ``command``."""

    python: Text = ""
    command: Words = ()
    output: _Output = ""
    name: Text = ""


class CampaignFile(CustomizationDocument):
    """The whole file."""

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
    confidence: Level = 0.95
    first: tuple[_Assignment, ...] = ()
    reference_settings: Annotated[
        tuple[str, ...] | None,
        BeforeValidator(as_listed),
        WithJsonSchema({"anyOf": [{"const": "auto"}, {"type": "array"}]}),
    ] = Field(default=None, validation_alias=AliasChoices(*REFERENCE_KEYS))
    guard_operations: tuple[Operation, ...] = ()
    protected_variables: tuple[str, ...] = Field(
        default=(), validation_alias=AliasChoices(*PROTECTED_KEYS)
    )
    messages: Annotated[dict[int, float], BeforeValidator(_messages)] = Field(
        default_factory=dict, description="how many messages of each size your programs send"
    )
    run_time_limit: Seconds | None = None
    system: str | None = None
    slurm: SlurmPart | None = None
    aggressor: AggressorPart | None = None
