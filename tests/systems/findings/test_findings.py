"""The shipped findings of papers, and what is said of wrong files."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from commtune.commands.reference import findings as command
from commtune.documents.yaml_document import list_shipped, load_document
from commtune.errors import DocumentError, UnknownName
from commtune.model import Operation
from commtune.spaces.catalogue.loading import look_up
from commtune.systems.findings import _findings, all_findings
from commtune.systems.loading import list_systems, load_system

FOLDER = Path(__file__).parents[3] / "commtune" / "systems" / "findings"

PLAIN = """\
findings: 1
sources:
  ours: a paper
found:
  fast:
    says: It is faster.
    systems: [lumi]
    libraries: [rccl]
    operations: [alltoall]
    least_bytes: 1KiB
    most_bytes: 1MiB
    setting: {NCCL_ALGO: Ring}
    expected: {of: bandwidth, factor: 2}
    source: ours
    section: 1.10
"""


def as_data(paper: str) -> Any:
    return yaml.safe_load((FOLDER / f"{paper}.yaml").read_text(encoding="utf-8"))


def written(folder: Path, text: str) -> Path:
    file = folder / "ours.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_how_many_there_are() -> None:
    names = [one.name for one in all_findings()]
    assert len(names) == len(set(names)) == 47
    assert sum(bool(one.finding.setting) for one in all_findings()) == 10


@pytest.mark.parametrize("paper", list_shipped("systems/findings"))
def test_each_source_is_named_by_a_finding(paper: str) -> None:
    data = as_data(paper)
    assert {one["source"] for one in data["found"].values()} == set(data["sources"])


def test_a_finding_is_an_effect_of_a_setting_or_an_observation() -> None:
    for name, finding in ((one.name, one.finding) for one in all_findings()):
        assert bool(finding.setting) == (finding.expected is not None), name
        ways = (finding.setting, finding.campaigns, finding.not_repeated)
        assert sum(map(bool, ways)) == 1, name
        assert set(finding.operations) <= set(Operation), name
        assert (finding.least_bytes or 0) <= (finding.most_bytes or math.inf), name
        assert (finding.least_nodes or 0) <= (finding.most_nodes or math.inf), name


def test_the_table_of_figures_has_all_of_them() -> None:
    text = (FOLDER.parents[2] / "docs" / "findings.md").read_text(encoding="utf-8")
    table = text.partition("## Figures of the papers")[2].partition("\n## ")[0]
    listed = {word for row in table.splitlines() if "|" in row for word in row.split("`")[1::2]}
    assert {one.name for one in all_findings()} <= listed


def test_names_are_those_of_descriptions_and_of_the_catalogue() -> None:
    for one in all_findings():
        assert set(one.finding.systems) <= set(list_systems()), one.name
        assert all(look_up(variable).known for variable in one.finding.setting), one.name


def test_the_libraries_of_a_setting_are_those_of_its_systems() -> None:
    for one in all_findings():
        if one.finding.setting:
            there = {lib.name for s in one.finding.systems for lib in load_system(s).libraries}
            assert set(one.finding.libraries) <= there, one.name


def test_numbers_are_text_as_written(tmp_path: Path) -> None:
    (found,) = _findings(load_document(written(tmp_path, PLAIN)))
    assert (found.name, found.source, found.finding.section) == ("fast", "a paper", "1.10")
    assert (found.finding.least_bytes, found.finding.most_bytes) == (1024, 1048576)


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("of: bandwidth", "of: speed", 13, "of"),
        ("factor: 2", "factor: two", 13, "factor"),
        ("1KiB", "1K", 10, "1K"),
    ],
)
def test_wrong_files_are_refused(
    tmp_path: Path, old: str, new: str, line: int, words: str
) -> None:
    assert PLAIN.count(old) == 1
    with pytest.raises(DocumentError) as error:
        list(_findings(load_document(written(tmp_path, PLAIN.replace(old, new)))))
    assert f"ours.yaml:{line}: " in error.value.message
    assert words in error.value.message
    assert error.value.hint


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    command.findings_list_command("lumi", json_output=False)
    said = capsys.readouterr().out
    assert "NCCL_NCHANNELS_PER_PEER=32: 3.5x in bandwidth" in said
    assert said.index("channels-per-peer") < said.index("\nobservations") < said.index("gpu-pairs")
    assert "neuron" not in said
    assert "lumi; rccl; ping-pong, bidirectional, stream; to 1 node [1, III-B]" in said
    assert said.count("De Sensi") == 1
    assert said.index("gpu-pairs") < said.index("\nsources\n  [1] De Sensi et al.")
    command.findings_list_command(None, json_output=True)
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found] == [one.name for one in all_findings()]
    command.findings_list_command("dgx-h100", json_output=False)
    assert capsys.readouterr().out == "no paper that commtune knows measured on dgx-h100\n"
    with pytest.raises(UnknownName) as error:
        command.findings_list_command("lumy", json_output=False)
    assert "nearest: lumi" in error.value.hint
