"""The command line as a whole: its tables, its help, its completion."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator

import pytest

from commtune import cli


def declared() -> Iterator[tuple[str, str]]:
    """Every command by its full name, and its module."""
    for entries in cli._COMMANDS.values():
        yield from entries.items()


@pytest.mark.parametrize(("name", "module"), [pytest.param(*one, id=one[0]) for one in declared()])
def test_the_summary_is_the_first_line_of_the_docstring(name: str, module: str) -> None:
    command = cli._load(name, module)
    assert command.callback is not None
    paragraph = (inspect.getdoc(command.callback) or "").partition("\n\n")[0]
    assert " ".join(paragraph.split()) == cli._summary(name, module) != ""


@pytest.mark.parametrize("words", [[], ["tune"], ["spaces"], ["db", "path"]])
def test_help_has_a_short_option_and_whole_summaries(words: list[str]) -> None:
    said = subprocess.run(
        [sys.executable, "-m", "commtune.cli", *words, "-h"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "-h, --help" in said
    summaries = said.partition("Options:")[2].replace("allreduce, broadcast, ...", "")
    assert "..." not in summaries


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_the_names_of_commands(
    shell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_COMMTUNE_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("COMP_WORDS", "commtune re")
    monkeypatch.setenv("COMP_CWORD", "1")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "commtune re")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    said = subprocess.run(
        [sys.executable, "-m", "commtune.cli"], capture_output=True, text=True, check=False
    ).stdout
    assert {"record", "rename", "report"} <= set(said.replace('"', " ").replace(":", " ").split())


def test_who_calls_it_from_python_is_told_of_steps_and_damage_as_before() -> None:
    """It had set its own printers for the rest of the caller's process."""
    program = (
        "from commtune.cli import ON_DAMAGE, ON_STEP, main\n"
        "before = ON_DAMAGE.get(), ON_STEP.get()\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "assert before == (ON_DAMAGE.get(), ON_STEP.get())\n"
    )
    subprocess.run([sys.executable, "-c", program, "--help"], check=True)
