"""Reads the logs of NCCL and RCCL: variables, algorithms, transports (tested with NCCL 2.28.9)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from commtune.cluster.tracing.library import (
    TracedLibrary,
    TraceEvidence,
    TraceVerdict,
    holds_value,
)
from commtune.model import Execution, Operation
from commtune.tuner.effective.settings import DID, Setting, Told

# Log lines with the algorithm of a call, from src/enqueue.cc at all tags from 2.12.7 to 2.30.7:
# none before 2.20; numbers from 2.20.3 to 2.23.4 (also RCCL 2.20.5 and 2.21.5), with the function
# in 2.23.4; names from 2.24.3. Only rank 0 prints them. Copy-engine collectives and kernels on
# symmetric memory have other lines.
_BY_NAME = re.compile(
    r"(\w+): (\d+) Bytes -> Algo (\w+) proto (\w+) channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\}(?: .*)?"
)
_BY_NUMBER = re.compile(r"(?:(\w+): )?(\d+) Bytes -> Algo (-?\d+) proto (-?\d+) time \S+")
_OTHERWISE = re.compile(r"(?:(\w+)(?: \[[^\]]*\])?: )?(\d+) Bytes -> (.+)")
_CALL = re.compile(r"(\w+): opCount \w+ sendbuff .*")
_RELEASE = re.compile(r"(\d+\.\d+)(?!\d).*")

_PROTOCOLS = ("LL", "LL128", "SIMPLE")
_ALGORITHMS = ("TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE")
#: The algorithms by number, from 0, in the releases that print numbers.
_NUMBERED = {
    "2.20": _ALGORITHMS,
    "2.21": _ALGORITHMS,
    "2.22": _ALGORITHMS,
    "2.23": (*_ALGORITHMS, "PAT"),
}
#: The library that wrote a log and its version (``2.28.9+cuda13.0``); empty where it doesn't say.
_Origin = tuple[str, str]


@dataclass(frozen=True)
class _NcclChoice:
    """The algorithm and protocol that NCCL chose for a call."""

    function: str  # NCCL's name of the operation (``AllReduce``); empty if not logged
    #: As NCCL counts them: for all-gather and reduce-scatter one rank's part since 2.24, those of
    #: all ranks together before.
    bytes: int
    #: algorithm, protocol: NCCL's names (``RING``, ``SIMPLE``), or numbers of unknown meaning.
    algorithm: str = ""
    protocol: str = ""
    channels: int | None = None  # number of channels; ``None`` if not logged
    words: str = ""  # the logged text instead of all these, if its form is unknown
    #: Whether the library may use another algorithm without logging it.
    replaceable: bool = False

    def line(self) -> str:
        head = f"{self.function} {self.bytes} bytes".strip()
        if self.words:
            return f"{head}: {self.words}"
        algorithm = self.algorithm if _is_name(self.algorithm) else f"algorithm {self.algorithm}"
        protocol = self.protocol if _is_name(self.protocol) else f"protocol {self.protocol}"
        channels = "" if self.channels is None else f", {self.channels} channels"
        return f"{head}: {algorithm} {protocol}{channels}"


def _is_name(word: str) -> bool:
    return word[:1].isalpha() and word != "Unknown"


def _choices_in(lines: Iterable[tuple[str, str]], origin: _Origin) -> Iterator[_NcclChoice]:
    """Yields the choices, call by call.

    A choice without a function belongs to the calls that its thread logged just before, if these
    are all of one function.

    Args:
        lines: thread (``host:process:thread``) and text.
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


def _choice(text: str, origin: _Origin) -> _NcclChoice | None:
    if found := _BY_NAME.fullmatch(text):
        function, size, algorithm, protocol, low, high = found.groups()
        return _NcclChoice(function, int(size), algorithm, protocol, int(high) - int(low) + 1)
    if found := _BY_NUMBER.fullmatch(text):
        function, size, algorithm, protocol = found.groups()
        library, version = origin
        release = _RELEASE.fullmatch(version)
        # For an unknown version, those that are common to all releases.
        algorithms = _NUMBERED.get(release[1], ()) if release else _ALGORITHMS
        return _NcclChoice(
            function or "",
            int(size),
            _named(algorithm, algorithms),
            _named(protocol, _PROTOCOLS if algorithms else ()),
            # On machines for which RCCL 2.20.5 and 2.21.5 have a tree, they use it for all-reduces
            # even after they logged another algorithm.
            replaceable=library != "NCCL",
        )
    if found := _OTHERWISE.fullmatch(text):
        return _NcclChoice(found[1] or "", int(found[2]), words=found[3])
    return None


def _named(number: str, names: tuple[str, ...]) -> str:
    return names[int(number)] if 0 <= int(number) < len(names) else number


_T = TypeVar("_T")

#: Variables that make NCCL log all that ``_parse_log`` reads.
_DIAGNOSING: Mapping[str, str] = {
    "NCCL_DEBUG": "INFO",
    "NCCL_DEBUG_SUBSYS": "INIT,ENV,TUNING,COLL,GRAPH,NET,P2P",
}

_LINE = re.compile(r"(?:\[[^\]]*\] )?(\S+?:\d+:\d+) \[-?\d+\] (?:\S+ ){0,2}?NCCL (INFO|WARN) (.*)")
# A separate line before 2.22; RCCL appends its commit, and some releases a colon.
_VERSION = re.compile(r"(NCCL|RCCL) version (?:: )?(\d\S*)(?: .*)?")
# The value is as NCCL parsed it: 4M becomes 4. NCCL reads many variables only when it needs them,
# and never logs a few, so the absence of a name proves nothing.
_READ = re.compile(r"((?:NCCL|RCCL)_\w+) set by environment to (.*?)\.?")
_TRANSPORT = re.compile(
    r"Channel \S+ : \d+\[\w+\] -> \d+\[\w+\](?: \[\w+\])? via "
    r"(\S+|direct shared memory|P2P/direct pointer\S*)(?: comm \w+ nRanks \d+)?"
)
_CHANNELS = re.compile(r"(\d+) coll channels, .*")
_PER_PEER = re.compile(r".* (\d+) p2p channels per peer")
_TUNER = re.compile(r"commtune tuner: (.*)|TUNER/Plugin: Using (.*)")
_RULE_TAKEN = re.compile(r"tuner: \w+ of \d+ bytes: .* \(line (\d+)\)")
_LIMITED = re.compile(r"User asked for a (minimum|maximum) of \d+ channels, limiting to (\d+)")
_INVALID = re.compile(
    r"Invalid ((?:NCCL|RCCL)_\w+) .*|((?:NCCL|RCCL)_\w+) set by environment is ignored .*"
)
_LIMITS = {"minimum": "NCCL_MIN_NCHANNELS", "maximum": "NCCL_MAX_NCHANNELS"}
_FUNCTIONS = {
    Operation.ALLREDUCE: "AllReduce",
    Operation.ALLGATHER: "AllGather",
    Operation.REDUCE_SCATTER: "ReduceScatter",
    Operation.BROADCAST: "Broadcast",
    Operation.REDUCE: "Reduce",
}


@dataclass(frozen=True)
class _NcclLog:
    origin: _Origin = ("", "")
    #: Variables that NCCL read, with the values as it parsed them.
    read: Mapping[str, str] = field(default_factory=dict)
    #: Variables whose value it limited, with the value that it used.
    limited: Mapping[str, str] = field(default_factory=dict)
    #: Variables whose value it rejected, with its message.
    invalid: Mapping[str, str] = field(default_factory=dict)
    choices: tuple[_NcclChoice, ...] = ()
    #: Transports between ranks, in the order of first use (``P2P/CUMEM``).
    transports: tuple[str, ...] = ()
    #: Number of channels for collectives; ``None`` if not logged.
    channels: int | None = None
    #: Number of channels for sends and receives to each peer; ``None`` if not logged.
    channels_per_peer: int | None = None
    #: Messages of commtune's tuner plugin, or else the name of another one.
    tuner: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()  # lines of level WARN; most of these errors end the run


def _parse_log(text: str) -> _NcclLog:
    """Reads a log of one or several processes; skips all other lines."""
    rows = [row.rstrip() for row in text.splitlines()]
    lines = _matches(_LINE, rows)
    informed = [(line[1], line[3].strip()) for line in lines if line[2] == "INFO"]
    said = [words for _, words in informed]
    # Of level INFO in some releases, WARN in others.
    told = [line[3].strip() for line in lines]
    versions = _matches(_VERSION, [*rows, *said])
    origin = (versions[0][1], versions[0][2]) if versions else ("", "")
    return _NcclLog(
        origin=origin,
        read={found[1]: found[2] for found in _matches(_READ, said)},
        limited={_LIMITS[found[1]]: found[2] for found in _matches(_LIMITED, told)},
        invalid={found[1] or found[2]: found[0] for found in _matches(_INVALID, told)},
        choices=_unique(_choices_in(informed, origin)),
        # Without the number of the device: NET/Socket/0 is NET/Socket.
        transports=_unique(re.sub(r"/\d+\b", "", f[1]) for f in _matches(_TRANSPORT, said)),
        channels=_first_number(_CHANNELS, said),
        channels_per_peer=_first_number(_PER_PEER, said),
        tuner=_unique(found[1] or f"plugin {found[2]}" for found in _matches(_TUNER, said)),
        warnings=_unique(line[3].strip() for line in lines if line[2] == "WARN"),
    )


def _matches(pattern: re.Pattern[str], lines: Iterable[str]) -> list[re.Match[str]]:
    """Returns the matches of whole lines."""
    return [found for line in lines if (found := pattern.fullmatch(line))]


def _first_number(pattern: re.Pattern[str], lines: Iterable[str]) -> int | None:
    return next((int(found[1]) for found in _matches(pattern, lines)), None)


def _unique(items: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(items))


def _describe_execution(operation: Operation, log: _NcclLog) -> tuple[str, ...]:
    """Describes what NCCL did: algorithm, protocol and channels by size, and transports."""
    calls = [choice.line() for choice in log.choices]
    calls += [f"transport {transport}" for transport in log.transports]
    calls += [f"tuner: {words}" for words in log.tuner]
    if not operation.is_collective or operation is Operation.ALLTOALL:
        # These consist of sends and receives, about which NCCL logs no more than this.
        each = log.channels_per_peer
        calls += [] if each is None else [f"{each} channels for each peer set up"]
    elif log.channels is not None:
        calls.append(f"{log.channels} channels set up")
    return tuple(calls)


def _listen(evidence: TraceEvidence) -> TraceVerdict:
    log = _parse_log(evidence.output)
    operation = evidence.operation
    return TraceVerdict(
        settings={
            name: _setting(name, evidence.configuration.get(name), operation, log)
            for name in evidence.names
        },
        did=_describe_execution(operation, log),
        notes=log.warnings,
    )


def _setting(name: str, asked: str | None, operation: Operation, log: _NcclLog) -> Setting:
    read = log.read.get(name)
    if asked is None or read is None:
        why = "" if asked is None else "the log does not mention it"
        return Setting(name, Told.UNKNOWN, asked, read, why)
    if name in log.invalid:
        return Setting(name, Told.UNUSED, asked, read, log.invalid[name])
    if name in log.limited:
        return Setting(name, Told.REPLACED, asked, log.limited[name], "NCCL's limit")
    if name in ("NCCL_ALGO", "NCCL_PROTO"):
        ran = _words_of_what_ran(name, operation, log)
        if other := _others(asked, ran):
            return Setting(name, Told.REPLACED, asked, other, "what ran")
        if not _is_judged(asked) or not ran or not all(map(_is_name, ran)):
            return Setting(name, Told.UNKNOWN, asked, read, "the log does not tell what ran")
    same = holds_value(asked, {"kind": "integer", "value": read})
    told = {True: Told.HELD, False: Told.REPLACED, None: Told.UNKNOWN}[same]
    leading = re.match(r"(?:[+-]?\d+)?", asked)
    if same is None and leading and leading[0] == read:
        return Setting(name, Told.REPLACED, asked, read, "NCCL reads no suffixes")
    return Setting(name, told, asked, read)


def _words_of_what_ran(name: str, operation: Operation, log: _NcclLog) -> set[str]:
    """Returns the algorithms or protocols of the operation's calls.

    An empty set if no call was logged; with an empty word if that of some call is unknown.
    """
    function = _FUNCTIONS.get(operation)
    mine = [c for c in log.choices if c.function == function]
    if name == "NCCL_PROTO":
        return {choice.protocol for choice in mine}
    return {"" if choice.replaceable else choice.algorithm for choice in mine}


def _is_judged(asked: str) -> bool:
    """Whether this is a list for all functions; lists by function aren't judged."""
    return re.fullmatch(r"\^?[\w,]+", asked) is not None


def _others(asked: str, ran: set[str]) -> str:
    """Returns what ran although it was excluded; empty if nothing is known to have."""
    if not _is_judged(asked):
        return ""
    listed = {_plain(word) for word in asked.removeprefix("^").split(",")}
    excludes = asked.startswith("^")
    names = sorted(word for word in ran if _is_name(word))
    return "" if all((_plain(w) in listed) != excludes for w in names) else ", ".join(names)


def _plain(word: str) -> str:
    return word.replace("_", "").lower()


_SAID_CHOICE = re.compile(r"(\w+) (\d+) bytes: (\w+ \w+)(?:, \d+ channels)?")


def choices_by_size(execution: Execution, ranks: int) -> dict[int, str]:
    """Returns algorithm and protocol (``RING LL``) of the operation's calls, by size (bytes).

    Args:
        ranks: of the communicator: for all-gather and reduce-scatter, NCCL logs the size of one
            rank's part since 2.24.
    """
    operation = Operation(execution.operation)
    factor = ranks if operation in (Operation.ALLGATHER, Operation.REDUCE_SCATTER) else 1
    words: dict[int, list[str]] = {}
    said = [line.removeprefix(DID) for line in execution.said]
    for found in _matches(_SAID_CHOICE, said):
        if found[1] == _FUNCTIONS.get(operation):
            words.setdefault(int(found[2]) * factor, []).append(found[3])
    return {size: ", ".join(sorted(set(those))) for size, those in words.items()}


def lines_taken(execution: Execution) -> frozenset[int]:
    """Returns the line numbers of those rules that commtune's tuner plugin logged as used."""
    said = [line.removeprefix(DID) for line in execution.said]
    return frozenset(int(found[1]) for found in _matches(_RULE_TAKEN, said))


#: Since 2.24 NCCL fails at unknown names of algorithms and protocols.
NCCL = TracedLibrary(diagnosing=_DIAGNOSING, listen=_listen)
