"""Whatever stands behind a command, it ends with a result or with an error in words.

``COMMTUNE_EXAMPLES=3000`` tries more than the default number of command lines.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import database_values as values
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from commtune import cli
from commtune.errors import CommtuneError

#: What ``cli.main`` turns into words.
_IN_WORDS = (CommtuneError, OSError, UnicodeEncodeError, SystemExit)
_EXAMPLES = int(os.environ.get("COMMTUNE_EXAMPLES", "60"))

#: Those that only read: others measure, build, or change what they are told to.
_COMMANDS = (
    "status", "show", "best", "profiles", "export", "report", "plot", "findings", "spaces list",
    "spaces show", "spaces explain", "spaces validate", "systems list", "systems show",
    "systems reference-settings", "systems validate", "db path",
)  # fmt: skip
_FLAGS = (
    "--db", "--op", "--size", "--bytes", "--format", "-o", "--nodes", "--ranks", "--system",
    "--json", "--help", "--nosuch", "-x",
)  # fmt: skip
_WORDS = (
    "x", "a/b", "", "-", "--", "0", "-1", "9" * 5000, "1e400", "nan", "\udcff", "\x1b[2J",
    "$(id)", "x" * 5000, "/" + "x" * 5000 + ".yaml", "/dev/zero", "/dev/null", "~nosuchuser/x",
    "nccl", "mpich-host", "NCCL_ALGO", "NCCL_ALGO=²", "A=", "=", "perlmutter", "auto", "env",
    "postgresql:/u:pw@h/x", "postgresql://u@h:port/x", "sqlite://", "sqlite:////x\udcff",
    "allreduce", "bcast", "64KiB", "1 B", "²", "/dev/full/x", "2",
)  # fmt: skip
_LINES = st.tuples(
    st.sampled_from(_COMMANDS),
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(_WORDS)),
            st.tuples(st.sampled_from(_FLAGS), st.sampled_from(_WORDS)),
        ),
        max_size=3,
    ),
).map(lambda line: [*line[0].split(), *(word for words in line[1] for word in words)])


def _filled_database(folder: Path) -> Path:
    """With a campaign of one profile: in an empty one, no name is looked up."""
    file = folder / "commtune.db"
    values.fill_database(f"sqlite:///{file}")
    return file


@pytest.mark.parametrize("words", ["show", "verify", "best --op allreduce --system"])
def test_a_name_of_bytes_that_are_no_text_is_refused_in_words(words: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "commtune.cli", *words.split(), os.fsdecode(b"\xff")]
    environment = {**os.environ, "COMMTUNE_DB": str(_filled_database(tmp_path))}
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert said.returncode == 2
    assert said.stderr.startswith("commtune: '\\udcff' is not UTF-8 text\n")


def test_odd_command_lines_end_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COMMTUNE_DB", str(_filled_database(tmp_path)))
    application = cli.make_app()

    @settings(max_examples=_EXAMPLES)
    @given(_LINES)
    # What once ended in a traceback.
    @example(["status", "--db", "postgresql://u@h:port/x"])
    @example(["status", "--db", "/tmp/\udcff.db"])
    @example(["spaces", "validate", "/dev/zero"])
    def end_in_words(words: list[str]) -> None:
        monkeypatch.setattr(sys, "argv", ["commtune", *words])
        out = io.TextIOWrapper(io.BytesIO(), errors="backslashreplace")
        with redirect_stdout(out), redirect_stderr(out):
            try:
                application(words, standalone_mode=False)
            except _IN_WORDS:
                pass
            except Exception as error:
                # Errors of usage know how they are shown.
                if not hasattr(error, "show"):
                    raise

    end_in_words()
