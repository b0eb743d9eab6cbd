"""What tracing needs to know of a library, and the verdict from what a trace showed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commtune.cluster.tracing.values import holds_value
from commtune.model import Configuration, Operation
from commtune.tuner.effective.settings import Setting, Told


@dataclass(frozen=True)
class TraceEvidence:
    """What a trace showed.

    Attributes:
        names: all variables of interest, those of the configuration among them.
        seen: environment of each rank, as far as ``names`` go.
        controls: by variable, what rank 0's library holds of it: ``None`` where it has no such
            control variable. Variables that no control variable belongs to are left out.
        differing: variables that ranks hold different values of.
        output: what the run printed, library and benchmark together.
        operations: by size in bytes, how often the operation was done.
        files: paths of the loaded communication libraries.
    """

    configuration: Configuration
    operation: Operation
    names: tuple[str, ...]
    seen: tuple[Mapping[str, str], ...] = ()
    controls: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    differing: frozenset[str] = frozenset()
    output: str = ""
    operations: Mapping[int, int] = field(default_factory=dict)
    files: tuple[Path, ...] = ()


@dataclass(frozen=True)
class TraceVerdict:
    """What a library's own words say beyond its control variables.

    Attributes:
        unused: variables that are held but make no difference, and why.
        replaced: variables in whose place something else was used: what, and why.
        settings: what became of variables, where the library itself says all that is known.
        did: what the library did, for comparing configurations.
        notes: what else is worth saying.
    """

    settings: Mapping[str, Setting] = field(default_factory=dict)
    unused: Mapping[str, str] = field(default_factory=dict)
    replaced: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    did: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def _no_control(name: str) -> str | None:  # noqa: ARG001  # the form that all of them have
    return None


def _nothing_said(evidence: TraceEvidence) -> TraceVerdict:  # noqa: ARG001
    return TraceVerdict()


def _nothing_missed(name: str, evidence: TraceEvidence) -> bool:  # noqa: ARG001
    return False


@dataclass(frozen=True)
class TracedLibrary:
    """How one library is traced.

    Attributes:
        diagnosing: variables that make the library say what it does. They are set in traces
            only, never where a user or a space sets them, and are no part of a configuration.
        control_of: the control variable (MPI_T) that a variable sets; ``None`` if it sets none.
        further: further control variables that ``listen`` wants to know.
        is_missing: whether a variable without a control variable is surely unknown to the
            library.
        listen: what its output and its controls say.
        suffixes: whether it reads 4k as 4096.
        refuses_words: whether it ends the run at a word that it doesn't know, so that a word
            that passed was understood.
    """

    diagnosing: Mapping[str, str] = field(default_factory=dict)
    control_of: Callable[[str], str | None] = _no_control
    further: tuple[str, ...] = ()
    is_missing: Callable[[str, TraceEvidence], bool] = _nothing_missed
    listen: Callable[[TraceEvidence], TraceVerdict] = _nothing_said
    suffixes: bool = False
    refuses_words: bool = False


def judge_settings(
    library: TracedLibrary, evidence: TraceEvidence
) -> tuple[list[Setting], TraceVerdict]:
    """What became of each variable, and what the library said."""
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


def differing_controls(ranks: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Names of control variables of which ranks hold different values."""
    first, *others = [dict(rank) for rank in ranks] or [{}]
    return frozenset(name for name in first for other in others if other.get(name) != first[name])
