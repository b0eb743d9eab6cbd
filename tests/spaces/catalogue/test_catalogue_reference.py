"""docs/catalogue.md is true, and the pages that are made from the files say all of them."""

from __future__ import annotations

import importlib.util
import re
from enum import StrEnum
from pathlib import Path
from types import ModuleType

import pytest
from catalogue_checks import build_catalogue
from pydantic import BaseModel

from commtune.commands.reference import explain
from commtune.documents.yaml_document import parse_document
from commtune.errors import UnknownName
from commtune.spaces.catalogue.loading import list_libraries, load_catalogue
from commtune.spaces.catalogue.schema import (
    Catalogue,
    Interaction,
    Need,
    NotVariable,
    Range,
    Variable,
    _Checked,
    _Part,
)
from commtune.spaces.catalogue.words import (
    Danger,
    KnownFrom,
    Level,
    Operations,
    Role,
    Scope,
    Wrong,
)

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "catalogue.md").read_text(encoding="utf-8")


def test_the_example_loads() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", TEXT, flags=re.DOTALL)
    assert list(build_catalogue(parse_document(example)).variables) == [
        "MYLIB_ALGO", "MYLIB_RADIX",
    ]  # fmt: skip


def test_the_numbers() -> None:
    count = sum(len(load_catalogue(library).variables) for library in list_libraries())
    assert f"{count:,} of them, in {len(list_libraries())} files" in " ".join(TEXT.split())


def test_what_an_unknown_name_is_told() -> None:
    with pytest.raises(UnknownName) as caught:
        explain.spaces_explain_command("UCX_RNDV_SCHME", json_output=False)
    assert f"commtune: {caught.value.message}\n  {caught.value.hint}\n" in TEXT


@pytest.mark.parametrize(
    "model", [Catalogue, Variable, Range, Need, Interaction, NotVariable, _Checked, _Part]
)
def test_every_key_is_described(model: type[BaseModel]) -> None:
    for key in model.model_fields:
        assert f"`{key}`" in TEXT or f"{key}:" in TEXT, key


@pytest.mark.parametrize("words", [Danger, KnownFrom, Level, Operations, Role, Scope, Wrong])
def test_every_word_is_described(words: type[StrEnum]) -> None:
    for word in words:
        assert f"`{word}`" in TEXT, word
    for danger in Danger:
        assert f"| `{danger}` | {danger.meaning} |" in TEXT
    for known in KnownFrom:
        assert f"| `{known}` | {known.meaning} |" in TEXT


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    """The hook that MkDocs runs."""
    spec = importlib.util.spec_from_file_location("pages", ROOT / "docs" / "catalogue_pages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("library", list_libraries())
def test_the_page_of_a_library(library: str, pages: ModuleType) -> None:
    file = load_catalogue(library)
    page: str = pages.page(file)
    headings = re.findall(r"^## (\w+)$", page, re.MULTILINE)
    assert headings == list(file.variables)
    for row in re.findall(r"^\|.*$", page, re.MULTILINE):
        columns = len(re.findall(r"(?<!\\)\|", row)) - 1
        assert columns in (2, 3, 4), row
    for name in file.not_variables:
        assert f"| {name.replace('*', chr(92) + '*')} |" in page
    assert f"catalogue/{library}.md" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_variables_stand_at_a_glance_and_names_lead_to_them(pages: ModuleType) -> None:
    file = load_catalogue("mpich")
    page: str = pages.page(file)
    glance = page.split("## At a glance")[1].split("\n## ")[0]
    assert re.findall(r"^\| \[(\w+)\]\(#(\w+)\)", glance, re.MULTILINE) == [
        (name, name.lower()) for name in file.variables
    ]
    assert "| auto | Names the algorithm for MPI_Alltoall |  |" in glance
    assert "| caution |" in glance
    assert (
        "| needs | [MPIR_CVAR_DEVICE_COLLECTIVES](#mpir_cvar_device_collectives) is none |" in page
    )
    assert "| searched in | mpich, mpich-host, mpich-host-allreduce |" in page
    for heading in re.findall(r"\(#([a-z-]+)\)", glance):
        assert f"\n## {heading.replace('-', ' ').capitalize()}\n" in page, heading
    assert "MPIR_CVAR_ABORT_ON_LEAKED_HANDLES, " in page  # read, but not described


def test_what_would_be_markdown_is_escaped(pages: ModuleType) -> None:
    page: str = pages.page(load_catalogue("openmpi"))
    assert r"OMPI\_MCA" not in page  # underscores inside words mean nothing
    assert r"OMPI_MCA_coll_tuned_\*_algorithm" in page
    assert not re.search(r"(?<!\\)\*", page)
    assert not re.search(r"<(?!/?\w+>)\w", page)
