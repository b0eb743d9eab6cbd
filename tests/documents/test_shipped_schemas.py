"""The JSON Schemas for editors are shipped as the models are."""

from __future__ import annotations

import pytest
from json_schemas import MODELS, check_shipped_schema


@pytest.mark.parametrize("name", MODELS)
def test_a_json_schema_is_up_to_date(name: str) -> None:
    check_shipped_schema(name)
