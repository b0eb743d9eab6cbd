"""Judges from the trace of a run which variables a library applied."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commtune.documents.quantities import read_truth
from commtune.model import Configuration, Operation
from commtune.tuner.effective.settings import Setting, Told


@dataclass(frozen=True)
class TraceEvidence:
    """The data of a traced run from which variables are judged."""

    configuration: Configuration
    operation: Operation
    #: Names of all variables to judge, including those of the configuration.
    names: tuple[str, ...]
    #: The environment of each rank, reduced to ``names``.
    seen: tuple[Mapping[str, str], ...] = ()
    #: Control variables (MPI_T) of rank 0 by environment variable; ``None`` where the library has
    #: no such control variable. Environment variables that set none are left out.
    controls: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    differing: frozenset[str] = frozenset()  # variables whose values differ between ranks
    output: str = ""  # of the run, library and benchmark together
    #: The number of operations by size (bytes).
    operations: Mapping[int, int] = field(default_factory=dict)
    files: tuple[Path, ...] = ()  # paths of the loaded communication libraries


@dataclass(frozen=True)
class TraceVerdict:
    """The information in a library's output, beyond its control variables."""

    #: Variables that are judged by the output alone.
    settings: Mapping[str, Setting] = field(default_factory=dict)
    #: Variables that the library read and that have no effect, with the reason.
    unused: Mapping[str, str] = field(default_factory=dict)
    #: Variables that the library overrode: the value it used, and the reason.
    replaced: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    did: tuple[str, ...] = ()  # what the library did, to compare configurations by
    notes: tuple[str, ...] = ()  # further remarks


@dataclass(frozen=True)
class TracedLibrary:
    """How to trace one library; the defaults are for one that says nothing."""

    #: Variables that make the library log what it does. They are set in traces only, and not if a
    #: user or a space sets them; they are no part of a configuration.
    diagnosing: Mapping[str, str] = field(default_factory=dict)
    #: Returns those of them that would break a run with these variables.
    too_risky: Callable[[Mapping[str, str]], frozenset[str]] = lambda _: frozenset()
    #: Returns the control variable (MPI_T) that a variable sets; ``None`` if it sets none.
    control_of: Callable[[str], str | None] = lambda _: None
    further: tuple[str, ...] = ()  # further control variables that ``listen`` needs
    #: Whether a variable without a control variable is certainly unknown to the library.
    is_missing: Callable[[str, TraceEvidence], bool] = lambda _name, _evidence: False
    #: Reads the library's output and control variables.
    listen: Callable[[TraceEvidence], TraceVerdict] = lambda _: TraceVerdict()
    suffixes: bool = False  # whether it reads 4k as 4096
    #: Whether it aborts at an unknown word, so that a run that succeeded understood its words.
    refuses_words: bool = False


def judge_settings(
    library: TracedLibrary, evidence: TraceEvidence
) -> tuple[list[Setting], TraceVerdict]:
    """Judges each variable; also returns what the library said."""
    verdict = library.listen(evidence)
    return [_setting(library, evidence, verdict, name) for name in evidence.names], verdict


def _setting(
    library: TracedLibrary, evidence: TraceEvidence, verdict: TraceVerdict, name: str
) -> Setting:
    asked = evidence.configuration.get(name)
    setting = verdict.settings.get(name) or _by_control(library, evidence, name, asked)
    if asked is None or not setting.told.has_effect:
        return setting
    if elsewhere := _seen_otherwise(evidence.seen, name, asked):
        return Setting(name, Told.REPLACED, asked, elsewhere[1], elsewhere[0])
    if name in verdict.unused:
        return Setting(name, Told.UNUSED, asked, setting.held, verdict.unused[name])
    if name in verdict.replaced:
        held, why = verdict.replaced[name]
        return Setting(name, Told.REPLACED, asked, held, why)
    return setting


def _by_control(
    library: TracedLibrary, evidence: TraceEvidence, name: str, asked: str | None
) -> Setting:
    if name not in evidence.controls:
        return Setting(name, Told.UNKNOWN, asked)
    control = evidence.controls[name]
    if control is None:
        missing = library.is_missing(name, evidence)
        return Setting(name, Told.ABSENT if missing else Told.UNKNOWN, asked)
    held = None if control["kind"] == "unreadable" else str(control["value"])
    if name in evidence.differing:
        return Setting(name, Told.UNKNOWN, asked, held, "ranks hold different values")
    if asked is None:
        return Setting(name, Told.UNKNOWN if held is None else Told.HELD, None, held)
    told = _compared(library, asked, control)
    return Setting(name, told, asked, held, str(control.get("word", "")))


def _compared(library: TracedLibrary, asked: str, control: Mapping[str, Any]) -> Told:
    same = holds_value(asked, control, suffixes=library.suffixes)
    if same is None:
        is_word = control["kind"] == "integer" and asked.replace("_", "").isalpha()
        return Told.HELD if library.refuses_words and is_word else Told.UNKNOWN
    return Told.HELD if same else Told.REPLACED


def _seen_otherwise(
    seen: Sequence[Mapping[str, str]], name: str, asked: str
) -> tuple[str, str] | None:
    for rank, environment in enumerate(seen):
        if environment.get(name) != asked:
            other = environment.get(name, "")
            return f"rank {rank} saw " + (repr(other) if other else "nothing"), other
    return None


_SUFFIXES = {"k": 2**10, "m": 2**20, "g": 2**30}


def holds_value(asked: str, control: Mapping[str, Any], *, suffixes: bool = False) -> bool | None:
    """Whether a control variable has the value that was asked for; ``None`` if that is unclear.

    Args:
        control: kind, value, word and words, from the benchmark's trace.
        suffixes: whether the library reads 4k as 4096.
    """
    kind, value = control["kind"], str(control["value"])
    if kind == "unreadable":
        return None
    if asked in (value, control.get("word") or value):
        return True
    if kind == "text":
        return True if _items(asked) == _items(value) else None
    same = _same_word(asked, control)
    return _same_number(asked, value, suffixes=suffixes) if same is None else same


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",")]


def _same_word(asked: str, control: Mapping[str, Any]) -> bool | None:
    words = {str(word).lower() for word in control.get("words", ())}
    word = str(control.get("word", "")).lower()
    if asked.lower() in words:
        return asked.lower() == word
    truth = read_truth(asked)
    if truth is not None and _number(asked, suffixes=True) is None:
        held = read_truth(word if words else str(control["value"]))
        return None if held is None else held == truth
    return None


def _same_number(asked: str, value: str, *, suffixes: bool) -> bool | None:
    wanted, held = _number(asked, suffixes=suffixes), _number(value, suffixes=False)
    if wanted is None or held is None:
        return None
    if math.isclose(wanted, held, rel_tol=1e-9):
        return True
    # Libraries replace 0 and -1, which often mean "automatic", by the value that they chose.
    return False if wanted > 0 else None


def _number(text: str, *, suffixes: bool) -> float | None:
    text = text.strip().lower()
    factor = _SUFFIXES.get(text[-1:], 1) if suffixes else 1
    digits = text[:-1] if factor != 1 else text
    # Whether 010 is ten or eight depends on the library.
    if digits.lstrip("+-").startswith("0") and digits.lstrip("+-").isdigit() and float(digits):
        return None
    try:
        number = float(int(digits, 16)) if digits.startswith("0x") else float(digits)
    except ValueError:
        return None
    return number * factor if math.isfinite(number) else None
