"""Pads the environments of all runs in a block to the same length.

The length of a program's environment shifts its stack, and the stack's address may change its
speed (Mytkowicz et al., ASPLOS 2009). A candidate sets variables that the default lacks, so
without padding the two would also differ in the addresses of their stacks.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Mapping
from pathlib import Path

from commtune.model import RunRequest

_PADDING = "COMMTUNE_PADDING"
#: Bytes. A configuration's variables usually fit into a page. Where they don't, they are padded to
#: whole pages, so that addresses within a page are still the same.
_PAGE = 4096


def pad_variables(
    request: RunRequest,
    variables: Mapping[str, str],
    environment: Mapping[str, str],
    records: Path,
) -> dict[str, str]:
    """Returns a run's own variables, with the padding.

    Args:
        environment: variables of all runs; those of this run may replace some.
        records: folder of the record files, so that lengths differ between campaigns.
    """
    taken = _bytes({**environment, **variables, _PADDING: ""}) - _bytes(environment)
    pages = max(1, math.ceil(taken / _PAGE))
    return {**variables, _PADDING: "x" * (pages * _PAGE - taken + _offset(request, records))}


def padding_facts(
    request: RunRequest, environment: Mapping[str, str], records: Path
) -> dict[str, int]:
    """Returns the length of a run's environment, before its launcher adds to it, in bytes.

    ``offset`` is the random part of it, which is the same within a block.
    """
    whole = {**environment, **pad_variables(request, request.configuration, environment, records)}
    return {"bytes": _bytes(whole), "offset": _offset(request, records)}


def _offset(request: RunRequest, records: Path) -> int:
    # By block and not by run, so that the length has the same effect on both runs of a pair.
    return random.Random(f"{records}:{request.block}").randrange(_PAGE)


def _bytes(environment: Mapping[str, str]) -> int:
    """Returns the bytes of all NAME=VALUE strings, with their terminating zeros."""
    return sum(len(os.fsencode(f"{name}={value}")) + 1 for name, value in environment.items())
