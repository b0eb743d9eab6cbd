"""Counts the calls in logs of NCCL and RCCL, by operation, number of ranks and size."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path


def logging_calls(folder: Path) -> Mapping[str, str]:
    """Returns variables that make each process log its calls to a file of its own."""
    return {
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "COLL",
        "NCCL_DEBUG_FILE": f"{folder}/%h-%p",
    }


_CALL = re.compile(
    r" NCCL INFO (\w+): opCount \w+ .* count (\d+) datatype (\d+) .*\[nranks=([1-9]\d*)\]"
)
#: Bytes of an element by ncclDataType_t: int8, uint8, int32 ... float8e5m2. NCCL only adds types.
_ELEMENT_BYTES = (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1)
#: Operations by NCCL's names, and whether the logged count is one rank's part of the total.
_OPERATIONS = {
    "AllReduce": ("allreduce", False),
    "Broadcast": ("broadcast", False),
    "Bcast": ("broadcast", False),
    "Reduce": ("reduce", False),
    "AllGather": ("allgather", True),
    "ReduceScatter": ("reduce-scatter", True),
    "AlltoAll": ("alltoall", True),
}


def count_calls(lines: Iterable[str]) -> dict[tuple[str, int], Counter[int]]:
    """Counts calls by operation and ranks, then by size (bytes), in the logs of all ranks."""
    said: Counter[tuple[str, int, int]] = Counter()
    for line in lines:
        found = _CALL.search(line)
        if found is None or found[1] not in _OPERATIONS or int(found[3]) >= len(_ELEMENT_BYTES):
            continue
        operation, is_part = _OPERATIONS[found[1]]
        ranks = int(found[4])
        size = int(found[2]) * _ELEMENT_BYTES[int(found[3])] * (ranks if is_part else 1)
        said[operation, ranks, size] += 1
    calls: dict[tuple[str, int], Counter[int]] = {}
    for (operation, ranks, size), number in sorted(said.items()):
        # Every rank of a communicator logs the call.
        calls.setdefault((operation, ranks), Counter())[size] = max(1, round(number / ranks))
    return calls
