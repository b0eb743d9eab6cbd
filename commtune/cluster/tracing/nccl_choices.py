"""What NCCL and RCCL say that they chose for a call, in the forms that their releases print.

By their sources (src/enqueue.cc) at all tags from 2.12.7 to 2.30.7:

- before 2.20: nothing, in a build as it is released.
- 2.20.3 to 2.22.3: ``N Bytes -> Algo %d proto %d time %f``, after the line of the call itself.
  RCCL 2.20.5 and 2.21.5 too.
- 2.23.4: the same after the function's name.
- 2.24.3 to 2.30.7: ``NAME: N Bytes -> Algo WORD proto WORD channel{Lo..Hi}={N..N}``.

Only rank 0 prints them. Calls that others than these algorithms do have other forms: copies by
engines, kernels on symmetric memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

_BY_NAME = re.compile(
    r"(\w+): (\d+) Bytes -> Algo (\w+) proto (\w+) channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\}(?: .*)?"
)
_BY_NUMBER = re.compile(r"(?:(\w+): )?(\d+) Bytes -> Algo (-?\d+) proto (-?\d+) time \S+")
_OTHERWISE = re.compile(r"(?:(\w+)(?: \[[^\]]*\])?: )?(\d+) Bytes -> (.+)")
_CALL = re.compile(r"(\w+): opCount \w+ sendbuff .*")
_RELEASE = re.compile(r"(\d+\.\d+)(?!\d).*")

_PROTOCOLS = ("LL", "LL128", "SIMPLE")
_ALGORITHMS = ("TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE")
#: What the numbers of algorithms mean, from 0, in the releases that print numbers.
_NUMBERED = {
    "2.20": _ALGORITHMS,
    "2.21": _ALGORITHMS,
    "2.22": _ALGORITHMS,
    "2.23": (*_ALGORITHMS, "PAT"),
}


@dataclass(frozen=True)
class LogOrigin:
    """Which library a log is of; empty where it doesn't say.

    Attributes:
        library: ``NCCL`` or ``RCCL``.
        version: like ``2.28.9+cuda13.0``.
    """

    library: str = ""
    version: str = ""

    @property
    def algorithms(self) -> tuple[str, ...]:
        """By number. Without a version those that have one meaning in all that print numbers."""
        found = _RELEASE.fullmatch(self.version)
        return _ALGORITHMS if found is None else _NUMBERED.get(found[1], ())

    @property
    def protocols(self) -> tuple[str, ...]:
        """By number, likewise."""
        return _PROTOCOLS if self.algorithms else ()


@dataclass(frozen=True)
class NcclChoice:
    """What NCCL chose for one call.

    Attributes:
        function: NCCL's name of the operation (``AllReduce``); empty where it isn't said.
        bytes: as NCCL counts them: of all ranks together for all-gather. For reduce-scatter of a
            rank's part from 2.24 on, of all together before.
        algorithm, protocol: NCCL's words (``RING``, ``SIMPLE``); a number whose meaning isn't
            known as it is.
        channels: how many took part; ``None`` where it isn't said.
        words: what is said instead of all these, in a form that isn't known.
        replaceable: whether the library may take another algorithm afterwards, without a word.
    """

    function: str
    bytes: int
    algorithm: str = ""
    protocol: str = ""
    channels: int | None = None
    words: str = ""
    replaceable: bool = False

    def line(self) -> str:
        """In words."""
        head = f"{self.function} {self.bytes} bytes".strip()
        if self.words:
            return f"{head}: {self.words}"
        algorithm = self.algorithm if is_name(self.algorithm) else f"algorithm {self.algorithm}"
        protocol = self.protocol if is_name(self.protocol) else f"protocol {self.protocol}"
        channels = "" if self.channels is None else f", {self.channels} channels"
        return f"{head}: {algorithm} {protocol}{channels}"


def is_name(word: str) -> bool:
    """Whether this names an algorithm or a protocol."""
    return word[:1].isalpha() and word != "Unknown"


def choices_in(lines: Iterable[tuple[str, str]], origin: LogOrigin) -> Iterator[NcclChoice]:
    """What was chosen, call by call.

    A choice that doesn't name its function is that of the calls of its thread just before it,
    where these are of one function.

    Args:
        lines: thread (``host:process:thread``) and what it said.
    """
    calls: dict[str, set[str]] = {}
    chosen: set[str] = set()
    for thread, text in lines:
        if call := _CALL.fullmatch(text):
            if thread in chosen:
                chosen.remove(thread)
                calls.pop(thread, None)
            calls.setdefault(thread, set()).add(call[1])
        elif choice := _choice(text, origin):
            chosen.add(thread)
            functions = calls.get(thread, set()) - {"Send", "Recv"}
            if not choice.function and len(functions) == 1:
                choice = replace(choice, function=next(iter(functions)))
            if choice.function not in ("", "AllReduce"):
                choice = replace(choice, replaceable=False)
            yield choice


def _choice(text: str, origin: LogOrigin) -> NcclChoice | None:
    if found := _BY_NAME.fullmatch(text):
        function, size, algorithm, protocol, low, high = found.groups()
        return NcclChoice(function, int(size), algorithm, protocol, int(high) - int(low) + 1)
    if found := _BY_NUMBER.fullmatch(text):
        function, size, algorithm, protocol = found.groups()
        return NcclChoice(
            function or "",
            int(size),
            _named(algorithm, origin.algorithms),
            _named(protocol, origin.protocols),
            # RCCL 2.20.5 and 2.21.5 take the tree for all-reduces after they printed another
            # algorithm, where the machine is one that they have a tree for.
            replaceable=origin.library != "NCCL",
        )
    if found := _OTHERWISE.fullmatch(text):
        return NcclChoice(found[1] or "", int(found[2]), words=found[3])
    return None


def _named(number: str, names: tuple[str, ...]) -> str:
    return names[int(number)] if 0 <= int(number) < len(names) else number
