"""The JSON Schemas that are shipped for editors, made from the models.

    .venv/bin/python tests/support/json_schemas.py

writes all of them again.
"""

from __future__ import annotations

import ast
import inspect
import json
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from pydantic import BaseModel

import commtune
from commtune.spaces.catalogue.schema import Catalogue
from commtune.spaces.schema import Model, SpaceDocument
from commtune.systems.schema import System

MODELS: dict[str, type[BaseModel]] = {
    "spaces/space": SpaceDocument,
    "spaces/catalogue/catalogue": Catalogue,
    "systems/system": System,
}
_PACKAGE = Path(commtune.__file__).parent


def check_shipped_schema(name: str) -> None:
    """Fails where the shipped file (``spaces/space``) is not what the models say today."""
    shipped = _file(name).read_text(encoding="utf-8")
    assert shipped == _text(name), "write it again: python tests/support/json_schemas.py"


def check_by_schema(name: str, data: object) -> None:
    """Raises ``jsonschema.ValidationError`` where editors would underline something."""
    schema = json.loads(_file(name).read_text(encoding="utf-8"))
    Draft202012Validator(schema).validate(data)


def _file(name: str) -> Path:
    return _PACKAGE / f"{name}.schema.json"


def _text(name: str) -> str:
    _describe_keys(Model)
    schema = MODELS[name].model_json_schema()
    if name == "spaces/space":
        _add_parameters_by_facts(schema)
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    return json.dumps(whole, indent=2) + "\n"


@cache
def _describe_keys(base: type[Model]) -> None:
    """Gives the keys of all models below one their docstrings, which editors show.

    pydantic could read them when a model is imported, but each command would wait for it.
    """
    for model in base.__subclasses__():
        for owner in reversed(model.__mro__[: model.__mro__.index(Model)]):
            for name, text in _docstrings(owner):
                model.model_fields[name].description = text
        model.model_rebuild(force=True)
        _describe_keys(model)


@cache
def _docstrings(model: type) -> list[tuple[str, str]]:
    (found,) = ast.parse(inspect.getsource(model)).body
    assert isinstance(found, ast.ClassDef)
    return [
        (key.target.id, inspect.cleandoc(text))
        for key, said in pairwise(found.body)
        if isinstance(key, ast.AnnAssign) and isinstance(key.target, ast.Name)
        if isinstance(said, ast.Expr) and isinstance(said.value, ast.Constant)
        if isinstance(text := said.value.value, str)
    ]


def _add_parameters_by_facts(schema: dict[str, Any]) -> None:
    parameters = schema["properties"]["parameters"]
    schema["$defs"]["ByFacts"] = _by_facts(schema["$defs"])
    parameters["items"] = {"anyOf": [parameters["items"], {"$ref": "#/$defs/ByFacts"}]}


def _by_facts(definitions: dict[str, Any]) -> dict[str, Any]:
    """A parameter whose kind a catalogue says, for editors: any key but `kind`."""
    keys: dict[str, Any] = {}
    for name, definition in definitions.items():
        if name.endswith("Parameter") and name != "GroupParameter":
            for key, described in definition["properties"].items():
                known = keys.setdefault(key, {"anyOf": []})["anyOf"]
                if described not in known:
                    known.append(described)
    del keys["kind"]
    return {
        "title": "ByFacts",
        "description": "A variable of a catalogue under `facts`, which says what is left out.",
        "type": "object",
        "properties": keys,
        "required": ["name"],
        "additionalProperties": False,
    }


if __name__ == "__main__":
    for known in MODELS:
        _file(known).write_text(_text(known), encoding="utf-8")
