"""The shipped reference settings, and what is said of wrong ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from commtune.documents.yaml_document import list_shipped, load_document
from commtune.errors import DocumentError, UnknownName
from commtune.spaces.catalogue.loading import look_up
from commtune.systems.loading import list_systems
from commtune.systems.reference_settings import (
    _sets,
    all_reference_settings,
    find_reference_settings,
)

FOLDER = Path(__file__).parents[3] / "commtune" / "systems" / "reference_settings"

PLAIN = """\
reference_settings: 1
site: Ours
sources:
  page: our pages
  bug: a ticket
elsewhere:
  OURS_LEVEL: our launcher
sets:
  ours:
    summary: What we set.
    systems: [ours]
    libraries: [nccl]
    stack: NCCL
    kind: documented
    evidence: repository
    source: page
    environment: {NCCL_PROTO: Simple, OURS_LEVEL: 010}
  ours-hang:
    summary: Against hangs.
    systems: [ours]
    libraries: [nccl]
    stack: NCCL
    kind: workaround
    evidence: notes
    source: bug
    on_top_of: ours
    unfit: A remedy.
    environment: {NCCL_PROTO: LL, NCCL_ALGO: Ring}
"""


def as_data(site: str) -> Any:
    return yaml.safe_load((FOLDER / f"{site}.yaml").read_text(encoding="utf-8"))


def written(folder: Path, text: str) -> Path:
    file = folder / "ours.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_how_many_there_are() -> None:
    found = all_reference_settings().values()
    assert (len(found), sum(not one.entry.unfit for one in found)) == (63, 48)
    assert len(found) == sum(
        len(as_data(site)["sets"]) for site in list_shipped("systems/reference_settings")
    ), "a name twice"


@pytest.mark.parametrize("site", list_shipped("systems/reference_settings"))
def test_every_variable_is_in_the_catalogue_or_said_to_be_something_elses(site: str) -> None:
    data = as_data(site)
    names = {
        variable
        for entry in data["sets"].values()
        for variable in [*entry["environment"], *entry.get("fill_in", {})]
    }
    unknown = {name for name in names if not ((found := look_up(name)).known or found.undescribed)}
    assert unknown == set(data.get("elsewhere", {}))


@pytest.mark.parametrize("site", list_shipped("systems/reference_settings"))
def test_what_sets_name_is_in_their_file(site: str) -> None:
    data = as_data(site)
    sets = data["sets"]
    assert {entry["source"] for entry in sets.values()} == set(data["sources"])
    for name, entry in sets.items():
        below = entry.get("on_top_of")
        assert below is None or (below != name and "on_top_of" not in sets[below]), name
        assert not entry.get("fill_in", {}).keys() & entry["environment"].keys(), name


def test_systems_that_have_descriptions_are_called_as_there() -> None:
    named = {system for one in all_reference_settings().values() for system in one.entry.systems}
    # The others have no description; a user's own may have these names.
    others = {"crusher", "derecho", "olivia", "spock", "supermuc-ng-2"}
    assert named - set(list_systems()) == others


def test_a_set_that_is_for_no_system_says_what_it_is_for() -> None:
    for one in all_reference_settings().values():
        assert one.entry.systems or one.entry.machine, one.name


def test_no_value_is_a_placeholder() -> None:
    for one in all_reference_settings().values():
        assert not any("<" in value for value in one.settings.values()), one.name


def test_what_one_sets_on_top_of_another() -> None:
    base, hang = (
        find_reference_settings("cscs-alps-uenv-nccl"),
        find_reference_settings("reference:cscs-alps-uenv-nccl-hang"),
    )
    assert hang.settings == {
        **base.settings,
        "FI_CXI_RDZV_GET_MIN": "0",
        "FI_CXI_RDZV_THRESHOLD": "0",
        "FI_CXI_RDZV_EAGER_SIZE": "0",
    }


def test_its_own_values_win(tmp_path: Path) -> None:
    found = _sets(load_document(written(tmp_path, PLAIN)))
    assert found["ours-hang"].settings == {
        "NCCL_PROTO": "LL",
        "OURS_LEVEL": "010",
        "NCCL_ALGO": "Ring",
    }
    assert found["ours-hang"].source == "a ticket"
    assert found["ours-hang"].elsewhere == {"OURS_LEVEL": "our launcher"}
    assert found["ours"].is_for("ours", "nccl")
    assert not found["ours"].is_for("ours", "rccl")
    assert not found["ours"].is_for("theirs", "nccl")
    assert not found["ours-hang"].is_for("ours", "nccl")


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("kind: documented", "kind: document", 14, "kind"),
        ("evidence: notes", "evidence: note", 24, "evidence"),
        ("    stack: NCCL\n    kind: doc", "    kind: doc", 9, "stack"),
        ("PROTO: Simple", "PROTO: yes", 17, "yes without quotes is a truth value"),
        ("{NCCL_PROTO: Simple, OURS_LEVEL: 010}", "{}", 17, "environment is empty"),
        ("unfit: A remedy.", "unfits: A remedy.", 27, "unfits"),
    ],
)
def test_wrong_files_are_refused(
    tmp_path: Path, old: str, new: str, line: int, words: str
) -> None:
    assert PLAIN.count(old) == 1
    file = written(tmp_path, PLAIN.replace(old, new))
    with pytest.raises(DocumentError) as error:
        _sets(load_document(file))
    assert f"ours.yaml:{line}: " in error.value.message
    assert words in error.value.message
    assert error.value.hint


def test_an_unknown_name_is_told_the_nearest() -> None:
    with pytest.raises(UnknownName) as error:
        find_reference_settings("reference:cscs-alps-uenv-ncll")
    assert "no reference settings are called 'cscs-alps-uenv-ncll'" in error.value.message
    assert "cscs-alps-uenv-nccl" in error.value.hint
