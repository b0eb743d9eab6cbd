"""Simplifies configurations by what the library did with them, as untimed traces show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from commtune.model import DEFAULT, Configuration, Execution
from commtune.model.conclusion import Ablation
from commtune.tuner.effective.settings import (
    Told,
    effective_configuration,
    find_at_default,
    group_executions,
    settings_of,
)
from commtune.tuner.execution.session import Session

if TYPE_CHECKING:  # who reads stored campaigns doesn't wait for it
    from commtune.spaces.space import Space


def as_executed(
    session: Session, configuration: Configuration, known: Sequence[Configuration]
) -> Configuration:
    """Returns the simplest configuration that is known to behave as this one does.

    Drops variables that the library ignored or replaced, and values that it holds by default.
    Returns the default, or a known configuration, if that behaves the same, and the configuration
    as it is if there is no trace, as in a replay.
    """
    execution = session.trace(configuration)
    if execution is None or configuration.is_default:
        return configuration
    if not is_credited(session.plan.space, execution):
        session.reporter.say(f"did not take effect as set: {configuration}: {execution.why}")
        rest = _credited_configuration(execution)
        if rest == configuration or session.plan.space.check(rest):
            return DEFAULT
        return as_executed(session, rest, known)
    simpler = [*known, *_list_simpler(session, execution)]
    became = _find_equivalent(session, execution, simpler)
    # Without one value, another that acts only beside it may be needless as well.
    return configuration if became == configuration else as_executed(session, became, known)


def is_credited(space: Space, execution: Execution) -> bool:
    """Whether results may be credited to a configuration as it was requested.

    Also if variables without an effect can't be left out, as parts of a choice that sets several
    variables: they change nothing, such as switching off what a library was built without.
    """
    rest = effective_configuration(execution)
    return execution.followed.is_credited or (
        rest == _credited_configuration(execution) and bool(space.check(rest))
    )


def _credited_configuration(execution: Execution) -> Configuration:
    """Returns the configuration without variables that were ignored or replaced.

    How to request the value that the library used instead isn't known, so a replaced variable is
    left out, and the rest has to be measured without it.
    """
    settings = settings_of(execution)
    kept = effective_configuration(execution).items()
    replaced = {name for name, setting in settings.items() if setting.told is Told.REPLACED}
    return Configuration({name: value for name, value in kept if name not in replaced})


def _list_simpler(session: Session, execution: Execution) -> list[Configuration]:
    """Lists the configuration without all, and without each, of the values held by default."""
    default = session.trace(DEFAULT)
    if default is None:
        return []
    space, asked = session.plan.space, execution.configuration
    needless = find_at_default(execution, default) | (
        asked.keys() - effective_configuration(execution).keys()
    )
    each = {
        name: rest
        for name, rest in space.parameter_units(asked).items()
        if asked.keys() - rest.keys() <= needless
    }
    together = space.without_parameters(asked, list(each)) if len(each) > 1 else None
    return [*([] if together is None else [together]), *each.values()]


def _find_equivalent(
    session: Session, execution: Execution, simpler: Sequence[Configuration]
) -> Configuration:
    by_key = {one.key: one for one in (DEFAULT, *simpler)}
    traces = [found for one in by_key.values() if (found := session.trace(one))]
    became = group_executions([*traces, execution])[-1].became
    return by_key.get(became or "", execution.configuration)


def as_ablated(ablation: Ablation, became: Configuration) -> Ablation:
    """Returns an ablation with its result replaced by a simpler one that behaves the same."""
    if became == ablation.after:
        return ablation
    kept = [
        replace(effect, kept=effect.kept and not effect.values.keys().isdisjoint(became))
        for effect in ablation.variables
    ]
    return replace(ablation, after=became, variables=tuple(kept))
