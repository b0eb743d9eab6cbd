"""Campaign files with a benchmark of the user's own: what they come to, and what is refused."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from commtune.campaign.loading import parse_campaign
from commtune.campaign.plan import Plan
from commtune.errors import CampaignError, DocumentError
from commtune.model import Backend, Operation, Workload

_HEAD = "campaign: 1\nname: a\nspace: mpich-host\n"
_HALO = "from commtune.kernels.python_bench import Pattern\n\nclass Halo(Pattern):\n    pass\n\n"
_COMMAND = f"benchmark: {{command: [{sys.executable}, x.py], output: json-line"


def _plan(text: str, folder: Path) -> Plan:
    return parse_campaign(_HEAD + text, folder).plan


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a pattern and a program in it."""
    (tmp_path / "halo.py").write_text(_HALO + "Other = Halo\n")
    (tmp_path / "program").write_text("")
    return tmp_path


def test_a_pattern(folder: Path) -> None:
    workload = _plan("benchmark: {python: halo.py:Halo}\nworkload: {ranks: 4}\n", folder).workload
    assert (workload.operation, workload.backend) == ("own:Halo", Backend.PYTHON_HOST)
    assert workload.own is not None
    assert workload.own.pattern == f"{folder.resolve() / 'halo.py'}:Halo"
    named = _plan("benchmark: {python: halo.py, name: x}\n", folder).workload
    assert named.operation == "own:x"
    device = "benchmark: {python: halo.py}\nworkload: {backend: python-device}\n"
    workload = _plan(device, folder).workload
    assert (workload.operation, workload.backend) == ("own:halo", Backend.PYTHON_DEVICE)


def test_a_command(folder: Path) -> None:
    text = "benchmark: {command: './program -b {smallest}', output: osu}\nworkload: {ranks: 1}\n"
    workload = _plan(text, folder).workload
    assert (workload.operation, workload.backend) == ("own:program", Backend.COMMAND)
    assert workload.own is not None
    assert workload.own.command == ("./program", "-b", "{smallest}")
    assert workload.own.folder == str(folder.resolve())
    assert workload.ranks == 1


def test_a_command_on_nccl_is_bound_to_its_version_and_gpus(folder: Path) -> None:
    workload = _plan(f"{_COMMAND}}}\nworkload: {{backend: xccl, ranks: 1}}\n", folder).workload
    assert (workload.backend, workload.ranks) == (Backend.XCCL, 1)
    assert Backend(workload.backend).memory == "device"
    assert workload.own is not None
    assert workload.words == "own:x.py"
    assert not workload.takes_several


def test_a_command_may_say_what_it_measures(folder: Path) -> None:
    text = f"{_COMMAND}}}\nworkload: {{operation: broadcast}}\n"
    assert _plan(text, folder).workload.operation is Operation.BROADCAST


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("python3, train.py, --steps, '20'", "train.py"),
        ("python3, -u, other.py", "other.py"),
        ("python3, -m, train.loop", "train.loop"),
        ("env, X=1, /opt/python3.12, -m, train.loop", "train.loop"),
        # -m is a size, as in the guide's example.
        ("./program, -m, '{smallest}:{largest}', -i, '100'", "program"),
        ("sh, -c, ./step.sh", "step.sh"),
        ("./program, in.txt", "program"),
    ],
)
def test_a_command_is_named_by_what_tells_it_apart(folder: Path, words: str, name: str) -> None:
    text = f"benchmark: {{command: [{words}], output: json-line}}\n"
    assert _plan(text, folder).workload.operation == f"own:{name}"


def test_which_program_it_is_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = folder / "mine"
    mine.mkdir()
    (mine / "python3").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(mine), prepend=os.pathsep)
    bare = "benchmark: {command: [python3, x.py], output: json-line}\n"
    assert parse_campaign(_HEAD + bare, folder).remarks == (
        f"note: the command's python3 is {mine / 'python3'}, found on your PATH",
    )
    assert parse_campaign(f"{_HEAD}{_COMMAND}}}\n", folder).remarks == ()


def test_on_a_cluster_the_program_may_be_where_only_jobs_find_it(folder: Path) -> None:
    missing = "benchmark: {command: no-such-program-, output: osu}\n"
    for on in ("slurm: {}\n", "system: alps\n"):
        own = _plan(f"{missing}{on}", folder).workload.own
        assert own is not None
        assert own.command == ("no-such-program-",)


def test_no_parameter_is_taken_for_one_without_effect(folder: Path) -> None:
    whole = parse_campaign(_HEAD + "benchmark: {python: halo.py:Halo}\n", folder).plan.space
    some = parse_campaign(_HEAD + "workload: {operation: ping-pong}\n", folder).plan.space
    assert len(some.parameters) < len(whole.parameters)


def test_another_benchmark_is_another_question(folder: Path) -> None:
    plans = [
        _plan(text, folder)
        for text in (
            "",
            "benchmark: {python: halo.py:Halo}\n",
            "benchmark: {python: halo.py:Other, name: Halo}\n",
            f"{_COMMAND}, name: Halo}}\n",
            f"{_COMMAND.replace('json-line', 'osu')}, name: Halo}}\n",
        )
    ]
    asked = [plan.comparable({}) for plan in plans]
    assert all(a != b for i, a in enumerate(asked) for b in asked[:i])
    assert "own" not in asked[0]["workload"]  # as it was before there was such a thing


@pytest.mark.parametrize("text", ["", "benchmark: {python: halo.py:Halo}\n", f"{_COMMAND}}}\n"])
def test_workloads_survive_being_stored(folder: Path, text: str) -> None:
    workload = _plan(text, folder).workload
    assert Workload.of_plain(workload.plain()) == workload
    assert Workload.of_plain(asdict(workload)) == workload  # as recordings keep it


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("benchmark: {}", "either a pattern in Python or a command"),
        ("benchmark: {python: halo.py, command: ls, output: osu}", "either a pattern"),
        ("benchmark: {python: gone.py:Halo}", "there is no pattern file"),
        ("benchmark: {python: halo.py, output: osu}", "a pattern needs no output format"),
        ("benchmark: {python: halo.py, name: a b}", "can't name a benchmark"),
        ("benchmark: {command: ./gone, output: osu}", "there is no program './gone'"),
        ("benchmark: {command: no-such-program-, output: osu}", "there is no program"),
        ("benchmark: {command: ./program}", "the format of the command's output is missing"),
        ("benchmark: {command: './program {size}', output: osu}", "{size} is not a placeholder"),
        ("benchmark: {python: halo.py}\nworkload: {operation: ring}", "operation of its own"),
        ("benchmark: {python: halo.py}\nworkload: {backend: xccl}", "does not run on the backend"),
        (f"{_COMMAND}}}\nworkload: {{backend: ipc-put}}", "has no backend ipc-put"),
        (
            f"{_COMMAND}}}\nworkload: {{backend: xccl}}\ntiming: {{mode: batched}}",
            "a command has no batched mode",
        ),
        (
            f"{_COMMAND}}}\nworkload: {{backend: xccl}}\nguard_operations: [alltoall]",
            "a command can't have guard operations",
        ),
        ("workload: {backend: command}", "needs a command"),
        ("workload: {ranks: 1}", "1 is out of range"),
        ("benchmark: {python: halo.py}\nworkload: {ranks: 1}", "1 is out of range"),
        (
            "benchmark: {python: halo.py}\nworkload: {sizes: [1]}\nguard_operations: [broadcast]",
            "1 B is less than one element of float32",
        ),
        (
            "benchmark: {python: halo.py}\nguard_operations: [incast]",
            "the backend python-host does not know the operation incast",
        ),
        ("workload: {backend: python-host}\ntiming: {mode: batched}", "has no batched mode"),
        (
            "benchmark: {python: halo.py}\nslurm: {}\naggressor: {pattern: incast, nodes: 2}",
            "works with the native benchmark only",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(folder: Path, text: str, problem: str) -> None:
    with pytest.raises((CampaignError, DocumentError)) as caught:
        _plan(text + "\n", folder)
    assert problem in str(caught.value)
    assert caught.value.line is not None
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "named", "line", "problem", "hint"),
    [
        (
            _HALO + "def x(:\n    pass\n",
            ":Halo",
            6,
            "not valid Python: invalid syntax",
            "fix the benchmark's file",
        ),
        (_HALO, ":Hallo", None, "there is no class 'Hallo'", "nearest: Halo"),
        ("import os\n", ":Halo", None, "there is no class 'Halo'", "classes there: none"),
    ],
)
def test_a_pattern_that_is_not_there_is_found_without_ranks(
    folder: Path, text: str, named: str, line: int | None, problem: str, hint: str
) -> None:
    (folder / "halo.py").write_text(text)
    with pytest.raises(CampaignError) as caught:
        _plan(f"benchmark: {{python: halo.py{named}}}\n", folder)
    assert problem in caught.value.message
    assert (caught.value.file, caught.value.line) == (folder.resolve() / "halo.py", line)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "class Halo:\n    pass\n",
        "from elsewhere import *\n",
        "from elsewhere import Halo\n",
        "try:\n    from elsewhere import Halo\nexcept ImportError:\n    Halo = None\n",
        "if True:\n" + "".join(f"    {line}\n" for line in _HALO.splitlines()),
        "globals()['Halo'] = 1\n",
        "a, Halo = 1, 2\n",
    ],
)
def test_what_can_not_be_told_without_running_it_is_left_to_the_ranks(
    folder: Path, text: str
) -> None:
    (folder / "halo.py").write_text(text)
    assert _plan("benchmark: {python: halo.py:Halo}\n", folder).workload.own is not None


def test_names_of_own_operations() -> None:
    assert Operation("own:halo") is Operation("own:halo")
    assert Operation("own:halo") not in list(Operation)
    assert Operation("own:halo").is_own
    assert not Operation.RING.is_own
    for word in ("own:", "own: x", "halo", "own:-x", "own:" + "x" * 60):
        with pytest.raises(ValueError, match="is not a valid Operation"):
            Operation(word)
