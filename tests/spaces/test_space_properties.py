"""Enumerating, counting, checking and sampling agree with brute force, on random small spaces.

The brute force below reads the document itself: it expands values with its own loops, tries the
whole product, and knows nothing of how the package counts.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from commtune.documents.yaml_document import parse_document
from commtune.errors import SpaceError
from commtune.model import DEFAULT, Configuration
from commtune.spaces.customizing import customize_space
from commtune.spaces.loading import build_space
from commtune.spaces.space import Space

Environment = frozenset[tuple[str, str]]


def expanded(parameter: dict[str, Any]) -> dict[str, dict[str, str]]:
    """What each value sets, by the words of the document."""
    if parameter["kind"] == "group":
        return {choice: dict(setting) for choice, setting in parameter["choices"].items()}
    return {text: {parameter["name"]: text} for text in spelled(parameter)}


def spelled(parameter: dict[str, Any]) -> list[str]:
    match parameter["kind"]:
        case "bool":
            return {"0/1": ["0", "1"], "n/y": ["n", "y"]}[parameter["spelling"]]
        case "choice":
            return list(parameter["values"])
        case "integer":
            low, high = parameter["range"]
            return [str(n) for n in range(low, high + 1) if (n - low) % parameter["step"] == 0]
        case "power-of-two":
            low, high = parameter["range"]
            return [str(2**k) for k in range(20) if low <= 2**k <= high]
        case _:
            return [str(int(size.removesuffix("KiB")) * 1024) for size in parameter["values"]]


def holds(clause: dict[str, list[str]], values: dict[str, str | None]) -> bool:
    def matches(word: str, value: str | None) -> bool:
        if word == "unset":
            return value is None
        return value is not None if word == "set" else value == word

    return all(any(matches(w, values[n]) for w in words) for n, words in clause.items())


def number(value: str | None) -> int | None:
    return int(value) if value is not None and value.lstrip("-").isdigit() else None


def related(relation: dict[str, Any], values: dict[str, str | None]) -> bool:
    if "at_most" in relation:
        low, high = (number(values[name]) for name in relation["at_most"])
        return low is None or high is None or low <= high
    factors = [number(values[name]) for name in relation["product_at_most"]["of"]]
    if any(factor is None for factor in factors):
        return True
    limit: int = relation["product_at_most"]["limit"]
    return math.prod(f for f in factors if f is not None) <= limit


def legal(document: dict[str, Any], values: dict[str, str | None]) -> bool:
    for parameter in document["parameters"]:
        value, clauses = values[parameter["name"]], parameter.get("when", [])
        active = not clauses or any(holds(clause, values) for clause in clauses)
        if not active and value is not None:
            return False
        if active and value is None and not parameter["unset"]:
            return False
    if any(holds(rule["when"], values) for rule in document["forbidden"]):
        return False
    return all(related(relation, values) for relation in document["relations"])


def environment(document: dict[str, Any], values: dict[str, str | None]) -> Environment:
    found: dict[str, str] = {}
    for parameter in document["parameters"]:
        value = values[parameter["name"]]
        if value is not None:
            found |= expanded(parameter)[value]
    return frozenset(found.items())


def everything(document: dict[str, Any]) -> Iterator[dict[str, str | None]]:
    names = [parameter["name"] for parameter in document["parameters"]]
    domains = [[None, *expanded(parameter)] for parameter in document["parameters"]]
    for combination in itertools.product(*domains):
        yield dict(zip(names, combination, strict=True))


def brute_force(document: dict[str, Any]) -> list[Environment]:
    return [environment(document, v) for v in everything(document) if legal(document, v)]


def of(configuration: Configuration) -> Environment:
    return frozenset(configuration.items())


@st.composite
def parameter(draw: st.DrawFn, name: str) -> dict[str, Any]:
    kind = draw(st.sampled_from(["bool", "choice", "integer", "power-of-two", "bytes", "group"]))
    made: dict[str, Any] = {"name": name, "kind": kind, "unset": True}
    if kind == "bool":
        made["spelling"] = draw(st.sampled_from(["0/1", "n/y"]))
    elif kind == "choice":
        words = st.lists(st.sampled_from(["ring", "no", "0644", "1e3"]), min_size=1, unique=True)
        made["values"] = draw(words)
    elif kind == "integer":
        low, step = draw(st.integers(0, 3)), draw(st.integers(1, 3))
        made |= {"range": [low, low + step * draw(st.integers(0, 2))], "step": step}
    elif kind == "power-of-two":
        low = draw(st.integers(0, 3))
        made["range"] = [2**low, 2 ** (low + draw(st.integers(0, 2)))]
    elif kind == "bytes":
        made["values"] = draw(
            st.lists(st.sampled_from(["1KiB", "4KiB", "2KiB"]), min_size=1, unique=True)
        )
    else:
        made["choices"] = {
            "low": {f"{name}_MIN": "1"},
            "both": {f"{name}_MIN": "1", f"{name}_MAX": "2"},
        }
    return made


@st.composite
def clause(draw: st.DrawFn, among: list[dict[str, Any]]) -> dict[str, list[str]]:
    chosen = draw(
        st.lists(st.sampled_from(among), min_size=1, max_size=2, unique_by=lambda p: p["name"])
    )
    made = {}
    for parameter in chosen:
        words = [*expanded(parameter), "set", "unset"]
        made[parameter["name"]] = draw(
            st.lists(st.sampled_from(words), min_size=1, max_size=3, unique=True)
        )
    return made


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.permutations(["A", "B", "C", "D"]))[: draw(st.integers(1, 4))]
    made = [draw(parameter(name)) for name in names]
    for i, one in enumerate(made[1:], 1):
        if draw(st.booleans()):
            one["when"] = draw(st.lists(clause(made[:i]), min_size=1, max_size=2))
            one["unset"] = draw(st.booleans())
    numeric = [p["name"] for p in made if p["kind"] in ("integer", "power-of-two", "bytes")]
    relations: list[dict[str, Any]] = []
    if len(numeric) >= 2 and draw(st.booleans()):
        relations.append({"at_most": numeric[:2], "why": "r"})
    if len(numeric) >= 2 and draw(st.booleans()):
        limit = draw(st.integers(0, 8192))
        relations.append({"product_at_most": {"of": numeric, "limit": limit}, "why": "r"})
    forbidden = [{"when": draw(clause(made)), "why": "f"} for _ in range(draw(st.integers(0, 2)))]
    return {
        "space": 1,
        "name": "random",
        "library": "none",
        "parameters": draw(st.permutations(made)),
        "forbidden": forbidden,
        "relations": relations,
    }


def space_of(document: dict[str, Any]) -> Space:
    return build_space(parse_document(yaml.safe_dump(document), error_class=SpaceError))


def legal_space(document: dict[str, Any]) -> tuple[Space, list[Environment]]:
    """The space and the brute force's answer; skips documents whose default is illegal."""
    expected = brute_force(document)
    assume(frozenset() in expected)
    return space_of(document), expected


def three_numbers(low: int, high: int, limit: int) -> dict[str, Any]:
    """The product of two tells what is left to the third."""
    domain = {"kind": "integer", "range": [low, high], "step": 1, "unset": True}
    return {
        "space": 1,
        "name": "product",
        "library": "none",
        "forbidden": [],
        "parameters": [{"name": name, **domain} for name in "ABC"],
        "relations": [{"product_at_most": {"of": ["A", "B", "C"], "limit": limit}, "why": "r"}],
    }


@given(documents())
@example(three_numbers(1, 3, limit=3))
@example(three_numbers(-2, 2, limit=3))
@settings(max_examples=150)
def test_enumerating_and_counting_agree_with_brute_force(document: dict[str, Any]) -> None:
    space, expected = legal_space(document)
    found = list(space.configurations())
    assert found[0] == DEFAULT
    assert len(found) == len(expected) == space.count()
    assert {of(c) for c in found} == set(expected)
    assert [space.nth(i) for i in range(space.count())] == found


@given(documents())
@settings(max_examples=100)
def test_a_space_without_its_default_is_refused(document: dict[str, Any]) -> None:
    inside = frozenset() in brute_force(document)
    try:
        space_of(document)
    except SpaceError as e:
        assert "the default is not in the space" in e.problem
        assert not inside
    else:
        assert inside


@given(documents())
@settings(max_examples=100)
def test_check_accepts_exactly_the_legal_configurations(document: dict[str, Any]) -> None:
    space, expected = legal_space(document)
    for values in itertools.islice(everything(document), 300):
        configuration = dict(environment(document, values))
        problems = space.check(configuration)
        assert (not problems) == (frozenset(configuration.items()) in expected), problems


@given(documents())
@settings(max_examples=60)
def test_assignments_and_configurations_correspond(document: dict[str, Any]) -> None:
    space, _ = legal_space(document)
    for configuration in itertools.islice(space.configurations(), 200):
        assignment = space.assignment(configuration)
        assert space.configuration(assignment) == configuration
        assert space.is_allowed(assignment)
        for parameter in space.parameters:
            if not space.active(parameter, assignment):
                assert assignment[parameter.name] is None


@given(documents(), st.integers(0, 2**32))
@settings(max_examples=60)
def test_samples_are_legal(document: dict[str, Any], seed: int) -> None:
    space, expected = legal_space(document)
    rng = random.Random(seed)
    assert {of(space.sample(rng)) for _ in range(20)} <= set(expected)


def test_samples_are_uniform_in_spite_of_conditions() -> None:
    # 1 + 1 + 8 configurations; drawing value by value would give the switch's "on" half.
    document = {
        "space": 1, "name": "tilted", "library": "none", "forbidden": [], "relations": [],
        "parameters": [
            {"name": "A", "kind": "bool", "spelling": "0/1", "unset": True},
            {"name": "B", "kind": "integer", "range": [1, 7], "step": 1, "when": {"A": ["1"]}},
        ],
    }  # fmt: skip
    space, rng, draws = space_of(document), random.Random(1), 10_000
    counts: dict[Configuration, int] = dict.fromkeys(space.configurations(), 0)
    for _ in range(draws):
        counts[space.sample(rng)] += 1
    expected = draws / space.count()
    chi_square = sum((seen - expected) ** 2 / expected for seen in counts.values())
    assert space.count() == 10
    assert chi_square < 27.9  # 99.9 % point for 9 degrees of freedom


@given(documents(), st.data())
@settings(max_examples=60)
def test_narrowing_keeps_what_has_the_kept_values(
    document: dict[str, Any], data: st.DataObject
) -> None:
    space, _ = legal_space(document)
    chosen = data.draw(st.sampled_from(document["parameters"]))
    kept = data.draw(st.lists(st.sampled_from(sorted(expanded(chosen))), min_size=1, unique=True))
    name = chosen["name"]
    expected = {
        environment(document, values)
        for values in everything(document)
        if legal(document, values) and values[name] in (None, *kept)
    }
    narrowed = customize_space(space, narrow={name: kept})
    assert {of(c) for c in narrowed.configurations()} == expected
    assert narrowed.count() == len(expected)


def test_counting_needs_no_enumeration() -> None:
    parameters = [{"name": f"V{i}", "kind": "integer", "range": [1, 9]} for i in range(40)]
    document = {
        "space": 1, "name": "huge", "library": "none", "parameters": parameters,
        "relations": [{"at_most": [f"V{i}", f"V{i + 1}"], "why": "r"} for i in range(0, 40, 2)],
    }  # fmt: skip
    space = space_of(document)
    # A pair has both unset or one set, or two ordered numbers: 1 + 2 * 9 + 45.
    assert space.count() == 64**20
    assert not space.check(space.sample(random.Random(0)))


def test_products_beyond_their_limit_are_all_one() -> None:
    names = [f"V{i}" for i in range(12)]
    document = {
        "space": 1,
        "name": "product",
        "library": "none",
        "parameters": [{"name": name, "kind": "integer", "range": [1, 9]} for name in names],
        "relations": [{"product_at_most": {"of": names, "limit": 1}, "why": "r"}],
    }
    # Of the assignments that set all, only that of ones is legal.
    assert space_of(document).count() == 10**12 - 9**12 + 1


def test_without_parameters_there_is_the_default_alone() -> None:
    space = Space("none", "1", "none", ())
    assert space.count() == 1
    assert list(space.configurations()) == [DEFAULT]
    for number in (-1, 1):
        with pytest.raises(IndexError):
            space.nth(number)
