"""Builds parameters and constraints from a validated document.

Checks what the types of the document can't express.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from commtune.documents.nearest import quote_value, suggest_nearest
from commtune.documents.quantities import list_multiples, whole_number
from commtune.documents.yaml_document import Place
from commtune.errors import DocumentError
from commtune.formatting import format_size
from commtune.spaces import schema
from commtune.spaces.catalogue.loading import look_up
from commtune.spaces.parameter import (
    AtMost,
    Clause,
    Constraint,
    Forbidden,
    Kind,
    Parameter,
    ProductAtMost,
    Restricted,
    Value,
)

#: Keywords of conditions; no value may be spelled like them.
_SET, UNSET = "set", "unset"
_MOST_VALUES = 10_000  # of a parameter
_MOST_BYTES = 128 * 1024  # of NAME=VALUE and a NUL, for Linux to start a program with it

_Spelled = dict[str, int | None]  # a value as the library reads it, and its number
_OfNumbers = schema.IntegerParameter | schema.PowerOfTwoParameter | schema.BytesParameter


def build_parameter(model: schema.ParameterDocument, at: Place) -> Parameter:
    """Builds a parameter with all its values, but without conditions (see `resolve_clause`).

    Raises:
        DocumentError: no values or duplicates, an invalid range, or a risk without an opt-in.
    """
    if isinstance(model, schema.GroupParameter):
        settings = _check_choices(model, at)
        numbers: dict[str, int] = {}
    else:
        spelled = _spell_values(model, at)
        settings = {text: {model.name: text} for text in spelled}
        numbers = {text: number for text, number in spelled.items() if number is not None}
    parameter = Parameter(
        name=model.name,
        kind=Kind(model.kind),
        values=_list_searched(model, settings),
        settings=settings,
        numbers=numbers,
        unset=model.unset,
        source=model.source,
        risks=tuple(model.risks),
        opt_in=model.opt_in,
        restricted=tuple(Restricted(r.value, tuple(r.risks), r.why) for r in model.restricted),
        note=model.note,
        default=model.default,
        applies_to=tuple(model.applies_to),
        size=model.size,
    )
    _check_parameter(parameter, model, at)
    return parameter


def refuse_long(setting: Mapping[str, str], at: Place) -> None:
    """Refuses variables that are too long to start a program with, by a DocumentError."""
    for name, value in setting.items():
        if len(f"{name}={value}".encode()) >= _MOST_BYTES:
            problem = f"{quote_value(name)} and its value have more bytes than Linux takes"
            raise at.error(problem, hint=f"fewer than {format_size(_MOST_BYTES)} together")


def _list_searched(model: schema.ParameterDocument, settings: Iterable[str]) -> tuple[Value, ...]:
    restricted = {r.value for r in model.restricted}
    values = [value for value in settings if value not in restricted]
    return (None, *values) if model.unset else tuple(values)


def _check_parameter(parameter: Parameter, model: schema.ParameterDocument, at: Place) -> None:
    for word in (_SET, UNSET):
        if word in parameter.settings:
            raise (at / "values").error(
                f"{parameter.name}: the value {quote_value(word)} is a word of conditions",
                hint="choose another name",
            )
    for setting in parameter.settings.values():
        refuse_long(setting, at)
    needing = [risk for risk in parameter.risks if risk.needs_opt_in]
    if needing and not parameter.opt_in:
        raise (at / "risks").error(
            f"{parameter.name} has the risk {quote_value(needing[0])} without an opt-in",
            hint="add `opt_in: true`, or put the value at fault under `restricted`",
        )
    if not any(value is not None for value in parameter.values):
        raise at.error(f"{parameter.name} has no value to search", hint="give it at least one")
    for i, restricted in enumerate(model.restricted):
        if restricted.value not in parameter.settings:
            raise illegal_value(parameter, restricted.value, at / "restricted" / i / "value")


def _check_choices(model: schema.GroupParameter, at: Place) -> dict[str, Mapping[str, str]]:
    seen: dict[tuple[tuple[str, str], ...], str] = {}
    for choice, setting in model.choices.items():
        key = tuple(sorted(setting.items()))
        if key in seen:
            raise (at / "choices" / choice).error(
                f"{model.name}: choice {quote_value(choice)} sets the same as "
                f"{quote_value(seen[key])}",
                hint="remove one of them",
            )
        seen[key] = choice
    return dict(model.choices)


def _spell_values(model: schema.ParameterDocument, at: Place) -> _Spelled:
    if isinstance(model, schema.BoolParameter):
        return dict.fromkeys(model.spelling.split("/"))
    if isinstance(model, schema.ChoiceParameter):
        _refuse_doubles(model.values, at / "values")
        return dict.fromkeys(model.values)
    assert not isinstance(model, schema.GroupParameter)
    written = model.written if isinstance(model, schema.BytesParameter) else "plain"
    spelled: _Spelled = {_write_number(n, written): n for n in _list_numbers(model, at)}
    return _add_special(spelled, model.also, at / "also")


def _add_special(numbers: _Spelled, special: Sequence[str], at: Place) -> _Spelled:
    _refuse_doubles([*numbers, *special], at, first=len(numbers))
    whole = {text: n for text in special if (n := whole_number(text)) is not None}
    words: _Spelled = {text: None for text in special if text not in whole}
    ascending = sorted((numbers | whole).items(), key=lambda item: item[1] or 0)
    return words | dict(ascending)


def _write_number(number: int, written: str) -> str:
    for power, letter in ((3, "G"), (2, "M"), (1, "K")):
        if written != "plain" and number and number % 1024**power == 0:
            text = f"{number // 1024**power}{letter}"
            return text.lower() if written == "k" else text
    return str(number)


def _list_numbers(model: _OfNumbers, at: Place) -> list[int]:
    values = None if isinstance(model, schema.PowerOfTwoParameter) else model.values
    if (values is None) == (model.range is None):
        raise at.error(f"{model.name} needs either `values` or `range`", hint="keep one of them")
    if values is not None:
        _refuse_doubles([str(v) for v in values], at / "values")
        return sorted(values)
    assert model.range is not None
    low, high = model.range
    if low > high:
        raise (at / "range").error(
            f"{model.name}: the range {low} to {high} is empty", hint=f"nearest: [{high}, {low}]"
        )
    return _list_range(model, low, high, at / "range")


def _list_range(model: _OfNumbers, low: int, high: int, at: Place) -> list[int]:
    if isinstance(model, schema.IntegerParameter):
        count = (high - low) // model.step + 1
        if count > _MOST_VALUES:
            raise at.error(f"{model.name} has {count:,} values", hint="widen the step")
        numbers = list(range(low, high + 1, model.step))
    else:
        factor = model.factor if isinstance(model, schema.BytesParameter) else 2
        if isinstance(model, schema.PowerOfTwoParameter):
            _require_power_of_two(model.name, low, at / 0)
        numbers = list_multiples(low, high, factor)
    if numbers[-1] != high:
        raise at.error(
            f"{model.name}: the range from {low} does not meet its end {high}",
            hint=f"nearest end: {numbers[-1]}",
        )
    return numbers


def _require_power_of_two(name: str, number: int, at: Place) -> None:
    if number < 1 or number & (number - 1):
        near = 1 << max(number, 1).bit_length() - 1
        raise at.error(f"{name}: {number} is not a power of two", hint=f"nearest: {near}")


def _refuse_doubles(values: Sequence[str], at: Place, first: int = 0) -> None:
    seen: set[str] = set()
    for i, value in enumerate(values):
        if value in seen:
            raise (at / (i - first)).error(
                f"the value {quote_value(value)} occurs twice", hint="remove one"
            )
        seen.add(value)


def illegal_value(parameter: Parameter, value: str, at: Place) -> DocumentError:
    return at.error(
        f"{quote_value(value)} is not a value of {parameter.name}",
        hint=nearest_value(parameter, value),
    )


def nearest_value(parameter: Parameter, value: str) -> str:
    """Returns a hint with the legal value nearest to a wrong one, by number if both have one."""
    legal = [v for v in parameter.values if v is not None]
    if meant := _read_as(parameter, value):
        return _describe_spelling(parameter, value, meant)
    wanted = _as_number(value)
    numbers = {v: parameter.numbers[v] for v in legal if v in parameter.numbers}
    if wanted is not None and numbers:
        best = min(numbers, key=lambda v: abs(numbers[v] - wanted))
        size = f" ({format_size(numbers[best])})" if parameter.kind is Kind.BYTES else ""
        return f"nearest: {best}{size}"
    return suggest_nearest(value, legal)


def _read_as(parameter: Parameter, written: str) -> str:
    """Returns the value that the library reads a legacy spelling as; empty for other text."""
    if len(parameter.variables) > 1:
        return ""
    (name,) = parameter.variables
    spellings = (known.variable.read_as for known in look_up(name).known)
    return next((found[written] for found in spellings if written in found), "")


def _describe_spelling(parameter: Parameter, written: str, meant: str) -> str:
    """Returns a hint with the only spelling of a value in a space.

    With two spellings, the results of one value would be split between two.
    """
    said = f"the library reads {written} as {meant}"
    if meant in parameter.values:
        return f"write {meant}: {said}"
    if meant in {one.value for one in parameter.restricted}:
        return f'{said}, which needs an opt-in: opt_in: ["{parameter.name}={meant}"]'
    return f"{said}; {suggest_nearest(meant, [v for v in parameter.values if v is not None])}"


def _as_number(text: str) -> int | None:
    number, letter = text.strip(), ""
    for suffix in ("iB", "B"):
        number = number.removesuffix(suffix)
    if number[-1:].upper() in ("K", "M", "G"):
        number, letter = number[:-1], number[-1].upper()
    whole = whole_number(number.strip())
    power = "KMG".index(letter) + 1 if letter else 0
    return None if whole is None else whole << (10 * power)


def resolve_clause(
    when: Mapping[str, Sequence[str]],
    known: Mapping[str, Parameter],
    at: Place,
) -> Clause:
    """Builds a clause, with the keywords `set` and `unset` replaced by values.

    Raises:
        DocumentError: a parameter is not in the space, or doesn't have the value.
    """
    allowed: dict[str, frozenset[Value]] = {}
    for name, words in when.items():
        parameter = _find_parameter(name, known, at / name)
        values: set[Value] = set()
        for i, word in enumerate(words):
            values |= _resolve_word(word, parameter, at / name / i)
        allowed[name] = frozenset(values)
    return Clause(allowed)


def _resolve_word(word: str, parameter: Parameter, at: Place) -> set[Value]:
    if word == UNSET:
        return {None}
    if word == _SET:
        return set(parameter.settings)
    value = as_value(parameter, word)
    if value is None:
        raise illegal_value(parameter, word, at)
    return {value}


def as_value(parameter: Parameter, word: str) -> str | None:
    """Returns the value that a word stands for, sizes in any spelling; ``None`` for no value."""
    if word in parameter.settings:
        return word
    if parameter.kind is not Kind.BYTES:
        return None
    number = _as_number(word)
    return next((v for v, n in parameter.numbers.items() if n == number), None)


def as_read(parameter: Parameter, word: str) -> str | None:
    """Returns the same as ``as_value``, or for a legacy spelling what the library reads it as."""
    value = as_value(parameter, word)
    meant = "" if value is not None else _read_as(parameter, word)
    return meant if meant and meant in parameter.values else value


def _find_parameter(name: str, known: Mapping[str, Parameter], at: Place) -> Parameter:
    if name not in known:
        raise at.error(
            f"{quote_value(name)} is not a parameter of the space",
            hint=suggest_nearest(name, known),
        )
    return known[name]


def build_constraints(
    forbidden: Iterable[schema.ForbiddenDocument],
    relations: Iterable[schema.RelationDocument],
    known: Mapping[str, Parameter],
    at: Place,
) -> tuple[Constraint, ...]:
    """Builds the constraints of a document.

    Raises:
        DocumentError: as `resolve_clause`; or a relation names parameters without numbers.
    """
    built: list[Constraint] = []
    for i, rule in enumerate(forbidden):
        clause = resolve_clause(rule.when, known, at / "forbidden" / i / "when")
        built.append(Forbidden(clause, rule.why))
    for i, relation in enumerate(relations):
        built.append(_build_relation(relation, known, at / "relations" / i))
    return tuple(built)


def _build_relation(
    model: schema.RelationDocument,
    known: Mapping[str, Parameter],
    at: Place,
) -> Constraint:
    if (model.at_most is None) == (model.product_at_most is None):
        raise at.error("a relation needs either `at_most` or `product_at_most`", hint="keep one")
    if model.at_most is not None:
        numbers = _collect_numbers(model.at_most, known, at / "at_most")
        return AtMost(*model.at_most, numbers, model.why, model.times)
    assert model.product_at_most is not None
    of = tuple(model.product_at_most.of)
    numbers = _collect_numbers(of, known, at / "product_at_most" / "of")
    return ProductAtMost(of, model.product_at_most.limit, numbers, model.why)


def _collect_numbers(
    names: Sequence[str], known: Mapping[str, Parameter], at: Place
) -> dict[str, Mapping[str, int]]:
    for i, name in enumerate(names):
        if not _find_parameter(name, known, at / i).numbers:
            raise (at / i).error(f"{name} has no numbers", hint="relations are between numbers")
    return {name: known[name].numbers for name in names}
