"""What ``commtune systems detect`` says of machines that the tests don't run on."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest
from seen_machines import A100_NODE, LOGIN_NODE

from commtune.app.systems import detect_system
from commtune.commands.reference.system_detect import _print_detection
from commtune.systems.detection.seen import Clues, SeenMachine

#: Nobody names the machine; its shape is all that there is.
NAMELESS = replace(A100_NODE, clues=Clues("somewhere"))
KNOWN = resources.files("commtune.systems") / "descriptions" / "leonardo.yaml"


def own(folder: Path, recognized: str) -> str:
    """A description of one's own that is like Leonardo's."""
    text = KNOWN.read_text(encoding="utf-8").replace("name: leonardo", "name: ours", 1)
    kept, skipping = [], False
    for line in text.splitlines():
        skipping = line.startswith("recognized:") or (skipping and line.startswith((" ", "\t")))
        kept += [] if skipping else [line]
    text = "\n".join(kept).replace("sources:", f"{recognized}\nsources:", 1)
    (folder / "ours.yaml").write_text(text, encoding="utf-8")
    return str(folder / "ours.yaml")


def said(seen: SeenMachine, *names: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    try:
        _print_detection(detect_system(names, seen), json_output=False)
    except SystemExit as end:
        return int(str(end.code)), capsys.readouterr().out
    return 0, capsys.readouterr().out


def test_a_node_that_looks_like_one(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = said(NAMELESS, capsys=capsys)
    assert code == 4
    assert "not recognized: somewhere is none of the" in out
    assert "looks like leonardo, with 4 x NVIDIA A100-SXM-64GB and 4 x ConnectX-6" in out
    assert "this is" not in out
    assert out.endswith("describe it: commtune systems new NAME -o NAME.yaml\n")


def test_a_machine_that_is_named_by_its_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = own(tmp_path, "recognized: {cluster: [here], source: site}")
    seen = replace(NAMELESS, clues=Clues("somewhere", "here"))
    code, out = said(seen, file, capsys=capsys)
    assert code == 0
    assert out.startswith(f"this is ours ({file}), by Slurm's cluster name here\n")
    assert "looks like" not in out
    assert f"'system: {file}' in a campaign file" in out


def test_a_named_file_may_be_meant_though_nothing_in_it_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = own(tmp_path, "recognized: {cluster: [there], source: site}")
    code, out = said(replace(LOGIN_NODE, clues=Clues("somewhere")), file, capsys=capsys)
    assert code == 4
    assert f"add what identifies it under 'recognized' in {file}" in out


def test_a_shipped_system_by_its_name_is_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = said(replace(LOGIN_NODE, clues=Clues("somewhere")), "lumi", capsys=capsys)
    assert code == 4
    assert out.endswith("describe it: commtune systems new NAME -o NAME.yaml\n")


def test_a_machine_out_of_service(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = own(tmp_path, "recognized: {cluster: [here], source: site}\nretired: 2024-11")
    code, out = said(replace(NAMELESS, clues=Clues("x", "here")), file, capsys=capsys)
    assert code == 0
    assert "out of service since 2024-11" in out


def test_two_that_fit_equally_are_both_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = "recognized: {cluster: [here], source: site}"
    one = own(tmp_path, known)
    text = Path(one).read_text().replace("name: ours", "name: theirs", 1)
    two = tmp_path / "theirs.yaml"
    two.write_text(text)
    seen = replace(NAMELESS, clues=Clues("x", "here"))
    code, out = said(seen, one, str(two), capsys=capsys)
    assert code == 0
    assert f"this is ours ({one}), by Slurm's cluster name here" in out
    assert f"this is theirs ({two}), by Slurm's cluster name here" in out
    assert "these descriptions name the same things" in out


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        _print_detection(detect_system((), NAMELESS), json_output=True)
    found = json.loads(capsys.readouterr().out)
    assert (found["recognized"], found["host"]) == ([], "somewhere")
    assert [one["name"] for one in found["systems"]] == ["leonardo"]
    assert found["systems"][0]["recognized"] is False
