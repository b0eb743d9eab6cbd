"""Numbers in files that people write: a truth value is none, although Python counts it as 1."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from commtune.errors import CampaignError, DocumentError, SpaceError
from commtune.spaces import build_space, parse_document, validated
from commtune.spaces.catalogue.schema import Catalogue
from commtune.spaces.schema import SpaceDocument
from commtune.systems.baselines.schema import BaselineFile
from commtune.systems.findings.schema import FindingFile
from commtune.systems.schema import System
from commtune.tuner.campaign_file import CampaignFile, parse_campaign

_FILES = (CampaignFile, SpaceDocument, System, Catalogue, BaselineFile, FindingFile)
_CAMPAIGN = "campaign: 1\nname: w\nspace: nccl\n"


def _models(kind: Any, found: dict[type[BaseModel], None]) -> dict[type[BaseModel], None]:
    """All models that a type is made of."""
    if isinstance(kind, type) and issubclass(kind, BaseModel) and kind not in found:
        found[kind] = None
        for field in kind.model_fields.values():
            _models(field.annotation, found)
    for inside in get_args(kind):
        _models(inside, found)
    return found


def _kinds(kind: Any) -> Iterator[Any]:
    yield kind if not hasattr(kind, "__metadata__") else kind.__origin__
    for inside in get_args(kind):
        yield from _kinds(inside)


def _of_numbers() -> list[tuple[str, FieldInfo]]:
    """The keys, of all files, that take numbers and no truth values."""
    found = []
    for model in _models(tuple[_FILES], {}):  # type: ignore[valid-type]  # only looked at
        for name, field in model.model_fields.items():
            kinds = list(_kinds(field.annotation))
            if bool not in kinds and {1, int, float} & {k for k in kinds if k.__hash__}:
                found.append((f"{model.__name__}.{name}", field))
    return found


def _takes(field: FieldInfo, value: object) -> bool:
    try:
        TypeAdapter(field.rebuild_annotation()).validate_python(value)
    except ValidationError:
        return False
    return True


def test_all_files_are_looked_at() -> None:
    names = {name for name, _ in _of_numbers()}
    assert names >= {
        "CampaignFile.campaign", "CampaignFile.seed", "WorkloadPart.group_size",
        "SlurmPart.jobs", "BudgetPart.trials", "TimingPart.warmup", "AggressorPart.nodes",
        "IntegerParameter.range", "Product.limit", "Node.cores", "Gpus.numa", "Nics.sharing",
        "Need.above", "BaselineFile.baselines", "Expected.factor",
    }  # fmt: skip


@pytest.mark.parametrize(("name", "field"), _of_numbers())
def test_a_truth_value_is_no_number(name: str, field: FieldInfo) -> None:
    for written in (True, False, [True], [True, True], {"8": True}):
        assert not _takes(field, written), f"{name}: {written}"


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("seed: true", 4, "seed"),
        ("workload:\n  operation: rail\n  group_size: true", 6, "workload.group_size"),
        ("workload: {ranks: true}", 4, "workload.ranks"),
        ("budget:\n  trials: true", 5, "budget.trials"),
    ],
)
def test_a_campaign_names_the_key(text: str, line: int, key: str) -> None:
    with pytest.raises(CampaignError) as caught:
        parse_campaign(_CAMPAIGN + text + "\n", Path.cwd())
    assert caught.value.line == line
    assert caught.value.message == f"{key}: true is a truth value, not a number"
    assert caught.value.hint == "write it in digits"


def test_so_do_spaces_and_systems() -> None:
    space = (
        "space: 1\nname: s\nlibrary: nccl\nparameters:\n"
        "  - {name: NCCL_X, kind: integer, range: [1, true]}\n"
    )
    with pytest.raises(SpaceError, match=r"range\[1\]: true is a truth value") as caught:
        build_space(parse_document(space, None, SpaceError))
    assert caught.value.line == 5
    system = parse_document("system: true\nname: s\n")
    with pytest.raises(DocumentError, match="system: true is a truth value") as wrong:
        validated(system, System)
    assert wrong.value.line == 1
