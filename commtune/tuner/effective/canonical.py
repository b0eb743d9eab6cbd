"""What a configuration comes to, by untimed runs that show what the library made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from commtune.model import DEFAULT, Configuration, Execution
from commtune.model.conclusion import Ablation
from commtune.tuner.effective.settings import (
    Told,
    at_default,
    effective_configuration,
    group_executions,
    settings_of,
)
from commtune.tuner.execution.session import Session

if TYPE_CHECKING:  # who reads stored campaigns doesn't wait for it
    from commtune.spaces.space import Space


def as_executed(
    session: Session, configuration: Configuration, known: Sequence[Configuration]
) -> Configuration:
    """The simplest configuration that is known to behave as this one does.

    Without what the library ignored or replaced, and without what it holds by itself anyway; the
    default, or one of those known, where it behaves as these do. The same where nothing can be
    told, as of a replay.
    """
    execution = session.trace(configuration)
    if execution is None or configuration.is_default:
        return configuration
    if not is_credited(session.plan.space, execution):
        session.reporter.say(f"not credited as requested: {configuration}: {execution.why}")
        rest = _credited_configuration(execution)
        if rest == configuration or session.plan.space.check(rest):
            return DEFAULT
        return as_executed(session, rest, known)
    simpler = [*known, *_plain(session, execution)]
    became = _became(session, execution, simpler)
    # With a value that matters only beside others, the next may be needless as well.
    return configuration if became == configuration else as_executed(session, became, known)


def is_credited(space: Space, execution: Execution) -> bool:
    """Whether results may be put down to a configuration as it was asked for.

    So they may where what had no effect can't be left out, as a part of a choice of several
    variables: it changes nothing, such as switching off what a library was built without.
    """
    rest = effective_configuration(execution)
    return execution.followed.is_credited or (
        rest == _credited_configuration(execution) and bool(space.check(rest))
    )


def _credited_configuration(execution: Execution) -> Configuration:
    """What results may be put down to: without what was ignored and without what was replaced.

    What it would take to ask for a value that the library put in another's place isn't known, so
    such a variable is left out here, and the rest has to be measured without it.
    """
    settings = settings_of(execution)
    kept = effective_configuration(execution).items()
    replaced = {name for name, setting in settings.items() if setting.told is Told.REPLACED}
    return Configuration({name: value for name, value in kept if name not in replaced})


def _plain(session: Session, execution: Execution) -> list[Configuration]:
    """The configuration without all, and without each, of what asks for the library's default."""
    default = session.trace(DEFAULT)
    if default is None:
        return []
    space = session.plan.space
    asked = execution.configuration.keys()
    needless = at_default(execution, default) | (asked - effective_configuration(execution).keys())
    names = [
        name
        for name in space.parameter_units(execution.configuration)
        if (rest := space.without_parameters(execution.configuration, [name])) is not None
        and asked - rest.keys() <= needless
    ]
    together = space.without_parameters(execution.configuration, names) if len(names) > 1 else None
    each = [space.without_parameters(execution.configuration, [name]) for name in names]
    return [one for one in (together, *each) if one is not None]


def _became(
    session: Session, execution: Execution, simpler: Sequence[Configuration]
) -> Configuration:
    by_key = {one.key: one for one in (DEFAULT, *simpler)}
    traces = [found for one in by_key.values() if (found := session.trace(one))]
    became = group_executions([*traces, execution])[-1].became
    return by_key.get(became or "", execution.configuration)


def as_ablated(ablation: Ablation, became: Configuration) -> Ablation:
    """An ablation that goes on to what its result comes to."""
    if became == ablation.after:
        return ablation
    kept = [
        replace(effect, kept=effect.kept and not effect.values.keys().isdisjoint(became))
        for effect in ablation.variables
    ]
    return replace(ablation, after=became, variables=tuple(kept))
