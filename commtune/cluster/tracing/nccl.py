"""NCCL's log (seen with 2.28.9): what it read, chose and connected; RCCL's is much the same.

What was chosen has a form of its own in several releases (``nccl_choices``). Where a log doesn't
tell what ran, a value of NCCL_ALGO or NCCL_PROTO that was read proves nothing.

Where NCCL reads a variable it says "X set by environment to Y", with Y as it understood it: 4M
becomes 4. Many variables are read only when they are needed, and a few never are logged, so that
silence about a name says nothing. An algorithm or protocol that can't be used ends the run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from commtune.cluster.tracing.library import TracedLibrary, TraceEvidence, TraceVerdict
from commtune.cluster.tracing.nccl_choices import LogOrigin, NcclChoice, choices_in, is_name
from commtune.cluster.tracing.values import holds_value
from commtune.model import Configuration, Execution, Operation
from commtune.tuner.effective.settings import Setting, Told, judge_execution

_T = TypeVar("_T")

#: Makes NCCL say all that ``parse_log`` reads, in untimed runs. With NCCL_DEBUG_FILE set
#: to a path with %h and %p in it each process writes a file of its own.
_DIAGNOSING: Mapping[str, str] = {
    "NCCL_DEBUG": "INFO",
    "NCCL_DEBUG_SUBSYS": "INIT,ENV,TUNING,COLL,GRAPH,NET,P2P",
}

_LINE = re.compile(r"(?:\[[^\]]*\] )?(\S+?:\d+:\d+) \[-?\d+\] (?:\S+ ){0,2}?NCCL (INFO|WARN) (.*)")
# A line of its own before 2.22; RCCL adds the state of its sources, some releases a colon.
_VERSION = re.compile(r"(NCCL|RCCL) version (?:: )?(\d\S*)(?: .*)?")
_READ = re.compile(r"((?:NCCL|RCCL)_\w+) set by environment to (.*?)\.?")
_TRANSPORT = re.compile(
    r"Channel \S+ : \d+\[\w+\] -> \d+\[\w+\](?: \[\w+\])? via "
    r"(\S+|direct shared memory|P2P/direct pointer\S*)(?: comm \w+ nRanks \d+)?"
)
_CHANNELS = re.compile(r"(\d+) coll channels, .*")
_PER_PEER = re.compile(r".* (\d+) p2p channels per peer")
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
    """What a log says.

    Attributes:
        library, version: as it names itself; empty where it doesn't.
        read: variables that NCCL read, with the values as it understood them.
        limited: variables whose value it changed, with the value that it took.
        invalid: variables whose value it did not take, with its words.
        transports: ways between ranks, in the order of first use (``P2P/CUMEM``).
        channels: channels for collectives, as set up; ``None`` where it isn't said.
        channels_per_peer: likewise, for sends and receives between two ranks.
        warnings: what NCCL calls a warning; most of them end the run.
    """

    library: str = ""
    version: str = ""
    read: Mapping[str, str] = field(default_factory=dict)
    limited: Mapping[str, str] = field(default_factory=dict)
    invalid: Mapping[str, str] = field(default_factory=dict)
    choices: tuple[NcclChoice, ...] = ()
    transports: tuple[str, ...] = ()
    channels: int | None = None
    channels_per_peer: int | None = None
    warnings: tuple[str, ...] = ()


def _parse_log(text: str) -> _NcclLog:
    """Reads a log, of one process or of several; lines that say nothing of use are passed over."""
    rows = [row.rstrip() for row in text.splitlines()]
    lines = _matches(_LINE, rows)
    informed = [(line[1], line[3].strip()) for line in lines if line[2] == "INFO"]
    said = [words for _, words in informed]
    # Information in some releases, warnings in others.
    told = [line[3].strip() for line in lines]
    versions = _matches(_VERSION, [*rows, *said])
    origin = LogOrigin(versions[0][1], versions[0][2]) if versions else LogOrigin()
    return _NcclLog(
        library=origin.library,
        version=origin.version,
        read={found[1]: found[2] for found in _matches(_READ, said)},
        limited={_LIMITS[found[1]]: found[2] for found in _matches(_LIMITED, told)},
        invalid={found[1] or found[2]: found[0] for found in _matches(_INVALID, told)},
        choices=_unique(choices_in(informed, origin)),
        transports=_unique(_transport(found[1]) for found in _matches(_TRANSPORT, said)),
        channels=_first_number(_CHANNELS, said),
        channels_per_peer=_first_number(_PER_PEER, said),
        warnings=_unique(line[3].strip() for line in lines if line[2] == "WARN"),
    )


def _matches(pattern: re.Pattern[str], lines: Iterable[str]) -> list[re.Match[str]]:
    """The lines that are of this form, whole."""
    return [found for line in lines if (found := pattern.fullmatch(line))]


def _first_number(pattern: re.Pattern[str], lines: Iterable[str]) -> int | None:
    return next((int(found[1]) for found in _matches(pattern, lines)), None)


def _unique(items: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(items))


def _transport(text: str) -> str:
    """Without the number of the device: NET/Socket/0 is NET/Socket."""
    return re.sub(r"/\d+\b", "", text)


def _trace_log(
    configuration: Configuration, operation: Operation, log: _NcclLog, names: Iterable[str] = ()
) -> Execution:
    """What NCCL made of a configuration, by the log of a run under it.

    Args:
        names: further variables of interest, which the configuration leaves alone.
    """
    settings = [
        _setting(name, configuration.get(name), operation, log)
        for name in sorted({*names, *configuration})
    ]
    said = _executed_by_size(operation, log)
    return judge_execution(configuration, str(operation), settings, did=said, notes=log.warnings)


def _executed_by_size(operation: Operation, log: _NcclLog) -> tuple[str, ...]:
    """What NCCL did: algorithm, protocol and channels by size, and how it connected the ranks."""
    calls = [choice.line() for choice in log.choices]
    calls += [f"transport {transport}" for transport in log.transports]
    if not operation.is_collective or operation is Operation.ALLTOALL:
        # Made of sends and receives, of which the log says no more than this.
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
        did=_executed_by_size(operation, log),
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
        if not _is_judged(asked) or not ran or not all(map(is_name, ran)):
            return Setting(name, Told.UNKNOWN, asked, read, "the log does not tell what ran")
    same = holds_value(asked, {"kind": "integer", "value": read})
    told = {True: Told.HELD, False: Told.REPLACED, None: Told.UNKNOWN}[same]
    if same is None and _leading_number(asked) == read:
        return Setting(name, Told.REPLACED, asked, read, "NCCL reads no suffixes")
    return Setting(name, told, asked, read)


def _leading_number(text: str) -> str:
    found = re.match(r"[+-]?\d+", text)
    return found[0] if found else ""


def _words_of_what_ran(name: str, operation: Operation, log: _NcclLog) -> set[str]:
    """Algorithms or protocols of the operation's calls.

    Empty where none is told of; with a word that names none where some call's isn't told.
    """
    function = _FUNCTIONS.get(operation)
    mine = [c for c in log.choices if c.function == function]
    if name == "NCCL_PROTO":
        return {choice.protocol for choice in mine}
    return {"" if choice.replaceable else choice.algorithm for choice in mine}


def _is_judged(asked: str) -> bool:
    """Whether this is a list for all functions; one with a function's name is not looked into."""
    return re.fullmatch(r"\^?[\w,]+", asked) is not None


def _others(asked: str, ran: set[str]) -> str:
    """What ran although it was not allowed; empty where nothing is known to have."""
    if not _is_judged(asked):
        return ""
    listed = {_plain(word) for word in asked.removeprefix("^").split(",")}
    excludes = asked.startswith("^")
    names = sorted(word for word in ran if is_name(word))
    return "" if all((_plain(w) in listed) != excludes for w in names) else ", ".join(names)


def _plain(word: str) -> str:
    return word.replace("_", "").lower()


#: From 2.24 on a run ends at a word that NCCL doesn't know, for its algorithms and protocols.
NCCL = TracedLibrary(diagnosing=_DIAGNOSING, listen=_listen)
