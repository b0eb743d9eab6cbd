"""``commtune doctor`` on files that the environment names, as the export writes them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import CommandLine
from components import require_component
from rule_documents import document, nccl_documents, openmpi_documents

from commtune.app.setup.named_files import check_named_files
from commtune.export.rules import RULE_FORMATS, render_rules
from commtune.export.rules.table import RuleTable

RULES = "OMPI_MCA_coll_tuned_dynamic_rules_filename"
SWITCH = {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1"}
MPICH = Path(__file__).parents[3] / ".mpi" / "mpich-5.0.2"
INTEL = document(8, 1024, {"I_MPI_ADJUST_ALLREDUCE": "2"}, "allreduce")


def written(folder: Path, name: str) -> dict[str, str]:
    """Writes the files of a format; the variables that load them."""
    made = {
        "openmpi-rules": (openmpi_documents("4"), "openmpi", "5.0.11"),
        "openmpi-json": (openmpi_documents("4"), "openmpi", "6.0.0"),
        "intel-json": ((INTEL,), "intel-mpi", "2021.18.1"),
        "nccl-tuner": (nccl_documents(), "nccl", "2.28.9"),
    }[name]
    table = RuleTable.of_documents(*made)
    export = render_rules(RULE_FORMATS[name], table, None)
    file = folder / "rules.txt"
    for one, path in zip(export.files, export.paths(file), strict=True):
        path.write_text(one.text)
    return export.load(file)


def said(environment: dict[str, str], **versions: str) -> list[tuple[str, str]]:
    return [(check.what, str(check.mend)) for check in check_named_files(environment, versions)]


FORMATS = ("openmpi-rules", "openmpi-json", "intel-json")


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_is_said_of_what_the_export_writes(tmp_path: Path, name: str) -> None:
    assert said(written(tmp_path, name)) == []


@pytest.mark.parametrize("name", [*FORMATS, "nccl-tuner"])
def test_each_cut_is_seen(tmp_path: Path, name: str) -> None:
    """At the end of every line."""
    load = written(tmp_path, name)
    variable = next(v for v, value in load.items() if value.endswith("rules.txt"))
    file = tmp_path / "rules.txt"
    whole = file.read_text()
    lines = whole.splitlines(keepends=True)
    for count in range(1, len(lines)):
        file.write_text("".join(lines[:count]))
        (what, mend), *_ = said({**load, variable: str(file)})
        assert what.startswith(f"{variable}={file} ")
        assert mend in (
            f"unset {variable}",
            f"commtune export first --format {name} -o {file}",
        ), count


def test_a_file_that_is_not_there_or_empty(tmp_path: Path) -> None:
    file = tmp_path / "rules.txt"
    gone = f"{RULES}={file} can't be read: No such file or directory; such a file is ignored"
    assert said({RULES: str(file), **SWITCH}) == [(f"{gone} without a word", f"unset {RULES}")]
    file.touch()
    for variable in (RULES, "I_MPI_TUNING", "I_MPI_TUNING_BIN", "NCCL_TUNER_CONFIG_FILE"):
        ((what, mend),) = said({variable: str(file), **SWITCH})
        assert f"{variable}={file} is empty; such a file" in what
        assert mend == f"unset {variable}"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that all users can enter; those of pytest are closed to others."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_file_without_permission(open_folder: Path) -> None:
    load = written(open_folder, "openmpi-rules")
    file = Path(load[RULES])
    file.chmod(0)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        ((what, mend),) = said(load)
    finally:
        if is_root:
            os.seteuid(0)
    assert "can't be read by you" in what
    assert mend == f"chmod u+r {file}"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("0", "is 0"),
        ("false", "is false"),
        ("on", "is on"),
        ("TRUE", "is TRUE"),
        (None, "is not set"),
    ],
)
def test_rules_that_are_switched_off(tmp_path: Path, value: str | None, words: str) -> None:
    load = written(tmp_path, "openmpi-rules")
    (name,) = SWITCH
    del load[name]
    ((what, mend),) = said(load if value is None else {**load, name: value})
    assert what == f"{RULES}={load[RULES]} is not read: {name} {words}"
    assert mend == f"export {RULES}={load[RULES]}; export {name}=1"


def test_line_ends_of_windows(tmp_path: Path) -> None:
    load = written(tmp_path, "openmpi-rules")
    file = Path(load[RULES])
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    ((what, mend),) = said(load)
    assert f"{RULES}={file} has line ends of Windows" in what
    assert mend == rf"sed -i 's/\r$//' {file}"
    assert os.waitstatus_to_exitcode(os.system(mend)) == 0
    assert said(load) == []


def test_an_algorithm_for_the_process_wins(tmp_path: Path) -> None:
    """In Open MPI 4.1 rules come first."""
    name = "OMPI_MCA_coll_tuned_bcast_algorithm"
    load = {**written(tmp_path, "openmpi-rules"), name: "3"}
    unasked = f"{RULES}={load[RULES]} is not asked: {name} chooses for all sizes"
    assert said(load, openmpi="5.0.11") == said(load) == [(unasked, f"unset {name}")]
    assert said(load, openmpi="4.1.4") == []
    intel = {**written(tmp_path, "intel-json"), "I_MPI_ADJUST_BCAST": "1"}
    assert [mend for _, mend in said(intel)] == ["unset I_MPI_ADJUST_BCAST"]


def test_a_file_for_another_version(tmp_path: Path) -> None:
    load = written(tmp_path, "openmpi-rules")
    assert said(load, mpich="5.0.2") == said(load, openmpi="4.1.4") == []
    ((what, _),) = said(load, openmpi="6.0.1")
    assert f"{load[RULES]} is for openmpi >=4.1,<6; here is 6.0.1" in what
    ((what, _),) = said(written(tmp_path, "intel-json"), **{"intel-mpi": "2021.18.0"})
    assert "is for intel-mpi 2021.18.1 only; here is 2021.18.0" in what


def test_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    load = {**written(tmp_path, "openmpi-rules"), RULES: "rules.txt"}
    ((what, mend),) = said(load)
    assert what == f"{RULES}=rules.txt is read from the folder of each process"
    assert mend == f"export {RULES}={tmp_path / 'rules.txt'}"


def test_a_file_that_intel_mpi_would_pass_over(tmp_path: Path) -> None:
    file = tmp_path / "rules.json"
    file.write_text('{"coll=Allreduce": {}, "origin": 1}')
    ((what, _),) = said({"I_MPI_TUNING": str(file)})
    assert "has keys that begin otherwise than coll=: origin" in what


def test_rules_that_no_plugin_reads(tmp_path: Path) -> None:
    load = written(tmp_path, "nccl-tuner")
    del load["NCCL_TUNER_PLUGIN"]
    unread = "COMMTUNE_TUNER_FILE is read by no one: NCCL_TUNER_PLUGIN is not set"
    assert said(load) == [(unread, "commtune build --tuner")]
    ((what, mend),) = said({**load, "NCCL_TUNER_PLUGIN": "/nowhere/plugin.so"})
    assert "/nowhere/plugin.so: cannot open shared object file" in what
    assert mend == "commtune build --tuner"


def test_mpich_s_own_trees_have_no_fault(tmp_path: Path) -> None:
    require_component("wheel:mpich", MPICH.is_dir())
    made = document(8, 1024, {"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": "ring"}, "allreduce")
    table = RuleTable.of_documents([made], "mpich", "5.0.2")
    (file,) = render_rules(RULE_FORMATS["mpich-json"], table, MPICH).files
    path = tmp_path / "rules.json"
    path.write_text(file.text)
    assert said({file.variable: str(path)}) == []
    path.write_text(file.text[:-20])
    ((what, _),) = said({file.variable: str(path)})
    assert "is cut off or no JSON" in what


def test_the_command_says_what_to_type(tmp_path: Path) -> None:
    load = written(tmp_path, "openmpi-rules")
    file = Path(load[RULES])
    file.write_text(file.read_text()[:-40])
    out = CommandLine(tmp_path, extra=load)("doctor").out
    assert f"{RULES}={file} is cut off; such a file is ignored without a word" in out
    fixes = out.partition("To fix:")[2]
    assert f"  commtune export first --format openmpi-rules -o {file}\n" in fixes
