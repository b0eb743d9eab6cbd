"""Padding: all runs of a block get environments of the same length.

Where a program's stack begins depends on the length of its environment, and its speed may depend
on where its stack begins (Mytkowicz et al., ASPLOS 2009). A candidate sets variables that the
default lacks. Without padding, it would be measured with another stack, too.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Mapping
from pathlib import Path

from commtune.model import RunRequest

PADDING = "COMMTUNE_PADDING"
#: What a configuration adds fits a page, as a rule; where it doesn't, padding makes it whole
#: pages: everything is in the same place within its page then.
_PAGE = 4096


def pad_variables(
    request: RunRequest,
    variables: Mapping[str, str],
    environment: Mapping[str, str],
    records: Path,
) -> dict[str, str]:
    """A run's own variables, and the padding.

    Args:
        environment: what all runs get; variables of a run may replace some of it.
        records: where record files go: another campaign has other lengths.
    """
    taken = _bytes({**environment, **variables, PADDING: ""}) - _bytes(environment)
    pages = max(1, math.ceil(taken / _PAGE))
    return {**variables, PADDING: "x" * (pages * _PAGE - taken + _offset(request, records))}


def padding_facts(
    request: RunRequest, environment: Mapping[str, str], records: Path
) -> dict[str, int]:
    """How long a run's environment was, bytes, before its launcher added to it.

    And by how much of that it is longer than those of other blocks, by chance.
    """
    whole = {**environment, **pad_variables(request, request.configuration, environment, records)}
    return {"bytes": _bytes(whole), "offset": _offset(request, records)}


def _offset(request: RunRequest, records: Path) -> int:
    # Not by the run: what length does to both runs of a pair is then no noise between them.
    return random.Random(f"{records}:{request.block}").randrange(_PAGE)


def _bytes(environment: Mapping[str, str]) -> int:
    """Bytes of all NAME=VALUE, each with its closing zero."""
    return sum(len(os.fsencode(f"{name}={value}")) + 1 for name, value in environment.items())
