"""What ``commtune systems detect`` says of machines that the tests don't run on."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest
from seen_machines import A100_NODE, LOGIN_NODE

from commtune.app.systems import detect_system
from commtune.commands.reference.system_detect import print_detection
from commtune.systems.detection.seen import Clues, SeenMachine

#: Nobody names the machine; its shape is all that there is.
NAMELESS = replace(A100_NODE, clues=Clues("somewhere"))
KNOWN = resources.files("commtune.systems") / "descriptions" / "leonardo.yaml"


def own(folder: Path, recognized: str, **changes: str) -> str:
    """A description of one's own that is like Leonardo's."""
    text = KNOWN.read_text(encoding="utf-8").replace("name: leonardo", "name: ours", 1)
    kept, skipping = [], False
    for line in text.splitlines():
        skipping = line.startswith("recognized:") or (skipping and line.startswith((" ", "\t")))
        kept += [] if skipping else [line]
    text = "\n".join(kept).replace("sources:", f"{recognized}\nsources:", 1)
    for old, new in changes.items():
        text = text.replace(f"{old}: ", f"{old}: {new}  # ", 1)
    (folder / "ours.yaml").write_text(text, encoding="utf-8")
    return str(folder / "ours.yaml")


def said(seen: SeenMachine, *names: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    try:
        print_detection(detect_system(names, seen), json_output=False, program="commtune")
    except SystemExit as end:
        return int(str(end.code)), capsys.readouterr().out
    return 0, capsys.readouterr().out


def test_a_node_that_looks_like_one(capsys: pytest.CaptureFixture[str]) -> None:
    code, out = said(NAMELESS, capsys=capsys)
    assert code == 4
    assert "not recognized: somewhere is none of the" in out
    assert "looks like leonardo, with 4 x NVIDIA A100-SXM-64GB and 4 x ConnectX-6" in out
    assert "this is" not in out
    assert "compared with leonardo" in out
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


def test_a_named_file_is_held_against_though_it_is_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = own(tmp_path, "recognized: {cluster: [there], source: site}")
    code, out = said(replace(LOGIN_NODE, clues=Clues("somewhere")), file, capsys=capsys)
    assert code == 4
    assert out.count("compared with") == 1
    assert f"compared with {file}" in out
    assert f"add what identifies it under 'recognized' in {file}" in out


def test_other_gpus_than_described_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = own(tmp_path, "recognized: {cluster: [here], source: site}")
    assert A100_NODE.gpus
    gpus = replace(A100_NODE.gpus, model="NVIDIA H100 80GB HBM3")
    seen = replace(NAMELESS, clues=Clues("x", "here"), gpus=gpus)
    code, out = said(seen, file, capsys=capsys)
    assert code == 0
    assert "its GPUs differ: another kind of node, or another machine of the same name" in out


def test_a_machine_out_of_service(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = own(tmp_path, "recognized: {cluster: [here], source: site}\nretired: 2024-11")
    code, out = said(replace(NAMELESS, clues=Clues("x", "here")), file, capsys=capsys)
    assert code == 0
    assert "out of service since 2024-11" in out


def test_two_that_fit_equally_are_both_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one = own(tmp_path / "a", "recognized: {cluster: [here], source: site}")
    two = own(tmp_path / "b", "recognized: {cluster: [here], source: site}", version="2")
    code, out = said(replace(NAMELESS, clues=Clues("x", "here")), one, two, capsys=capsys)
    assert code == 0
    assert out.count("this is ours") == 2
    assert "tell them apart" in out
    assert f"compared with {one}" in out and f"compared with {two}" in out


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        print_detection(detect_system((), NAMELESS), json_output=True, program="commtune")
    found = json.loads(capsys.readouterr().out)
    assert (found["recognized"], found["host"]) == ([], "somewhere")
    assert [one["name"] for one in found["systems"]] == ["leonardo"]
    assert found["systems"][0]["recognized"] is False


def test_what_is_not_seen_for_one_reason_stands_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out = said(replace(LOGIN_NODE, clues=Clues("somewhere")), "lumi", capsys=capsys)
    assert code == 4
    (line,) = [line for line in out.splitlines() if "no GPU is here" in line]
    assert "; so not seen: GPU model, GPUs, cores" in line
    assert out.endswith("describe it: commtune systems new NAME -o NAME.yaml\n")  # lumi is shipped
