"""The reference of system descriptions against the schema."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from commtune.documents.yaml_document import parse_document
from commtune.errors import DocumentError
from commtune.spaces.schema import Model
from commtune.systems import schema
from commtune.systems.loading import build_system

PAGE = (Path(__file__).parents[2] / "docs" / "systems.md").read_text(encoding="utf-8")
MODELS = [m for m in vars(schema).values() if isinstance(m, type) and issubclass(m, Model)]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_key_is_in_the_reference(model: type[BaseModel]) -> None:
    assert not [key for key in model.model_fields if f"`{key}`" not in PAGE]


def example() -> str:
    found = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert found
    return found[1]


def test_the_example_is_a_description() -> None:
    system = build_system(parse_document(example()))
    assert system.nics.count * system.nics.bandwidth == 50 * 10**9


def test_the_error_in_the_reference_is_what_is_said() -> None:
    shown = re.search(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert shown
    wrong = example().replace("count: 2, bandwidth: 200 Gb/s", "count: 2, bandwidth: 100Gbps")
    with pytest.raises(DocumentError) as caught:
        build_system(parse_document(wrong, Path("my-system.yaml")))
    said = f"{caught.value.message}\n  {caught.value.hint}\n"
    assert said == shown[1]
