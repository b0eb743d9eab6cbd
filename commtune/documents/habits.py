"""What users of other benchmarks write out of habit, understood where it has one meaning only.

Whoever reads a word this way says so: each function returns that remark beside what it read,
empty where the word is our own.
"""

from __future__ import annotations

import re

from commtune.documents.nearest import quote_value, suggest
from commtune.errors import UserError
from commtune.model import Operation

#: Words of MPI, OSU, IMB and nccl-tests that spelling alone does not tell.
_OTHER_WORDS = {
    "bcast": Operation.BROADCAST,
    "latency": Operation.PING_PONG,
    "sendrecv": Operation.RING,
    "bibw": Operation.BIDIRECTIONAL,
}
#: What comes before and after an operation in the names of programs: osu_bcast, all_reduce_perf.
_PROGRAM = re.compile(r"^(osu|imb|mpi)_|_(perf|test)$")
#: nccl-tests and OSU mean powers of 1024 by these.
_SHORT_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)([KMGkmg])(?![A-Za-z0-9])")


def read_operation(word: str) -> tuple[Operation, str]:
    """The operation that a word means, such as ``bcast``, ``all_reduce``, ``allreduce_perf``.

    Raises:
        UserError: no operation is called so; the hint names the nearest.
    """
    try:
        return Operation(word), ""
    except ValueError:
        pass
    bare = _PROGRAM.sub("", _PROGRAM.sub("", word.lower()))
    found = _OTHER_WORDS.get(bare) or _by_letters(bare)
    if found is None:
        raise UserError(
            f"{quote_value(word)} is not known here", hint=suggest(word, list(Operation))
        )
    return found, f"{word} is read as {found}"


def _by_letters(word: str) -> Operation | None:
    """The operation with the same letters, whatever stands between them."""
    letters = re.sub(r"[^a-z]", "", word)
    return next((op for op in Operation if op.replace("-", "") == letters), None)


def read_sizes(written: str) -> tuple[str, str]:
    """Sizes with short units spelt out: ``1M`` is 1MiB, as nccl-tests and OSU have it.

    ``1MB`` stays, for the parser to refuse: some mean 10^6 bytes by it.
    """
    remarks = []

    def spell(short: re.Match[str]) -> str:
        meant = f"{short[1]}{short[2].upper()}iB"
        remarks.append(f"{short[0]} is read as {meant}")
        return meant

    return _SHORT_SIZE.sub(spell, written), ", ".join(dict.fromkeys(remarks))
