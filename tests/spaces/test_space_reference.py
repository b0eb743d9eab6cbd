"""The reference in docs/ is true: its examples load, its numbers hold, no key is missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from commtune.documents.yaml_document import parse_document
from commtune.spaces import schema
from commtune.spaces.loading import build_space, list_presets, load_space

TEXT = (Path(__file__).parents[2] / "docs" / "spaces.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", TEXT, flags=re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_load(example: str) -> None:
    assert build_space(parse_document(example)).count() > 1


def test_the_first_example_has_as_many_configurations_as_it_says() -> None:
    assert build_space(parse_document(EXAMPLES[0])).count() == 12


@pytest.mark.parametrize("name", [n for n in list_presets() if f"{n}-quick" not in list_presets()])
def test_numbers_of_presets(name: str) -> None:
    if not name.endswith(("-quick", "-thorough")):
        space = load_space(name)
        assert f"| `{name}` | {len(space.parameters)} | {space.count():,} |" in TEXT


@pytest.mark.parametrize("name", [n for n in list_presets() if f"{n}-quick" in list_presets()])
def test_numbers_of_presets_in_three_sizes(name: str) -> None:
    spaces = [load_space(n) for n in (f"{name}-quick", name, f"{name}-thorough")]
    row = [
        ", ".join(f"`{space.name}`" for space in spaces),
        ", ".join(str(len(space.parameters)) for space in spaces),
        ", ".join(f"{space.count():.1e}" for space in spaces),
    ]
    assert f"| {' | '.join(row)} |" in TEXT


@pytest.mark.parametrize(
    "model",
    [schema.SpaceDocument, schema.GroupParameter, schema.IntegerParameter, schema.BytesParameter,
     schema.BoolParameter, schema.CustomizationDocument],
)  # fmt: skip
def test_every_key_is_described(model: type[BaseModel]) -> None:
    for key in model.model_fields:
        assert f"`{key}`" in TEXT or f"{key}:" in TEXT, key
