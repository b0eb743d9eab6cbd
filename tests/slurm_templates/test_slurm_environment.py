"""Hostile values: bash runs the rendered script, and a real `env` says what arrived."""

from __future__ import annotations

import os
import re
import shutil
import socket
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hostile_values import NASTY, expected
from hypothesis import given, settings
from hypothesis import strategies as st

from commtune import process
from commtune.errors import UserError
from commtune.model import PROTECTED_NAMES
from commtune.slurm_templates.quoting import ShellCode
from commtune.slurm_templates.rendering import Job, Step, render_block

#: What bash, and the script itself, add to the environment of what they start.
_OWN = {"PWD", "SHLVL", "_", "SLURM_EXPORT_ENV"}


def delivered(
    folder: Path, environment: dict[str, str], name: str = "run", job: dict[str, str] | None = None
) -> dict[bytes, bytes]:
    """The environment that a program at the end of a rendered script finds."""
    output, ended = str(folder / f"{name}.out"), folder / f"{name}.exit"
    step = Step(("/usr/bin/env", "-0"), output, str(ended), environment, time_limit_s=99)
    asked = Job("nasty", 1, 1, 60, "job.out", environment=job or {})
    run_block(folder, asked, step)
    assert status(ended) == 0
    entries = Path(output).read_bytes().split(b"\0")[:-1]
    parts = [entry.partition(b"=") for entry in entries]
    return {before: after for before, _, after in parts}


def run_block(folder: Path, job: Job, *steps: Step, **shell: str) -> str:
    """Runs the script of a block in a new folder for the block itself."""
    place = folder / "block"
    place.mkdir()
    try:
        return run_script(folder, render_block(job, steps, str(place)), **shell)
    finally:
        shutil.rmtree(place)


def status(exit_file: Path) -> int:
    """The exit status in an exit file, which holds one line of three numbers."""
    text = exit_file.read_text()
    assert re.fullmatch(r"\d+ \d+\.\d{6} \d+\.\d{6}\n", text)
    return int(text.split()[0])


def run_script(folder: Path, script: str, **shell: str) -> str:
    """Runs a script as sbatch would: by its path, in a folder."""
    file = folder / "job.sh"
    file.write_bytes(script.encode("ascii"))
    ended = process.run_process(
        ["/bin/bash", file], environment={"HOME": str(folder), **shell}, timeout_s=99,
        cwd=folder, whole_output=True,
    )  # fmt: skip
    assert ended.exit_code == 0, ended.output
    return ended.output


def test_nasty_values_arrive_byte_by_byte(tmp_path: Path) -> None:
    asked = {f"NASTY_{i}": value for i, value in enumerate(NASTY)}
    found = delivered(tmp_path, asked)
    assert {k: v for k, v in found.items() if k.startswith(b"NASTY_")} == expected(asked)
    assert not (tmp_path / "RAN").exists()


def test_nothing_of_the_login_shell_comes_along(tmp_path: Path) -> None:
    step = Step(
        ("env", "-0"),
        str(tmp_path / "out"),
        str(tmp_path / "exit"),
        {"MINE": "1"},
        time_limit_s=99,
    )
    job = Job("clean", 1, 1, 60, "job.out", environment={"PINNED": "`x`"})
    run_block(
        tmp_path, job, step, PATH="/home/me/bin:/usr/bin:/bin", NCCL_ALGO="Ring", IFS="x",
        CUDA_VISIBLE_DEVICES="3", SLURM_JOB_ID="7", SLURM_MPI_TYPE="pmi2", SLURM_CPU_BIND="none",
        SRUN_CPUS_PER_TASK="3", **{"BASH_FUNC_env%%": "() { echo leaked; }"},
    )  # fmt: skip
    found = names_in((tmp_path / "out").read_bytes())
    mine = found - site_variables(tmp_path) - _OWN
    assert mine == {"HOME", "MINE", "PINNED", "SLURM_JOB_ID"}
    run_block(tmp_path, job, step, CUDA_VISIBLE_DEVICES="3", SLURM_JOB_GPUS="3")
    assert b"CUDA_VISIBLE_DEVICES=3\0" in (tmp_path / "out").read_bytes()


def test_what_keeps_hardware_safe_stays(tmp_path: Path) -> None:
    set_here = dict.fromkeys(PROTECTED_NAMES, "0")
    step = Step(("env", "-0"), str(tmp_path / "out"), str(tmp_path / "exit"), {}, time_limit_s=99)
    job = Job("safe", 1, 1, 60, "job.out", environment={PROTECTED_NAMES[0]: "0"})
    run_block(tmp_path, job, step, **set_here)
    entries = (tmp_path / "out").read_bytes().split(b"\0")
    for name in PROTECTED_NAMES:
        assert f"{name}=0".encode() in entries


@pytest.mark.parametrize("name", PROTECTED_NAMES)
def test_a_job_does_not_replace_what_its_node_set(tmp_path: Path, name: str) -> None:
    step = Step(("printenv", name), str(tmp_path / "out"), str(tmp_path / "exit"), time_limit_s=99)
    job = Job("pinned", 1, 1, 60, "job.out", environment={name: "2"})
    run_block(tmp_path, job, step)
    assert (tmp_path / "out").read_text() == "2\n"  # no node said anything
    (tmp_path / "out").unlink()
    for before, shell in (("", {name: "0"}), (f"export {name}=0", {})):
        place = tmp_path / f"block-{len(before)}"
        place.mkdir()
        script = render_block(replace(job, before=ShellCode(before)), (step,), place)
        (tmp_path / "job.sh").write_text(script)
        ended = process.run_process(
            ["/bin/bash", tmp_path / "job.sh"], environment=shell, timeout_s=99, cwd=tmp_path
        )
        assert ended.exit_code == 3
        assert f"commtune: {name}=0 is set on {socket.gethostname()} to keep" in ended.output
        assert "this job asks for 2: remove it from the pins of the campaign" in ended.output
        assert (place / "finished").read_text().startswith("3 ")
        assert not (tmp_path / "out").exists()


def names_in(entries: bytes) -> set[str]:
    return {os.fsdecode(entry.partition(b"=")[0]) for entry in entries.split(b"\0")[:-1]}


def site_variables(folder: Path) -> set[str]:
    """What this machine's /etc/profile sets for everybody."""
    words = ["/bin/bash", "-c", 'export PATH="/usr/bin:/bin"; . /etc/profile; env -0 >site']
    process.run_process(words, environment={"HOME": str(folder)}, timeout_s=99, cwd=folder)
    return names_in((folder / "site").read_bytes()) - {"HOME"} - _OWN


_TEXT = st.text(
    alphabet=st.one_of(
        st.sampled_from(list("'\"\\$`();&|<>\n\r\t #!*?[]{}~=%-aRAN")),
        st.characters(exclude_characters="\0", exclude_categories=["Cs"]),
        st.integers(0xDC80, 0xDCFF).map(chr),  # bytes that are no UTF-8, as os.environ shows them
    ),
    max_size=60,
)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(_TEXT, min_size=5, max_size=40))
def test_any_values_arrive_byte_by_byte(values: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asked = {f"ANY_{i}": value for i, value in enumerate(values)}
        found = delivered(Path(folder), asked)
        assert {k: v for k, v in found.items() if k.startswith(b"ANY_")} == expected(asked)
        assert sorted(p.name for p in Path(folder).iterdir()) == ["job.sh", "run.exit", "run.out"]


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(_TEXT, min_size=1, max_size=20))
def test_any_arguments_arrive_byte_by_byte(values: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = ("/usr/bin/printf", "%s\\0", *values)
        step = Step(command, str(folder / "out"), str(folder / "exit"), time_limit_s=99)
        run_block(folder, Job("args", 1, 1, 60, "job.out"), step)
        found = (folder / "out").read_bytes().split(b"\0")[:-1]
        assert found == [os.fsencode(value) for value in values]


@pytest.mark.parametrize("locale", ["C", "C.UTF-8", "POSIX"])
def test_no_locale_reads_the_script_differently(tmp_path: Path, locale: str) -> None:
    found = delivered(tmp_path, {"A": "\u00fc\u6f22\\'"}, job={"LC_ALL": locale})
    assert found[b"A"] == "\u00fc\u6f22\\'".encode()


@pytest.mark.parametrize("name", ["'; touch RAN; '", "a b", "$(touch RAN)", "line\nbreak", "-n"])
def test_nasty_paths_get_the_output_and_run_nothing(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    assert delivered(tmp_path, {"A": "1"}, f"{name}/run")[b"A"] == b"1"
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([name, "job.sh"])


def test_one_launch_leaves_nothing_for_the_next(tmp_path: Path) -> None:
    first = Step(
        ("env", "-0"),
        str(tmp_path / "1"),
        str(tmp_path / "1x"),
        {"A": "1", "B": "x"},
        time_limit_s=99,
    )
    second = Step(
        ("env", "-0"), str(tmp_path / "2"), str(tmp_path / "2x"), {"A": "2"}, time_limit_s=99
    )
    run_block(tmp_path, Job("two", 1, 1, 60, "job.out"), first, second)
    found = (tmp_path / "2").read_bytes()
    assert b"A=2\0" in found and b"B=" not in found


def test_the_exit_status_of_each_launch_is_kept(tmp_path: Path) -> None:
    commands = [("sh", "-c", "exit 7"), ("no-such-program",), ("true",)]
    steps = tuple(
        Step(words, str(tmp_path / f"{i}.out"), str(tmp_path / f"{i}.exit"), time_limit_s=99)
        for i, words in enumerate(commands)
    )
    run_block(tmp_path, Job("codes", 1, 1, 60, "job.out"), *steps)
    assert [status(tmp_path / f"{i}.exit") for i in range(3)] == [7, 127, 0]
    assert "no-such-program" in (tmp_path / "1.out").read_text()


def test_an_older_shell_asks_date_for_the_time(tmp_path: Path) -> None:
    # EPOCHREALTIME came with bash 5; RHEL 8 and SLES 15 have 4.4.
    job = Job("old", 1, 1, 60, "job.out", before=ShellCode("unset -v EPOCHREALTIME"))
    step = Step(("true",), str(tmp_path / "out"), str(tmp_path / "exit"), time_limit_s=99)
    before = time.time()
    run_block(tmp_path, job, step)
    assert status(tmp_path / "exit") == 0
    assert before <= float((tmp_path / "exit").read_text().split()[1]) <= time.time()


@pytest.mark.parametrize("words", [("if",), ("A=1", "env"), ("export", "A=1"), ("exit", "0")])
def test_a_program_is_never_a_word_of_the_shell(tmp_path: Path, words: tuple[str, ...]) -> None:
    step = Step(words, str(tmp_path / "out"), str(tmp_path / "exit"), time_limit_s=99)
    run_block(tmp_path, Job("shell", 1, 1, 60, "job.out"), step)
    assert status(tmp_path / "exit") == 127


@pytest.mark.parametrize(
    "name",
    ["", "1A", "A-B", "A B", "A=B", "A;B", "$(touch RAN)", "\u00fc", "A\n", "PATH", "IFS", "_",
     "BASH_ENV", "UID", "RANDOM", "SECONDS", "SHELLOPTS", "SLURM_JOB_ID", "SBATCH_ACCOUNT",
     "BASH_FUNC_ls"],
)  # fmt: skip
def test_names_that_are_refused(name: str) -> None:
    step = Step(("env",), "out", "exit", {name: "1"}, time_limit_s=99)
    with pytest.raises(UserError):
        render_block(Job("names", 1, 1, 60, "job.out"), (step,), "block")
    with pytest.raises(UserError):
        render_block(Job("names", 1, 1, 60, "job.out", environment={name: "1"}), (), "block")


@pytest.mark.parametrize("value", ["a\0b", "\0", "\ud800"])
def test_values_that_are_refused_by_name(value: str) -> None:
    step = Step(("env",), "out", "exit", {"NCCL_ALGO": value}, time_limit_s=99)
    with pytest.raises(UserError, match=r"^NCCL_ALGO: "):
        render_block(Job("values", 1, 1, 60, "job.out"), (step,), "block")
    with pytest.raises(UserError, match=r"^NCCL_ALGO: "):
        render_block(
            Job("values", 1, 1, 60, "job.out", environment={"NCCL_ALGO": value}), (), "block"
        )
