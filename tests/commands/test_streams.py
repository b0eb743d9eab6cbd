"""Streams that are closed, full or terminals: what is said, and what reaches a terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from commtune.streams import escape_text

_COMMTUNE = (sys.executable, "-m", "commtune.cli")


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What a shell line does in which ``$@`` is commtune."""
    return subprocess.run(
        ["bash", "-c", line, "bash", *_COMMTUNE],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_full_disk_behind_the_output_is_said(tmp_path: Path) -> None:
    said = shell('"$@" spaces list > /dev/full', tmp_path)
    assert (said.returncode, said.stderr.splitlines()[0]) == (
        3,
        "commtune: no space left on device",
    )


def test_a_reader_that_goes_away_is_no_failure_of_the_command(tmp_path: Path) -> None:
    gone = 'exec 3> >(:); wait $!; "$@" '
    assert shell(f"{gone} db path >&3", tmp_path).returncode == 141
    noted = f"{gone} best --op all_reduce --bytes 8 2>&3"  # a note goes there first
    assert shell(noted, tmp_path).returncode == 141


def test_closed_streams_take_nothing_and_break_nothing(tmp_path: Path) -> None:
    said = shell('"$@" tune gone.yaml 2>&-', tmp_path)
    assert (said.returncode, said.stdout, said.stderr) == (2, "", "")
    said = shell('"$@" systems list >&-', tmp_path)
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")
    said = shell('"$@" db path <&- >&- 2>&-', tmp_path)
    assert said.returncode == 0


def test_names_that_are_no_text_can_be_printed(tmp_path: Path) -> None:
    said = shell("""cd "$(mktemp -dp . $'d\\xffXXX')" && "$@" init""", tmp_path)
    assert said.returncode == 0
    said = shell(
        """printf 'space: 2\\nname: x\\n' > $'\\xff.yaml'
"$@" spaces validate $'\\xff.yaml' --json""",
        tmp_path,
    )
    assert (said.returncode, said.stderr) == (2, "")


def test_suggested_commands_are_quoted(tmp_path: Path) -> None:
    said = shell("\"$@\" init '$(touch hit) b.yaml'", tmp_path)
    assert said.stdout.endswith(" tune '$(touch hit) b.yaml'\n")
    said = shell("\"$@\" init '$(touch hit) b.yaml'", tmp_path)
    assert said.stderr.endswith(" init '$(touch hit) b.yaml' --force\n")


HIDDEN = set("\x1b\x07\u202e\x9b\u200b")


def on_terminal(*words: str, folder: Path) -> str:
    """All that a command writes to the terminal that it is started in."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*_COMMTUNE, *words], cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs
    ):
        os.close(theirs)
        written = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # how Linux says that the other side was closed
                break
            if not part:
                break
            written += part
    os.close(ours)
    return written.decode()


def test_what_others_wrote_reaches_no_terminal_raw(tmp_path: Path) -> None:
    hidden = "\x1b]52;c;eA==\x07\x1b[8m\u202e\x9b2J\u200b"
    written = hidden.encode("unicode_escape").decode()
    (tmp_path / "x.yaml").write_text(
        f'space: 1\nname: x\nlibrary: "own{written}"\nsummary: "s{written}"\n'
        f'parameters: [{{name: V, kind: choice, values: ["a{written}"]}}]\n'
    )
    (tmp_path / "y.yaml").write_text(f'"a{written}b": 1\n')
    shown = on_terminal("spaces", "show", "./x.yaml", folder=tmp_path)
    assert f"own{written}" in shown and not HIDDEN & set(shown)
    refused = on_terminal("spaces", "validate", "./y.yaml", folder=tmp_path)
    assert f"a{written}b" in refused and not HIDDEN & set(refused)


def test_the_doctor_fits_its_lines_into_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("NO_COLOR", raising=False)
    colored = on_terminal("doctor", folder=tmp_path).partition("To fix:")[0]
    # How wide the columns are depends on what the machine has.
    assert re.search(r"^python +\x1b\[32mok\x1b\[0m +Python", colored, re.MULTILINE)
    monkeypatch.setenv("NO_COLOR", "1")
    lines = on_terminal("doctor", folder=tmp_path).partition("To fix:")[0].splitlines()
    assert "\x1b" not in "".join(lines)
    indent = " " * lines[0].index("what")
    assert any(line.startswith(indent) for line in lines)
    # A path is never cut.
    assert all(len(line) <= 60 or " " not in line.strip() for line in lines if line[:1] == " ")


def test_programs_get_exactly_what_is_written(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(
        'space: 1\nname: x\nlibrary: "own\\u202e"\nparameters: [{name: V, kind: bool}]\n'
    )
    assert "own\u202e" in shell('"$@" spaces show ./x.yaml', tmp_path).stdout


def test_plain_text_is_left_as_it_is() -> None:
    text = "GPU 0: 1.5 µs\t64 KiB → ok, naïve, 数\n"
    assert escape_text(text) == text
