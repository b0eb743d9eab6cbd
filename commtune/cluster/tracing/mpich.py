"""Traces of MPICH (tested with 5.0.2), whose control variables are named like the environment's.

MPICH aborts at values that it can't parse, ignores unknown names, and silently uses another
algorithm where the chosen one is not usable; MPIR_CVAR_COLLECTIVE_FALLBACK=print reports that.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from commtune.cluster.tracing.library import TracedLibrary, TraceEvidence, TraceVerdict
from commtune.formatting import format_size

_PREFIX = "MPIR_CVAR_"
#: The prefixes under which MPICH looks up a variable.
_PREFIXES = (_PREFIX, "MPICH_", "MPIR_PARAM_")
_FALLBACK = "MPIR_CVAR_COLLECTIVE_FALLBACK"
_NOT_USABLE = "User set collective algorithm is not usable for the provided arguments"
_COMPOSITIONS = {"1": "alpha", "2": "beta", "3": "gamma", "4": "delta"}


def _control_of(name: str) -> str | None:
    own = (name.removeprefix(prefix) for prefix in _PREFIXES if name.startswith(prefix))
    return next((_PREFIX + rest for rest in own), None)


def _is_missing(name: str, evidence: TraceEvidence) -> bool:
    """Whether the library doesn't contain the name of a variable that has no control variable.

    Some variables have a second name that is no control variable (MPIR_CVAR_ODD_EVEN_CLIQUES and
    MPIR_CVAR_EVEN_ODD_CLIQUES). The library's binary contains every name that it looks up.
    """
    files = [file for file in evidence.files if file.name.startswith("libmpi")]
    return (
        name.startswith(_PREFIX)
        and bool(files)
        and not any(_mentions(file, name) for file in files)
    )


def _mentions(file: Path, name: str) -> bool:
    try:
        return name.encode() + b"\0" in file.read_bytes()
    except OSError:
        return True  # unknown: don't report it as missing


def _listen(evidence: TraceEvidence) -> TraceVerdict:
    """Finds the chosen algorithms that could not be used, and at which sizes."""
    fallen: dict[str, set[int]] = {}
    for size, lines in _by_size(evidence.output).items():
        complaints = (_blamed(evidence, words) for words in _complaints(lines))
        counts = Counter(itertools.chain.from_iterable(complaints))
        for name, count in counts.items():
            if count >= evidence.operations.get(size, 1):
                fallen.setdefault(name, set()).add(size)
    everywhere = {n for n, sizes in fallen.items() if sizes >= set(evidence.operations)}
    return TraceVerdict(
        unused=dict.fromkeys(everywhere, "MPICH says that it can't be used here; it chose itself"),
        notes=tuple(
            f"{name} could not be used at {', '.join(format_size(s) for s in sorted(sizes))}"
            for name, sizes in sorted(fallen.items())
            if name not in everywhere
        ),
    )


def _complaints(lines: list[str]) -> Iterator[set[str]]:
    """Yields the words of each line that names an algorithm that is not usable."""
    for line, following in itertools.pairwise(lines):
        if line.strip() == _NOT_USABLE:
            yield set(following.lower().rstrip(".").split())


def _blamed(evidence: TraceEvidence, words: set[str]) -> Iterator[str]:
    """Yields the variables that chose this algorithm for the traced operation."""
    collective = evidence.operation.mpi_name
    if collective not in words:
        return
    pattern = re.compile(
        rf"(MPIR_CVAR|MPICH|MPIR_PARAM)_{collective.upper()}_((POSIX_)?INTRA_ALGORITHM|COMPOSITION)"
    )
    for name, value in evidence.configuration.items():
        is_composition = name.endswith("COMPOSITION")
        word = _COMPOSITIONS.get(value, value) if is_composition else value.lower()
        if pattern.fullmatch(name) and word in words:
            yield name


MPICH = TracedLibrary(
    diagnosing={_FALLBACK: "print"},
    control_of=_control_of,
    is_missing=_is_missing,
    listen=_listen,
    refuses_words=True,
)


_SIZE = re.compile(r"(?:.*\s)?commtune-bench: size (\d+)")


def _by_size(output: str) -> dict[int, list[str]]:
    """Returns the lines printed at each size (bytes), without those before the first size."""
    sections: dict[int, list[str]] = {}
    current: list[str] = []
    for line in output.splitlines():
        if found := _SIZE.fullmatch(line.strip()):
            current = sections.setdefault(int(found[1]), [])
        else:
            current.append(line)
    return sections
