"""``commtune spaces list``, ``show`` and ``validate``: what they print of spaces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shipped_spaces import check_shipped_spaces

from commtune.campaign.loading import load_campaign
from commtune.commands.reference import spaces as command
from commtune.commands.reference.spaces_list import spaces_list_command
from commtune.documents.yaml_document import parse_document
from commtune.errors import DocumentError, UnknownName
from commtune.spaces.catalogue_facts import list_remarks
from commtune.spaces.loading import list_presets, load_space
from commtune.systems.loading import build_system, load_system

SPACE = """\
space: 1
name: mine
library: nccl
parameters:
  - name: channels
    kind: group
    choices:
      few: {NCCL_MAX_NCHANNELS: 4}
      exactly-16: {NCCL_MIN_NCHANNELS: 16, NCCL_MAX_NCHANNELS: 16}
  - name: NCCL_PROTO
    kind: choice
    values: [Simple, LL, LL128]
    default: by size
    restricted:
      - {value: LL128, risks: [wrong-result], why: naming it skips a check}
"""


def shown(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    command.spaces_show_command(name, json_output=False)
    return capsys.readouterr().out


def test_the_list_is_what_the_spaces_say() -> None:
    check_shipped_spaces()


def test_a_space_says_what_it_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert "\nfor mpich >=5.0,<6, allreduce; " in shown("mpich-host-allreduce", capsys)


def test_spaces_for_a_library(capsys: pytest.CaptureFixture[str]) -> None:
    spaces_list_command("oneccl", json_output=True)
    found = [space["name"] for space in json.loads(capsys.readouterr().out)]
    assert found == ["oneccl", "oneccl-quick", "oneccl-thorough"]
    spaces_list_command(None, json_output=False)
    said = capsys.readouterr().out
    assert said.count("\n") == len(list_presets()) + 3
    assert "commtune spaces show NAME" in said
    with pytest.raises(UnknownName) as error:
        spaces_list_command("ncl", json_output=False)
    assert error.value.hint == "nearest: nccl"


@pytest.mark.parametrize("name", ["mpich-thorough", "nccl-slingshot", "openmpi-ucx-gpu"])
def test_every_value_is_shown_and_lines_fit(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = shown(name, capsys)
    words = said.replace(",", " ").replace(":", " ").split()
    for parameter in load_space(name).parameters:
        assert parameter.name in words
        for value in parameter.values:
            assert value is None or value.replace(",", " ").replace(":", " ") in " ".join(words)
    assert max(map(len, said.splitlines()[2:])) <= 96


def test_other_sizes_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert "in other sizes: mpich, mpich-thorough\n" in shown("mpich-quick", capsys)
    assert "other sizes" not in shown("mpich-host", capsys)


def test_what_unset_means_what_a_choice_sets_and_what_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(SPACE, encoding="utf-8")
    said = shown(str(file), capsys)
    assert "    exactly-16: NCCL_MIN_NCHANNELS=16 NCCL_MAX_NCHANNELS=16\n" in said
    assert "    unset, Simple, LL\n    unset means: by size\n" in said
    assert (
        "    left out without opt_in: ['NCCL_PROTO=LL128']: wrong-result; naming it skips a check"
    ) in said


MISSPELLED = """\
space: 1
name: mine
library: mpich
parameters:
  - {name: MPIR_CVAR_BCAST_INTRANODE_NUM_CELS, kind: choice, values: [2, 4]}
  - {name: OF_MY_OWN, kind: choice, values: [2, 4]}
"""
CAMPAIGN = "campaign: 1\nname: one\nspace: mine.yaml\n"


def test_names_that_are_most_likely_misspelled_are_noted_and_no_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    space, campaign = tmp_path / "mine.yaml", tmp_path / "campaign.yaml"
    space.write_text(MISSPELLED, encoding="utf-8")
    campaign.write_text(CAMPAIGN, encoding="utf-8")
    note = (
        "note: MPIR_CVAR_BCAST_INTRANODE_NUM_CELS is not a known name; perhaps "
        "MPIR_CVAR_BCAST_INTRANODE_NUM_CELLS is meant"
    )
    command.spaces_validate_command([space, campaign], json_output=False)
    said = capsys.readouterr().out
    assert said == "".join(f"{f}: ok, 9 configurations\n  {note}\n" for f in (space, campaign))
    assert load_campaign(campaign).remarks == (note,)  # which tune prints first


def test_numbers_that_the_catalogue_lacks_are_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "OMPI_MCA_coll_tuned_bcast_algorithm"
    space = tmp_path / "mine.yaml"
    space.write_text(
        "space: 1\nname: mine\nlibrary: openmpi\nparameters:\n"
        f"  - {{name: {name}, kind: integer, range: [1, 42], source: mine}}\n"
    )
    command.spaces_validate_command([space], json_output=False)
    assert capsys.readouterr().out.splitlines()[1:] == [
        f"  note: {name}: no value 10, 11, 12, 13, ... is known, only 0, 1, 2, 3, 4, 5, 6, 7, 8, 9"
    ]
    space.write_text(space.read_text().replace("[1, 42]", "[1, 9]"))
    command.spaces_validate_command([space], json_output=False)
    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.parametrize("name", list_presets())
def test_shipped_spaces_raise_no_doubts(name: str) -> None:
    assert list_remarks(load_space(name)) == []


def test_a_campaign_with_an_unknown_strategy_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "campaign.yaml"
    file.write_text("campaign: 1\nname: one\nspace: nccl\nstrategy: exhaustiv\n", encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        command.spaces_validate_command([file], json_output=False)
    assert ended.value.code == 2
    first, second, _ = capsys.readouterr().err.splitlines()
    assert first == f"{file}:4: strategy: no search strategy is called 'exhaustiv'"
    assert second == "  nearest: exhaustive"


def test_a_file_of_another_kind_is_told_by_its_kind(tmp_path: Path) -> None:
    system, campaign = tmp_path / "system.yaml", tmp_path / "campaign.yaml"
    system.write_text("system: 1\nname: mine\n", encoding="utf-8")
    campaign.write_text("campaign: 1\nspace: nccl\nsystem: lumi\n", encoding="utf-8")
    with pytest.raises(DocumentError) as error:
        load_space(system)
    assert error.value.message == f"{system}:1: this is the description of a system"
    assert error.value.hint == f"commtune systems validate {system}"
    for load in (load_space, load_system):
        with pytest.raises(DocumentError) as error:
            load(campaign)
        assert error.value.message == f"{campaign}:1: this is a campaign file"
        assert error.value.hint == f"commtune spaces validate {campaign}"
    with pytest.raises(DocumentError, match="this is a search space"):
        build_system(parse_document(SPACE))
