"""Programs that are run: what they get, what they say, and how they end."""

from __future__ import annotations

import json
import os
import signal
import sys
import tracemalloc
from pathlib import Path

import pytest
from late_limits import begin_when
from waiting import PATIENCE_S

from commtune import process
from commtune.errors import EnvironmentFault, MissingComponent, UserError

_SHELL = ["/bin/sh", "-c"]
_SAY_ARGUMENTS = "import json, sys; print(json.dumps(sys.argv[1:]))"


def run(*arguments: str, timeout_s: float = PATIENCE_S, **others: object) -> process.Completed:
    return process.run_process(arguments, environment={}, timeout_s=timeout_s, **others)  # type: ignore[arg-type]  # each test names the option it needs


def test_output_and_errors_come_together_in_order() -> None:
    done = run(*_SHELL, "echo one; echo two >&2; echo three")
    assert (done.output, done.exit_code, done.signal) == ("one\ntwo\nthree\n", 0, None)
    assert done.ok and not done.timed_out


@pytest.mark.parametrize("status", [1, 3, 127, 255])
def test_the_exit_status_is_kept(status: int) -> None:
    done = run(*_SHELL, f"exit {status}")
    assert (done.exit_code, done.signal, done.ok) == (status, None, False)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_the_signal_that_ended_it_is_kept(number: signal.Signals) -> None:
    done = run(*_SHELL, f"kill -{number.value} $$")
    assert (done.exit_code, done.signal, done.ok) == (None, number, False)


def test_over_its_time_it_is_timed_out_and_what_it_said_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_when(monkeypatch, (tmp_path / "said").exists)
    done = run(*_SHELL, "echo begun; : >said; sleep 600", timeout_s=0.1, cwd=tmp_path)
    assert done.timed_out and not done.ok
    assert done.output == "begun\n"


def test_a_time_limit_may_be_longer_than_the_kernel_can_count() -> None:
    assert run("/bin/true", timeout_s=1e9).ok


def test_the_environment_is_the_given_one_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "x")
    given = {"EMPTY": "", "SPACES": " a  b ", "LINES": "1\n2", "UMLAUT": "ä=ö"}
    done = process.run_process(["/usr/bin/env", "-0"], environment=given, timeout_s=PATIENCE_S)
    assert sorted(done.output.rstrip("\0").split("\0")) == sorted(
        f"{name}={value}" for name, value in given.items()
    )


def test_a_marker_is_the_only_variable_added() -> None:
    done = process.run_process(
        ["/usr/bin/env"], environment={"A": "1"}, timeout_s=PATIENCE_S, marker="run7"
    )
    assert sorted(done.output.split()) == ["A=1", "COMMTUNE_RUN_ID=run7"]


def test_arguments_arrive_unchanged() -> None:
    nasty = ["", " ", "a b", "*", "$HOME", "`id`", "--", "-n", "'\"\\", "a\nb", "ä€", "&;|<>"]
    done = run(sys.executable, "-c", _SAY_ARGUMENTS, *nasty)
    assert json.loads(done.output) == nasty


def test_it_reads_nothing_from_our_input() -> None:
    assert run("/bin/cat").output == ""


def test_it_runs_in_the_given_folder(tmp_path: Path) -> None:
    assert run("/bin/pwd", cwd=tmp_path).output == f"{tmp_path}\n"


def test_a_missing_program_is_named_with_what_to_do() -> None:
    with pytest.raises(MissingComponent) as refusal:
        run("/nonexistent/mpiexec", "-n", "2")
    assert refusal.value.message == "can't start /nonexistent/mpiexec: No such file or directory"
    assert refusal.value.hint == "run 'commtune doctor' to see what this machine has"


def test_a_missing_folder_is_not_taken_for_a_missing_program(tmp_path: Path) -> None:
    with pytest.raises(MissingComponent) as refusal:
        run("/bin/true", cwd=tmp_path / "gone")
    assert refusal.value.message == (
        f"can't start /bin/true in {tmp_path / 'gone'}: No such file or directory"
    )


def test_what_no_program_can_be_given_is_refused() -> None:
    with pytest.raises(UserError, match="embedded null byte in its arguments or environment"):
        run("/bin/true", "a\0b")
    with pytest.raises(UserError, match="embedded null byte in its arguments or environment"):
        process.run_process(["/bin/true"], environment={"A": "a\0b"}, timeout_s=PATIENCE_S)


def test_without_room_for_output_nothing_is_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with pytest.raises(EnvironmentFault) as fault:
        run("/bin/true")
    assert fault.value.message == "no space for a program's output: No such file or directory"


def test_a_file_that_is_no_program_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("not a program")
    with pytest.raises(MissingComponent, match="Permission denied"):
        run(str(text))
    text.chmod(0o755)
    with pytest.raises(MissingComponent, match="Exec format error"):
        run(str(text))


def test_of_huge_output_the_tail_is_kept_and_nothing_else_read() -> None:
    tracemalloc.start()
    done = run(*_SHELL, "head -c 300000000 /dev/zero | tr '\\0' x; echo end")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert done.ok
    assert done.output == "x" * 3996 + "end\n"
    assert peak < 10_000_000


def test_all_output_is_kept_where_asked_for() -> None:
    assert len(run(*_SHELL, "seq 100000", whole_output=True).output.splitlines()) == 100_000


def test_output_that_is_no_text_is_shown_as_far_as_it_is() -> None:
    assert run(*_SHELL, "printf 'a\\377\\200b'").output == "a��b"


def test_signal_handlers_are_ours_again_afterwards() -> None:
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    run("/bin/true")
    after = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    assert after == before


def test_no_file_of_ours_stays_open() -> None:
    run("/bin/true")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208  # counts descriptors, no paths
    for _ in range(5):
        run("/bin/true")
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_replace_becomes_the_program_or_says_that_it_is_missing() -> None:
    code = (
        "from commtune import process;"
        "process.replace_process("
        "['sh', '-c', 'echo $A; exit 7'], {'A': 'b', 'PATH': '/usr/bin:/bin'})"
    )
    root = str(Path(process.__file__).parent.parent)
    done = process.run_process(
        [sys.executable, "-c", code], environment={"PYTHONPATH": root}, timeout_s=PATIENCE_S
    )
    assert (done.exit_code, done.output) == (7, "b\n")
    with pytest.raises(MissingComponent, match="can't start nonexistent-program"):
        process.replace_process(["nonexistent-program"], {"PATH": "/usr/bin"})
