"""Exports loaded by the real shells and module systems: values arrive exactly, nothing runs."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from components import require_component
from documents import nasty_values, with_values

from commtune import process
from commtune.errors import ExportRefused
from commtune.export import render

#: A program that prints its environment with NUL after each entry, whatever the locale.
_PRINT = f'{sys.executable} -I -c \'import os; os.write(1, b"<<<" + ' + (
    'b"\\0".join(k + b"=" + v for k, v in os.environb.items()) + b">>>")\''
)


@dataclass(frozen=True)
class Loader:
    """How a shell loads a file: ``{file}`` stands for it."""

    format: str
    arguments: tuple[str, ...]
    file_name: str = "profile"
    lines: str = ". {file}\n"


LOADERS = {
    "dash": Loader("sh", ("dash",)),
    "bash": Loader("sh", ("bash", "--norc")),
    "bash-posix": Loader("sh", ("bash", "--posix")),
    "tcsh": Loader("csh", ("tcsh", "-f"), lines="source {file}\n"),
    "fish": Loader("fish", ("fish", "--no-config"), lines="source {file}\n"),
}


def environment_after(
    arguments: tuple[str, ...], script: str, folder: Path, **more: str
) -> tuple[dict[str, str], str]:
    """The environment of a program that the script starts last, and all that was printed."""
    file = folder / "script"
    file.write_text(script + _PRINT + "\n")
    base = {"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8", **more}
    done = process.run(
        [*arguments, file], environment=base, timeout_s=60, cwd=folder, whole_output=True
    )
    assert "<<<" in done.output, done.output
    body = done.output.partition("<<<")[2].rpartition(">>>")[0]
    return dict(entry.split("=", 1) for entry in body.split("\0")), done.output


def assert_same(found: dict[str, str], wanted: dict[str, str]) -> None:
    got = {name: found.get(name) for name in wanted}
    wrong = {n: (value, got[n]) for n, value in wanted.items() if got[n] != value}
    assert not wrong


def carried_by(format: str, values: dict[str, str]) -> dict[str, str]:
    """The values that a format accepts."""

    def accepted(name: str) -> bool:
        try:
            render(format, with_values({name: values[name]}))
        except ExportRefused as refusal:
            assert name in refusal.message
            return False
        return True

    return {name: value for name, value in values.items() if accepted(name)}


@pytest.mark.parametrize("shell", LOADERS)
@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_a_shell_gets_every_value_exactly_and_runs_none(
    shell: str, locale: str, tmp_path: Path
) -> None:
    loader = LOADERS[shell]
    require_component(shell, shutil.which(loader.arguments[0]) is not None)
    values = nasty_values(str(tmp_path / "canary"))
    file = tmp_path / loader.file_name
    file.write_text(render(loader.format, with_values(values)))
    script = loader.lines.format(file=file)
    found, _ = environment_after(loader.arguments, script, tmp_path, LC_ALL=locale)
    assert_same(found, values)
    assert not (tmp_path / "canary").exists()
