"""NCCL's log (seen with 2.28.9): what it read, chose and connected; RCCL writes the same way.

Where NCCL reads a variable it says "X set by environment to Y", with Y as it understood it: 4M
becomes 4. Many variables are read only when they are needed, and a few never are logged, so that
silence about a name says nothing. An algorithm or protocol that can't be used ends the run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from commtune.cluster.tracing.library import Evidence, Library, Verdict
from commtune.cluster.tracing.values import agrees
from commtune.model import Configuration, Execution, Operation
from commtune.tuner.executed import Setting, Told, executed

_T = TypeVar("_T")

#: Makes NCCL say all that ``parse`` reads; for runs that nobody times. With NCCL_DEBUG_FILE set
#: to a path with %h and %p in it each process writes a file of its own.
DIAGNOSING: Mapping[str, str] = {
    "NCCL_DEBUG": "INFO",
    "NCCL_DEBUG_SUBSYS": "INIT,ENV,TUNING,COLL,GRAPH,NET,P2P",
}

_LINE = re.compile(r"(?:\[[^\]]*\] )?\S+?:\d+:\d+ \[-?\d+\] (?:\S+ )?NCCL (INFO|WARN) (.*)")
_VERSION = re.compile(r"(?:NCCL|RCCL) version (\S+)")
_READ = re.compile(r"((?:NCCL|RCCL)_\w+) set by environment to (.*?)\.?")
_CHOICE = re.compile(
    r"(\w+): (\d+) Bytes -> Algo (\w+) proto (\w+) channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\}"
)
_TRANSPORT = re.compile(r"Channel \S+ : \d+\[\w+\] -> \d+\[\w+\](?: \[\w+\])? via (\S+)")
_CHANNELS = re.compile(r"(\d+) coll channels, .*")
_PER_PEER = re.compile(r".* (\d+) p2p channels per peer")
_LIMITED = re.compile(r"User asked for a (minimum|maximum) of \d+ channels, limiting to (\d+)")
_INVALID = re.compile(r"Invalid ((?:NCCL|RCCL)_\w+) .*")
_LIMITS = {"minimum": "NCCL_MIN_NCHANNELS", "maximum": "NCCL_MAX_NCHANNELS"}
_FUNCTIONS = {
    Operation.ALLREDUCE: "AllReduce",
    Operation.ALLGATHER: "AllGather",
    Operation.REDUCE_SCATTER: "ReduceScatter",
    Operation.BROADCAST: "Broadcast",
    Operation.REDUCE: "Reduce",
}


@dataclass(frozen=True)
class Choice:
    """What NCCL chose for one call.

    Attributes:
        function: NCCL's name of the operation (``AllReduce``).
        bytes: as NCCL counts them: of all ranks together for all-gather, of a rank's part for
            reduce-scatter.
        algorithm, protocol: NCCL's words (``RING``, ``SIMPLE``).
        channels: how many took part.
    """

    function: str
    bytes: int
    algorithm: str
    protocol: str
    channels: int


@dataclass(frozen=True)
class Log:
    """What a log says.

    Attributes:
        read: variables that NCCL read, with the values as it understood them.
        limited: variables whose value it changed, with the value that it took.
        invalid: variables whose value it did not take, with its words.
        transports: ways between ranks, in the order of first use (``P2P/CUMEM``).
        channels: channels for collectives, as set up; ``None`` where it isn't said.
        channels_per_peer: likewise, for sends and receives between two ranks.
        warnings: what NCCL calls a warning; most of them end the run.
    """

    version: str = ""
    read: Mapping[str, str] = field(default_factory=dict)
    limited: Mapping[str, str] = field(default_factory=dict)
    invalid: Mapping[str, str] = field(default_factory=dict)
    choices: tuple[Choice, ...] = ()
    transports: tuple[str, ...] = ()
    channels: int | None = None
    channels_per_peer: int | None = None
    warnings: tuple[str, ...] = ()


def parse(text: str) -> Log:
    """Reads a log, of one process or of several; lines that say nothing of use are passed over."""
    lines = [found for found in map(_LINE.fullmatch, map(str.rstrip, text.splitlines())) if found]
    said = [line[2].strip() for line in lines if line[1] == "INFO"]
    versions = [found[1] for found in map(_VERSION.fullmatch, said) if found]
    channels = [int(found[1]) for found in map(_CHANNELS.fullmatch, said) if found]
    per_peer = [int(found[1]) for found in map(_PER_PEER.fullmatch, said) if found]
    invalid = [found for found in map(_INVALID.fullmatch, said) if found]
    return Log(
        version=versions[0] if versions else "",
        read={f[1]: f[2] for f in map(_READ.fullmatch, said) if f},
        limited={_LIMITS[f[1]]: f[2] for f in map(_LIMITED.fullmatch, said) if f},
        invalid={found[1]: found[0] for found in invalid},
        choices=_unique(_choice(found) for found in map(_CHOICE.fullmatch, said) if found),
        transports=_unique(_transport(f[1]) for f in map(_TRANSPORT.fullmatch, said) if f),
        channels=channels[0] if channels else None,
        channels_per_peer=per_peer[0] if per_peer else None,
        warnings=_unique(line[2].strip() for line in lines if line[1] == "WARN"),
    )


def _unique(items: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(items))


def _choice(found: re.Match[str]) -> Choice:
    function, size, algorithm, protocol, low, high = found.groups()
    return Choice(function, int(size), algorithm, protocol, int(high) - int(low) + 1)


def _transport(text: str) -> str:
    """Without the number of the device: NET/Socket/0 is NET/Socket."""
    return re.sub(r"/\d+\b", "", text)


def trace(
    configuration: Configuration, operation: Operation, log: Log, names: Iterable[str] = ()
) -> Execution:
    """What NCCL made of a configuration, by the log of a run under it.

    Args:
        names: further variables of interest, which the configuration leaves alone.
    """
    settings = [
        _setting(name, configuration.get(name), operation, log)
        for name in sorted({*names, *configuration})
    ]
    said = done(operation, log)
    return executed(configuration, str(operation), settings, did=said, notes=log.warnings)


def done(operation: Operation, log: Log) -> tuple[str, ...]:
    """What NCCL did: algorithm, protocol and channels by size, and how it connected the ranks."""
    calls = [
        f"{c.function} {c.bytes} bytes: {c.algorithm} {c.protocol}, {c.channels} channels"
        for c in log.choices
    ]
    calls += [f"transport {transport}" for transport in log.transports]
    if not operation.is_collective or operation is Operation.ALLTOALL:
        # Made of sends and receives, of which the log says no more than this.
        each = log.channels_per_peer
        calls += [] if each is None else [f"{each} channels for each peer set up"]
    elif log.channels is not None:
        calls.append(f"{log.channels} channels set up")
    return tuple(calls)


def _listen(evidence: Evidence) -> Verdict:
    log = parse(evidence.output)
    operation = evidence.operation
    return Verdict(
        settings={
            name: _setting(name, evidence.configuration.get(name), operation, log)
            for name in evidence.names
        },
        did=done(operation, log),
        notes=log.warnings,
    )


def _setting(name: str, asked: str | None, operation: Operation, log: Log) -> Setting:
    read = log.read.get(name)
    if asked is None or read is None:
        why = "" if asked is None else "the log does not mention it"
        return Setting(name, Told.UNKNOWN, asked, read, why)
    if name in log.invalid:
        return Setting(name, Told.UNUSED, asked, read, log.invalid[name])
    if name in log.limited:
        return Setting(name, Told.REPLACED, asked, log.limited[name], "NCCL's limit")
    if other := _other_choice(name, asked, operation, log):
        return Setting(name, Told.REPLACED, asked, other, "what ran")
    same = agrees(asked, {"kind": "integer", "value": read})
    told = {True: Told.HELD, False: Told.REPLACED, None: Told.UNKNOWN}[same]
    if same is None and _leading_number(asked) == read:
        return Setting(name, Told.REPLACED, asked, read, "NCCL reads no suffixes")
    return Setting(name, told, asked, read)


def _leading_number(text: str) -> str:
    found = re.match(r"[+-]?\d+", text)
    return found[0] if found else ""


def _other_choice(name: str, asked: str, operation: Operation, log: Log) -> str:
    """What ran in place of a plain list of algorithms or protocols; empty where that is among it.

    Lists with ^ or a function's name in them are not looked into.
    """
    function = _FUNCTIONS.get(operation)
    if name not in ("NCCL_ALGO", "NCCL_PROTO") or not re.fullmatch(r"[\w,]+", asked):
        return ""
    mine = [choice for choice in log.choices if choice.function == function]
    used = {c.algorithm if name == "NCCL_ALGO" else c.protocol for c in mine}
    wanted = {_plain(word) for word in asked.split(",")}
    return "" if {_plain(word) for word in used} <= wanted else ", ".join(sorted(used))


def _plain(word: str) -> str:
    return word.replace("_", "").lower()


#: A run ends at a word that NCCL doesn't know, for its algorithms and protocols.
NCCL = Library(diagnosing=DIAGNOSING, listen=_listen)
