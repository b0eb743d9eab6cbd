"""Fills in what a space file omits about its variables: values, risks and conditions.

These come from the catalogues that the file names under ``facts``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import yaml

from commtune.documents.nearest import find_nearest, quote_value
from commtune.documents.quantities import list_multiples, parse_bytes, read_truth, whole_number
from commtune.documents.yaml_document import Document, Place
from commtune.formatting import list_first
from commtune.spaces.catalogue.checking import list_misspelled_names
from commtune.spaces.catalogue.loading import KnownVariable, add_variables, look_up
from commtune.spaces.parameter import Clause, Parameter, Risk, Value

if TYPE_CHECKING:
    from commtune.spaces.catalogue.schema import Need, Range, Variable
    from commtune.spaces.space import Space

_RISKS = {
    "hang": Risk.HANG,
    "wrong-result": Risk.WRONG_RESULT,
    "lost-data": Risk.WRONG_RESULT,
    "harm-to-others": Risk.HARM_TO_OTHERS,
    "abort": Risk.ABORT,
    "fails-to-start": Risk.ABORT,
}
_SPELLINGS = ("0/1", "n/y", "no/yes", "false/true", "off/on", "disable/enable")
_WHERE = {"inside-node": "inside a node", "between-nodes": "between nodes", "both": ""}
#: Libraries that send point-to-point messages for operations that they have no collective for.
_SENDING = ("nccl", "rccl")
_MOST_VALUES = 8  # of a range, where the space does not name its values

_Allowed = dict[str, frozenset[Value]]


def facts_of(document: Document) -> dict[str, KnownVariable]:
    """Reads the catalogues that a space names under ``facts``: their facts by variable.

    The first catalogue with a variable takes precedence.

    Raises:
        DocumentError: a catalogue doesn't exist.
    """
    data = document.data if isinstance(document.data, dict) else {}
    named = data.get("facts")
    facts: dict[str, KnownVariable] = {}
    for i, library in enumerate(named if isinstance(named, list) else []):
        with document.placing("facts", i):
            add_variables(facts, str(library))
    return facts


def complete_document(document: Document, facts: Mapping[str, KnownVariable]) -> Any:
    """Returns the data of a space file, with facts filled in where its parameters omit them."""
    data = document.data
    if not facts or not isinstance(data, dict) or not isinstance(data.get("parameters"), list):
        return data
    filled = []
    for i, written in enumerate(data["parameters"]):
        if not isinstance(written, dict):
            filled.append(written)
            continue
        fact = facts.get(str(written.get("name")))
        if fact is None and "kind" not in written and "name" in written:
            near = find_nearest(str(written["name"]), facts, cutoff=0.8)
            also = f"or mean {near}" if near else "or look it up: commtune spaces explain NAME"
            raise document.error(
                f"{quote_value(written['name'])} has no kind, and no catalogue under 'facts' "
                "knows it",
                ("parameters", i, "name"),
                hint=f"add `kind: ...`, {also}",
            )
        filled.append(written if fact is None else _fill_in(written, fact, document, i))
    return {**data, "parameters": filled}


def _fill_in(
    written: Mapping[str, Any], fact: KnownVariable, document: Document, i: int
) -> dict[str, Any]:
    said = dict(written)
    if not {"kind", "values", "range"} & said.keys():
        said |= _propose_values(fact)
        if "kind" not in said:
            raise document.error(
                f"{quote_value(said['name'])} has no values that a catalogue could propose",
                ("parameters", i),
                hint="name them: `values: [...]`",
            )
    said.setdefault("kind", _choose_kind(fact.variable, said))
    said.setdefault("default", fact.variable.default or "chosen by the library")
    said.setdefault("source", fact.catalogue.list_sources(fact.variable))
    said.setdefault("note", " ".join(f"{fact.variable.meaning} {fact.variable.caution}".split()))
    said.setdefault("applies_to", _list_uses(fact))
    return said | _find_risks(fact.variable, said)


def _propose_values(fact: KnownVariable) -> dict[str, Any]:
    """Returns kind and values as the catalogue proposes them, including restricted ones."""
    variable = fact.variable
    words = [*variable.values, *variable.restricted]
    if variable.type == "bool" and not variable.restricted:
        spelling = next((s for s in _SPELLINGS if set(s.split("/")) == set(words)), "0/1")
        return {"kind": "bool", "spelling": spelling}
    if variable.type in ("choice", "bool") or (variable.type == "text" and words):
        return declare_values(words)
    if variable.range is None or variable.type not in ("integer", "bytes"):
        return {}
    numbers = _list_steps(variable.range, sizes=variable.type == "bytes")
    if not numbers:
        return {}
    return {"kind": variable.type, "values": numbers, "also": list(variable.range.also)}


def list_remarks(space: Space) -> list[str]:
    """Returns remarks on names that are most likely misspelled, and on numbers not known."""
    numbers = (_describe_unknown_numbers(parameter) for parameter in space.parameters)
    return [*list_misspelled_names(space.variables), *filter(None, numbers)]


def _describe_unknown_numbers(parameter: Parameter) -> str:
    """Returns a remark on numbers that the catalogues lack; empty if none are, or may be."""
    entries = [entry.variable for entry in look_up(parameter.name).known]
    legal = [word for one in entries for word in (*one.values, *one.restricted, *one.read_as)]
    # Of words, many lists are incomplete; in some versions algorithms have names.
    if not all(one.type == "choice" and all(map(_is_whole, one.values)) for one in entries):
        return ""
    strange = [v for v in parameter.values if v and _is_whole(v) and v not in legal]
    if not legal or not strange:
        return ""
    return f"{parameter.name}: no value {list_first(strange)} is known, only {', '.join(legal)}"


def declare_variable(name: str) -> str:
    """Writes an ``extend`` entry for a variable, with kind and values from a catalogue."""
    known = look_up(name).known
    said = _propose_values(known[0]) if known else {}
    entry = {"name": name, **{key: value for key, value in said.items() if value}}
    text = yaml.safe_dump(entry, default_flow_style=True, sort_keys=False, width=10_000).strip()
    return f"extend: [{text if said else text[:-1] + ', ...}'}]"


def declare_values(words: Sequence[str]) -> dict[str, Any]:
    """Returns the keys of a space file for a parameter with these values."""
    if all(_is_whole(word) for word in words):
        return {"kind": "integer", "values": [int(word) for word in words]}
    return {"kind": "choice", "values": list(words)}


def _is_whole(word: str) -> bool:
    # Not 007, in whose place 7 would be written.
    return str(whole_number(word)) == word


def _list_steps(range_: Range, *, sizes: bool) -> list[int]:
    """Lists numbers by the smallest factor with which they are few enough to search."""
    try:
        least, greatest = (
            parse_bytes(text) if sizes else int(text) for text in (range_.least, range_.greatest)
        )
    except ValueError:
        return []
    if least < 0:
        return []
    zero, first = ([], least) if least else ([0], 1024 if sizes else 1)
    for factor in (2, 4, 8, 16, 32, 64):
        numbers = [*zero, *list_multiples(first, greatest, factor)]
        if len(numbers) <= _MOST_VALUES:
            return numbers
    return []


def _choose_kind(variable: Variable, said: Mapping[str, Any]) -> str:
    if variable.type in ("bytes", "integer"):
        return variable.type
    values = said.get("values")
    whole = isinstance(values, list) and all(_is_whole(str(value)) for value in values)
    return "integer" if whole or "range" in said else "choice"


def _list_uses(fact: KnownVariable) -> list[str]:
    variable = fact.variable
    kinds = [str(kind) for kind in variable.operations]
    if kinds == ["point-to-point"] and fact.catalogue.library in _SENDING:
        return ["ping-pong", "alltoall"]
    where = _WHERE[variable.scope]
    return [", ".join([*(kind for kind in kinds if kind != "all"), where]).strip(", ") or "all"]


def _find_risks(variable: Variable, said: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keys about risks and opt-ins that the space file omits."""
    risks = list(dict.fromkeys(_RISKS[d] for d in variable.dangers if d in _RISKS))
    found: dict[str, Any] = {}
    values = said.get("values")
    words = [str(value) for value in values] if isinstance(values, list) else []
    restricted = [value for value in variable.restricted if value in words]
    if "restricted" not in said and restricted:
        grave = [str(r) for r in risks if r.needs_opt_in] or ["abort"]
        why = " ".join((variable.caution or variable.meaning).split())
        found["restricted"] = [{"value": v, "risks": grave, "why": why} for v in restricted]
    if "risks" in said:
        return found
    # Where single values are restricted, the others are safe. An explicit `opt_in: false` in the
    # space file says that all are.
    spared = bool(variable.restricted) or said.get("opt_in") is False
    grave_ones = [risk for risk in risks if risk.needs_opt_in and not spared]
    found["risks"] = [str(r) for r in risks if r in grave_ones or not r.needs_opt_in]
    careful = variable.level in ("danger", "forbidden") and not spared
    if "opt_in" not in said and (grave_ones or careful):
        found["opt_in"] = True
    return found


def add_conditions(
    parameter: Parameter,
    facts: Mapping[str, KnownVariable],
    space: Space,
    at: Place,
) -> Parameter:
    """Returns the parameter with the condition that its catalogue gives, unless it has one.

    Args:
        space: the space whose parameters and pins conditions may refer to.
        at: the place of the parameter in its document.

    Raises:
        DocumentError: no configuration of the space meets the condition.
    """
    fact = facts.get(parameter.name)
    if parameter.when or fact is None:
        return parameter
    always = _find_allowed(fact.variable.needs, facts, space)
    choices = [_find_allowed([need], facts, space) for need in fact.variable.needs_any] or [{}]
    clauses = [_join_allowed(always, choice) for choice in choices if choice is not None]
    if always is None or not clauses:
        needs = [*fact.variable.needs, *fact.variable.needs_any]
        raise at.error(
            f"{parameter.name} has no effect: {'; '.join(map(str, needs))}",
            hint="add that variable, pin it, or leave this one out",
        )
    if any(not clause for clause in clauses):
        return parameter
    return replace(parameter, when=tuple(Clause(clause) for clause in clauses if clause))


def idle_under(space: Space, name: str, value: str) -> tuple[str, ...]:
    """Lists the parameters that have no effect while a variable has a value, by the catalogues.

    Includes parameters that need an opt-in.
    """
    catalogues = sorted(
        (known.catalogue for known in look_up(name).known),
        key=lambda catalogue: catalogue.library != space.library,
    )
    variables: dict[str, Variable] = {}
    for catalogue in catalogues:
        variables = {**catalogue.variables, **variables}
    return tuple(
        parameter.name
        for parameter in (*space.parameters, *space.left_out.values())
        if all(_is_idle(variables.get(v), name, value) for v in parameter.variables)
    )


def _is_idle(variable: Variable | None, name: str, value: str) -> bool:
    """Whether a variable needs another value of the one with this name."""
    if variable is None:
        return False
    always, choices = (
        [need.variable == name and not _meets(need, value) for need in needs]
        for needs in (variable.needs, variable.needs_any)
    )
    return any(always) or (bool(choices) and all(choices))


def _find_allowed(
    needs: Sequence[Need], facts: Mapping[str, KnownVariable], space: Space
) -> _Allowed | None:
    """Returns the values that all needs together allow: empty for always, ``None`` for never."""
    allowed: _Allowed = {}
    for need in needs:
        fact = facts.get(need.variable)
        default = fact.variable.default if fact is not None else None
        pinned = space.pinned.get(need.variable)
        # A parameter that the space searches or pins decides by its values, any other variable by
        # the one value that it has in every run.
        target = space.declared.get(need.variable)
        if target is None:
            if not _meets(need, pinned if pinned is not None else default):
                return None
            continue
        values: set[Value] = {value for value in target.settings if _meets(need, value)}
        if _meets(need, default):
            values.add(None)
        if values == {None, *target.settings}:
            continue
        if not values:
            return None
        allowed[need.variable] = frozenset(values) & allowed.get(need.variable, frozenset(values))
    return allowed


def _join_allowed(always: _Allowed | None, choice: _Allowed) -> _Allowed:
    joined = dict(always or {})
    for name, values in choice.items():
        joined[name] = values & joined.get(name, values)
    return joined


def _meets(need: Need, value: str | None) -> bool:
    """Whether a value of the needed variable meets a need; ``None`` is an unknown default."""
    if value is None:
        return need.none_of is not None
    if need.above is not None:
        number = whole_number(value)
        return number is not None and number > need.above
    if need.none_of is not None:
        return not any(_is_same(value, other) for other in need.none_of)
    return any(_is_same(value, other) for other in need.one_of or ())


def _is_same(one: str, other: str) -> bool:
    truth = read_truth(one)
    return one.casefold() == other.casefold() or (truth is not None and truth is read_truth(other))
