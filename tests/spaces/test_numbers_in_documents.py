"""Numbers and truth values in files that people write: neither is the other.

Python counts true as 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from commtune.campaign.loading import parse_campaign
from commtune.campaign.schema import CampaignFile
from commtune.documents.validation import validate_document
from commtune.documents.yaml_document import parse_document
from commtune.errors import CampaignError, DocumentError, SpaceError
from commtune.spaces.catalogue.schema import Catalogue
from commtune.spaces.loading import build_space
from commtune.spaces.schema import SpaceDocument
from commtune.systems.findings import FindingFile
from commtune.systems.reference_settings import ReferenceSettingsFile
from commtune.systems.schema import System

_FILES = (CampaignFile, SpaceDocument, System, Catalogue, ReferenceSettingsFile, FindingFile)
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


def _keys() -> Iterator[tuple[str, FieldInfo, set[Any]]]:
    """The keys of all files, with the kinds of values that they take."""
    for model in _models(tuple[_FILES], {}):  # type: ignore[valid-type]  # only looked at
        for name, field in model.model_fields.items():
            kinds = {kind for kind in _kinds(field.annotation) if kind.__hash__}
            yield f"{model.__name__}.{name}", field, kinds


def _of_numbers() -> list[tuple[str, FieldInfo]]:
    """The keys, of all files, that take numbers and no truth values."""
    return [(n, f) for n, f, kinds in _keys() if bool not in kinds and {1, int, float} & kinds]


def _of_truths() -> list[tuple[str, FieldInfo]]:
    """The keys, of all files, that take truth values."""
    return [(name, field) for name, field, kinds in _keys() if bool in kinds]


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
        "IntegerParameter.range", "_Product.limit", "_Node.cores", "_Gpus.numa", "_Nics.sharing",
        "Need.above", "ReferenceSettingsFile.reference_settings", "_Expected.factor",
    }  # fmt: skip
    assert {name for name, _ in _of_truths()} >= {
        "TimingPart.graph", "WorkloadPart.rotate", "SlurmPart.exclusive", "Slurm.exclusive",
    }  # fmt: skip


@pytest.mark.parametrize(("name", "field"), _of_numbers())
def test_a_truth_value_is_no_number(name: str, field: FieldInfo) -> None:
    for written in (True, False, [True], [True, True], {"8": True}):
        assert not _takes(field, written), f"{name}: {written}"


@pytest.mark.parametrize(("name", "field"), _of_truths())
def test_a_number_is_no_truth_value(name: str, field: FieldInfo) -> None:
    for written in (0, 1, 1.0, 2, "0", "1"):
        assert not _takes(field, written), f"{name}: {written}"
    for written in (True, False, "yes"):
        assert _takes(field, written), f"{name}: {written}"


def test_a_campaign_names_the_key_of_a_truth_value() -> None:
    for part, key in (("timing", "graph"), ("workload", "rotate"), ("slurm", "exclusive")):
        with pytest.raises(CampaignError) as caught:
            parse_campaign(f"{_CAMPAIGN}{part}:\n  {key}: 1\n", Path.cwd())
        assert caught.value.line == 5
        assert caught.value.message == f"{part}.{key}: 1 is a number, not a truth value"
        assert caught.value.hint == "write true or false"


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
        validate_document(system, System)
    assert wrong.value.line == 1
