"""Judges from a trace what a library did with the variables of a configuration. Starts no runs.

A trace (``ports.Benchmark.trace``) is stored as lines for a person (``Execution.said``), in the
fixed forms of ``Setting.line``, which are parsed here. Whatever was not understood is UNKNOWN: a
wrong IGNORED would cost a good configuration.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from commtune.model import Configuration, Execution, Followed

#: Begins a line about what the library did, beside its variables; compared for equal behaviour.
DID = "did: "
#: Begins a line that is only for information; not compared.
NOTE = "note: "


class Told(StrEnum):
    """What the library did with a variable."""

    HELD = "held"  # the library holds what was asked for
    REPLACED = "replaced"  # it holds something else
    ABSENT = "absent"  # it has no such variable
    UNUSED = "unused"  # it holds it, and said or showed that it does not use it
    UNKNOWN = "unknown"  # the trace doesn't tell

    @property
    def has_effect(self) -> bool:
        """Whether the variable may have had an effect."""
        return self not in (Told.ABSENT, Told.UNUSED)


@dataclass(frozen=True)
class Setting:
    """What the library did with one variable.

    Attributes:
        asked: the requested value; ``None`` where the variable was unset.
        held: the value that the library holds, in its own words; ``None`` if unknown.
        why: reason in words, where there is something to explain.
    """

    name: str
    told: Told
    asked: str | None = None
    held: str | None = None
    why: str = ""

    def line(self) -> str:
        head = f"{self.name}: {self.told}"
        asked = "" if self.asked is None else f", asked {_quote(self.asked)}"
        held = "" if self.held is None else f", holds {_quote(self.held)}"
        return head + asked + held + (f" ({self.why})" if self.why else "")


_LINE = re.compile(
    r"(?P<name>\w+): (?P<told>held|replaced|absent|unused|unknown)"
    r"(?:, asked '(?P<asked>[^']*)')?(?:, holds '(?P<held>[^']*)')?(?: \((?P<why>.*)\))?"
)


def _quote(value: str) -> str:
    return "'" + value.replace("'", "`").replace("\n", " ") + "'"


def settings_of(execution: Execution) -> dict[str, Setting]:
    """Parses the settings in an execution's lines, by name of the variable."""
    found = (_LINE.fullmatch(line) for line in execution.said)
    settings = [
        Setting(m["name"], Told(m["told"]), m["asked"], m["held"], m["why"] or "")
        for m in found
        if m is not None
    ]
    return {setting.name: setting for setting in settings}


def judge_execution(
    configuration: Configuration,
    operation: str,
    settings: Sequence[Setting],
    *,
    fingerprints: Mapping[int, str] | None = None,
    did: Iterable[str] = (),
    notes: Iterable[str] = (),
) -> Execution:
    """Makes an execution with its verdict, from the settings of all variables."""
    lines = [*(s.line() for s in settings), *(DID + line for line in did)]
    asked = [setting for setting in settings if setting.name in configuration]
    execution = Execution(
        configuration,
        operation,
        followed=_verdict(asked),
        fingerprints=dict(fingerprints or {}),
        said=(*lines, *(NOTE + line for line in notes)),
        why="; ".join(_reason(s) for s in asked if s.told not in (Told.HELD, Told.UNKNOWN)),
    )
    left = effective_configuration(execution)
    return execution if left == configuration else replace(execution, became=left.key)


def _verdict(asked: Sequence[Setting]) -> Followed:
    told = {setting.told for setting in asked}
    if Told.REPLACED in told:
        return Followed.REPLACED
    if told and not any(kind.has_effect for kind in told):
        return Followed.IGNORED
    if told & {Told.ABSENT, Told.UNUSED}:
        return Followed.REPLACED  # by the configuration without these
    return Followed.UNKNOWN if Told.UNKNOWN in told else Followed.EXECUTED


def _reason(setting: Setting) -> str:
    if setting.told is Told.ABSENT:
        return f"{setting.name} is ignored: {setting.why or 'the library has no such variable'}"
    if setting.told is Told.UNUSED:
        return f"{setting.name}={setting.asked} has no effect: {setting.why}"
    why = f" ({setting.why})" if setting.why else ""
    return f"{setting.name}={setting.asked}: the library holds {setting.held}{why}"


def effective_configuration(execution: Execution) -> Configuration:
    """Returns the configuration without the variables that had no effect.

    A replaced variable stays, since how to request the value that it holds isn't known.
    """
    settings = settings_of(execution)
    return Configuration(
        {
            name: value
            for name, value in execution.configuration.items()
            if name not in settings or settings[name].told.has_effect
        }
    )


def find_at_default(execution: Execution, default: Execution) -> frozenset[str]:
    """Returns the variables that request a value which the library holds by default.

    A hint only: setting a variable at all can switch off a library's own choices. Whether the
    configuration without it behaves the same is decided by ``group_executions``.
    """
    own = settings_of(default)
    return frozenset(
        name
        for name, setting in settings_of(execution).items()
        if name in execution.configuration
        and setting.told is Told.HELD
        and setting.held is not None
        and name in own
        and own[name].held == setting.held
    )


def group_executions(executions: Iterable[Execution]) -> tuple[Execution, ...]:
    """Groups executions by behaviour; ``became`` of each is the key of its group's simplest one.

    Two behave the same if the library holds the same values of all variables with an effect,
    reports the same actions and gives the same fingerprints; unknown variables must be the same
    as well. The simplest has the fewest variables. It keeps its own ``became``: the configuration
    without its variables that had no effect, if there are such.
    """
    given = tuple(executions)
    defaults = {e.operation: settings_of(e) for e in given if e.configuration.is_default}
    behaviours = [_behaviour(e, defaults.get(e.operation, {})) for e in given]
    simplest: dict[object, Execution] = {}
    for behaviour, execution in zip(behaviours, given, strict=True):
        simplest[behaviour] = min(simplest.get(behaviour, execution), execution, key=_complexity)
    groups = zip(given, (simplest[behaviour] for behaviour in behaviours), strict=True)
    return tuple(
        execution
        if execution.configuration == found.configuration
        else replace(execution, became=found.configuration.key)
        for execution, found in groups
    )


def _complexity(execution: Execution) -> tuple[int, str]:
    return len(execution.configuration), str(execution.configuration)


def _behaviour(execution: Execution, default: Mapping[str, Setting]) -> object:
    """Returns a key of what the library reports, equal for configurations that behave the same."""
    settings = settings_of(execution)
    values: dict[str, tuple[str, ...]] = {}
    for name, setting in settings.items():
        if (value := _value(setting, default.get(name))) is not None:
            values[name] = value
    for name, asked in execution.configuration.items():
        if name not in settings:
            values[name] = ("asked", asked)
    did = frozenset(line for line in execution.said if line.startswith(DID))
    fingerprints = tuple(sorted(execution.fingerprints.items()))
    return execution.operation, tuple(sorted(values.items())), did, fingerprints


def _value(setting: Setting, default: Setting | None) -> tuple[str, ...] | None:
    """Returns a variable's part of the key; ``None`` for one without an effect."""
    if setting.told is Told.UNUSED:
        setting = default or replace(setting, told=Told.ABSENT)
    if setting.told is Told.ABSENT:
        return None
    if setting.told is Told.UNKNOWN:
        if setting.asked is None and setting.held is None:
            return None
        return ("unknown", setting.asked or "", setting.held or "")
    return ("holds", setting.held or "")


def split_fingerprint(fingerprint: str) -> tuple[str, str]:
    """Splits a fingerprint into the digests of the sum and of the messages, maybe empty."""
    order, _, messages = fingerprint.partition("+")
    return order, messages


def is_same_algorithm(one: str, other: str) -> bool | None:
    """Whether the digests that both have are equal; ``None`` if they share none."""
    pairs = zip(split_fingerprint(one), split_fingerprint(other), strict=True)
    common = [own == its for own, its in pairs if own and its]
    return all(common) if common else None
