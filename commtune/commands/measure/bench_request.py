"""What ``commtune bench`` and ``trace`` are to run: flags, by the checks of campaign files."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator

from commtune import model
from commtune.campaign.patterns import as_workload
from commtune.campaign.timing import TimingPart
from commtune.campaign.value_types import require_within
from commtune.campaign.workload import MOST_RANKS, WorkloadPart, check_elements
from commtune.commands import options as flags
from commtune.documents.nearest import require_known
from commtune.documents.quantities import parse_seconds
from commtune.documents.validation import validate_document
from commtune.documents.yaml_document import Document
from commtune.errors import CampaignError, InvalidKey, UserError
from commtune.model import Operation
from commtune.spaces.schema import Model, Whole

#: Records of pairs: each has some 1.4 KB, and a file of 64 MiB is read.
_MOST_PAIRS = 40_000
#: Samples of a size, and those of a pair, of which there are many.
_MOST_SAMPLES, _MOST_OF_PAIRS = 1000, 50
_BACKENDS = ("backend", "inside", "between", "assemble")


class _Workload(WorkloadPart):
    """What a campaign measures, or what nobody compares."""

    operation: Operation = Operation.ALLREDUCE
    ranks: Annotated[Whole, require_within(1, MOST_RANKS)] = 2


class _Timing(TimingPart):
    time_cap: Annotated[
        float,
        BeforeValidator(parse_seconds),
        require_within(1e-6, 1e5, "from 1us to 100000s, as in 0.2s"),
    ] = 0.2


class _Asked(Model):
    workload: _Workload
    timing: _Timing


@flags.keys_are_flags()
def request_of(settings: Sequence[str] | None = None, **written: Any) -> model.RunRequest:
    """The run that the command line describes.

    Args:
        settings: each ``NAME=VALUE``.
        written: flags by the keys of campaign files; ``None`` and empty where nothing is written.

    Raises:
        UserError: a flag that can't be read, or doesn't go with the others.
    """
    given = {key: value for key, value in written.items() if value not in (None, "")}
    given["operation"] = operation = flags.operation_flag(given.pop("op"))
    given["sizes"] = flags.sizes_flag(given["sizes"])
    for key in given.keys() & {*_BACKENDS}:
        given[key] = flags.backend_flag(given[key], f"--{key}")
    for key in given.keys() & {"rotate", "graph"}:
        given[key] = require_known(f"--{key}", given[key], ("yes", "no")) == "yes"
    if given.get("dtype") == "uint8":  # of which sums overflow
        given["reduction"] = "max"
    is_pairs = operation is Operation.PAIRS
    timing = {"max_samples": _MOST_OF_PAIRS if is_pairs else _MOST_SAMPLES}
    timing |= {key: given.pop(key) for key in TimingPart.model_fields if key in given}
    document = Document({"workload": given, "timing": timing}, error_class=CampaignError)
    with flags.documents_are_flags():
        asked = validate_document(document, _Asked)
    part = asked.workload
    alone = operation.is_collective or operation in (Operation.RING, Operation.SELF)
    if part.ranks < 2 and not alone:
        raise InvalidKey("ranks", f"{part.ranks} is out of range", f"from 2 to {MOST_RANKS}")
    with flags.reading_flag("--sizes"):
        check_elements(part.sizes, part.dtype, part.backend)
    workload = as_workload(part, Path())
    if is_pairs:
        _check_pairs(workload)
    timed = asked.timing.as_timing(workload)
    return model.RunRequest(uuid.uuid4().hex, _configuration(settings or ()), workload, timed)


def _configuration(written: Sequence[str]) -> model.Configuration:
    values = {}
    for setting in written:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise UserError(f"-x {setting}: no value", hint="write -x NAME=VALUE")
        values[name] = value
    return model.Configuration(values)


def _check_pairs(workload: model.Workload) -> None:
    pairs, sizes = workload.measured_a_size, len(workload.sizes)
    if pairs * sizes > _MOST_PAIRS:
        raise UserError(
            f"--sizes: {pairs:,} pairs at {sizes} sizes are more than {_MOST_PAIRS:,} times",
            hint="use fewer ranks, or fewer sizes, such as 8,1MiB",
        )
