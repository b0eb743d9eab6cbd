"""The shipped catalogue: valid, sourced, in step with its JSON Schema and the shipped spaces."""

from __future__ import annotations

from importlib import resources
from typing import Any

import jsonschema
import pytest
import yaml
from catalogue_checks import build_catalogue
from json_schemas import check_by_schema

from commtune.documents.yaml_document import load_shipped
from commtune.spaces.catalogue.loading import (
    _as_numbers,
    _names_in,
    list_libraries,
    load_catalogue,
    look_up,
    variable_prefixes,
)
from commtune.spaces.catalogue.schema import Catalogue, Variable
from commtune.spaces.catalogue.words import (
    Danger,
    KnownFrom,
    Level,
    Operations,
    Role,
    Scope,
    Wrong,
)
from commtune.spaces.loading import list_presets, load_space

FOLDER = resources.files("commtune.spaces") / "catalogue"
#: What is said of a variable in words, which must be there and not be a copy of another's.
FREE_OF_DANGER = {Danger.SLOWER, Danger.MEMORY, Danger.ROUNDING, Danger.IGNORED}


def entries() -> list[tuple[Catalogue, str, Variable]]:
    files = [load_catalogue(library) for library in list_libraries()]
    return [(file, name, variable) for file in files for name, variable in file.variables.items()]


def test_the_libraries() -> None:
    assert list_libraries() == [
        "aws-ofi-nccl", "cray-mpich", "hcoll", "intel-mpi", "libfabric", "mpich", "mvapich",
        "nccl", "oneccl", "openmpi", "rccl", "spectrum-mpi", "ucc", "ucx",
    ]  # fmt: skip
    assert len(entries()) > 1000


@pytest.mark.parametrize("library", list_libraries())
def test_a_file_is_complete(library: str) -> None:
    file = build_catalogue(load_shipped("spaces/catalogue", library))
    assert file.library == library
    assert file.checked.how.endswith(".") and file.summary.endswith(".")
    assert {v.part for v in file.variables.values()} - {None} == set(file.parts)
    for name, variable in file.variables.items():
        assert len(variable.meaning.split()) >= 4, name
        risky = set(variable.dangers) - FREE_OF_DANGER
        if variable.level in (Level.DANGER, Level.FORBIDDEN):
            assert risky, f"{name} is a danger, but nothing says which"
            assert variable.caution, f"{name} is a danger, but nothing says why"


@pytest.mark.parametrize("library", list_libraries())
def test_names_are_found_without_reading_the_file(library: str) -> None:
    assert _names_in(library) == tuple(load_catalogue(library).variables)
    assert variable_prefixes(library)[0] in load_catalogue(library).prefixes


def test_the_history_of_a_default_ends_with_it() -> None:
    for _, name, variable in entries():
        if variable.history:
            versions = [_as_numbers(version) for version in variable.history]
            assert versions == sorted(versions) and len(versions) > 1, name
            last = list(variable.history.values())[-1]
            assert (variable.default or "auto").startswith(last), name


def test_a_name_of_two_libraries_is_meant() -> None:
    """RCCL reads NCCL's names; nothing else shares any."""
    seen: dict[str, str] = {}
    for file, name, _ in entries():
        if name in seen:
            assert {seen[name], file.library} == {"nccl", "rccl"}, name
        seen[name] = file.library


def test_every_word_of_the_format_is_used() -> None:
    """A word that no entry uses is one that nobody needs, or a slip in the files."""
    found = entries()
    assert {d for _, _, v in found for d in v.dangers} == set(Danger)
    assert {v.level for _, _, v in found} == set(Level)
    assert {v.role for _, _, v in found} == set(Role)
    assert {v.scope for _, _, v in found} == set(Scope)
    assert {o for _, _, v in found for o in v.operations} == set(Operations)
    assert {k for _, _, v in found for k in v.known_from} == set(KnownFrom)
    wrong = {w.what for file, _, _ in found for w in file.not_variables.values()}
    assert wrong == set(Wrong)


def with_text_keys(data: Any) -> Any:
    """As editors see it: YAML's numbers are text where they are keys."""
    if isinstance(data, dict):
        return {str(key): with_text_keys(value) for key, value in data.items()}
    return [with_text_keys(value) for value in data] if isinstance(data, list) else data


@pytest.mark.parametrize("library", list_libraries())
def test_editors_accept_a_file(library: str) -> None:
    text = (FOLDER / f"{library}.yaml").read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=catalogue.schema.json\n")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    data = with_text_keys(yaml.load(text, Loader=loader))
    check_by_schema("spaces/catalogue/catalogue", data)
    data["variables"][next(iter(data["variables"]))]["defualt"] = "1"
    with pytest.raises(jsonschema.ValidationError):
        check_by_schema("spaces/catalogue/catalogue", data)


@pytest.mark.parametrize("library", list_libraries())
def test_a_file_is_laid_out_for_people(library: str) -> None:
    text = (FOLDER / f"{library}.yaml").read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if len(line) > 100 or line != line.rstrip()] == []


@pytest.mark.parametrize("name", list_presets())
def test_what_a_space_searches_is_described(name: str) -> None:
    space = load_space(name)
    for parameter in space.declared.values():
        for variable in parameter.variables:
            assert look_up(variable).known, f"{variable} of {name} is in no catalogue"


@pytest.mark.parametrize("name", list_presets())
def test_a_space_offers_nothing_dangerous_without_an_opt_in(name: str) -> None:
    space = load_space(name)
    for parameter in space.parameters:
        for entry in look_up(parameter.name).known:
            if not space.library.startswith(entry.catalogue.library):
                continue
            assert entry.variable.level is not Level.FORBIDDEN, parameter.name
            assert not set(entry.variable.restricted) & set(parameter.values), parameter.name
