"""Nothing that a program started is left when it ends, is ended, or its controller is killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from late_limits import begin_when
from left_over import living, wait_until_living
from waiting import PATIENCE_S, wait_for

from commtune import process, process_trees

_ROOT = Path(process.__file__).parent.parent

#: Parts of programs; each ends up with processes that want to live ten minutes.
_DEAF = "import signal, time\nfor n in (1, 2, 3, 15): signal.signal(n, signal.SIG_IGN)\n"
_STAY = "import time\ntime.sleep(600)\n"
_TREES = {
    "a child": "import os\nos.fork()\n" + _STAY,
    "deaf children": "import os\n" + _DEAF + "os.fork()\nos.fork()\n" + _STAY,
    "a session of its own": _DEAF + "import os\nif os.fork() == 0: os.setsid()\n" + _STAY,
    "a daemon": _DEAF
    + "import os\nif os.fork() == 0:\n  os.setsid()\n  between = os.getpid()\n"
    + "  if os.fork(): os._exit(0)\n"
    # Until the one between is gone, there are three.
    + "  while os.getppid() == between: pass\n"
    + "  os.chdir('/')\n  for fd in (0, 1, 2): os.close(fd)\n"
    + _STAY,
    "a daemon without environment": "import os, sys\nif os.fork() == 0:\n  os.setsid()\n"
    + "  if os.fork(): os._exit(0)\n"
    + "  os.execve(sys.executable, [sys.executable, '-S', '-c', 'import time; time.sleep(600)',"
    + " sys.argv[1]], {})\n"
    + _STAY,
    "a stopped child": "import os, signal\nif os.fork() == 0: os.kill(os.getpid(), 19)\n" + _STAY,
    "a tree of fifty": _DEAF
    + "import os\nfor _ in range(5):\n  if os.fork() == 0:\n    os.setsid()\n"
    + "    for _ in range(9): \n      if os.fork() == 0: break\n    break\n"
    + _STAY,
}
_COUNTS = {"a tree of fifty": 51, "deaf children": 4}


@pytest.fixture
def word() -> Iterator[str]:
    """A word for command lines; whoever still has it at the end is ended, and the test fails."""
    word = f"left-over-{uuid.uuid4().hex}"
    yield word
    left = living(word)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == {}


@pytest.mark.parametrize(
    ("kind", "marker"), [*((kind, "") for kind in _TREES), ("a daemon", "run1")]
)
def test_over_its_time_a_program_is_ended_with_all_it_started(
    kind: str, marker: str, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = [sys.executable, "-S", "-c", _TREES[kind], word]
    begin_when(monkeypatch, lambda: len(living(word)) >= _COUNTS.get(kind, 2))
    done = process.run_process(program, environment={}, timeout_s=0.1, marker=marker)
    assert done.timed_out
    assert living(word) == {}


@pytest.mark.parametrize("kind", list(_TREES))
def test_what_a_program_leaves_behind_is_ended_with_it(kind: str, word: str) -> None:
    """The program itself exits as if nothing was; its children live on."""
    code = (
        "import subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-S', '-c', *sys.argv[1:]])\n"
        "import time; time.sleep(0.4)\n"
    )
    program = [sys.executable, "-S", "-c", code, _TREES[kind], word]
    done = process.run_process(program, environment={}, timeout_s=PATIENCE_S)
    assert done.exit_code == 0 and not done.timed_out
    assert living(word) == {}


def test_processes_that_flee_from_number_to_number_are_caught(word: str) -> None:
    """Four chains: each process starts its successor in a new session and is gone."""
    code = (
        _DEAF + "import os\nend = time.time() + 60\n"
        "for _ in range(4):\n  if os.fork() == 0: break\nelse: time.sleep(600)\n"
        "while time.time() < end:\n  os.setsid()\n  time.sleep(0.005)\n"
        "  if os.fork(): os._exit(0)\n"
    )
    program = [sys.executable, "-S", "-c", code, word]
    assert process.run_process(program, environment={}, timeout_s=1.0).timed_out
    assert living(word) == {}


def test_a_launcher_that_is_ended_may_clean_up_first(
    tmp_path: Path, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "import signal, sys, time, pathlib\n"
        "def clean(*_): pathlib.Path(sys.argv[2]).write_text('clean'); sys.exit(0)\n"
        "signal.signal(15, clean)\nopen('ready', 'w')\ntime.sleep(600)\n"
    )
    note = tmp_path / "note"
    program = [sys.executable, "-S", "-c", code, word, str(note)]
    begin_when(monkeypatch, (tmp_path / "ready").exists)
    monkeypatch.setattr(process, "_GRACE_S", 60.0)  # it needs no more than it takes
    assert process.run_process(program, environment={}, timeout_s=0.1, cwd=tmp_path).timed_out
    assert note.read_text() == "clean"


def test_children_that_others_started_are_left_alone(word: str) -> None:
    bystander = subprocess.Popen([sys.executable, "-S", "-c", _STAY, word])
    try:
        process.run_process(["/bin/sleep", "600"], environment={}, timeout_s=0.2)
        process.run_process(["/bin/true"], environment={}, timeout_s=PATIENCE_S)
        assert list(living(word)) == [bystander.pid]
    finally:
        bystander.kill()
        bystander.wait()


def test_orphans_that_ended_by_themselves_are_collected() -> None:
    daemon = "(sleep 0.1 &) ; (true &) ; sleep 0.3"
    before = {child.pid for child in psutil.Process().children()}
    for _ in range(3):
        shell = ["/bin/sh", "-c", daemon]
        assert process.run_process(shell, environment={}, timeout_s=PATIENCE_S).ok
    # Earlier tests kill controllers of their own, whose orphans come to this process as well.
    left = [child for child in psutil.Process().children() if child.pid not in before]
    assert left == []


def test_runs_in_several_threads_leave_each_other_alone() -> None:
    family = "for i in 1 2 3 4 5 6; do (sleep 0.02; true) & done; wait; exit 7"

    def some_runs(_: int) -> list[int | None]:
        shell = ["/bin/sh", "-c", family]
        environment = {"PATH": "/usr/bin:/bin"}
        return [
            process.run_process(shell, environment=environment, timeout_s=PATIENCE_S).exit_code
            for _ in range(8)
        ]

    with ThreadPoolExecutor(4) as pool:
        codes = [code for found in pool.map(some_runs, range(4)) for code in found]
    assert codes == [7] * 32


_CONTROLLER = """
import signal, sys
from commtune import process
def interrupt(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGTERM, interrupt)
print("ready", flush=True)
try:
    process.run_process(
        [sys.executable, "-S", "-c", sys.argv[1], *sys.argv[2:]],
        environment={}, timeout_s=600, marker=sys.argv[2],
    )
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(130)
"""


def _controller(code: str, word: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _CONTROLLER, code, word],
        env={"PYTHONPATH": str(_ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )


def _is_in(folder: str, word: str) -> bool:
    """Whether a process with the word works in a folder."""
    for pid in living(word):
        with contextlib.suppress(OSError):  # gone meanwhile
            if str(Path(f"/proc/{pid}/cwd").readlink()) == folder:
                return True
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("kind", ["deaf children", "a daemon", "a tree of fifty"])
def test_ctrl_c_ends_the_tree(kind: str, number: signal.Signals, word: str) -> None:
    with _controller(_TREES[kind], word) as controller:
        wait_until_living(word, 1 + _COUNTS.get(kind, 2))
        controller.send_signal(number)
        said, _ = controller.communicate(timeout=PATIENCE_S)
    assert (controller.returncode, said) == (130, "ready\ninterrupted\n")
    assert living(word) == {}


def test_ctrl_c_at_any_moment_leaves_nothing(word: str) -> None:
    """Twice in a row, as impatient people do; at the start of the child, and later."""
    for pause_s in (0.0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.2):
        with _controller(_TREES["a daemon"], word) as controller:
            assert controller.stdout is not None
            controller.stdout.readline()
            signal.sigtimedwait([], pause_s)
            controller.send_signal(signal.SIGINT)
            signal.sigtimedwait([], 0.003)
            controller.send_signal(signal.SIGINT)
            controller.communicate(timeout=PATIENCE_S)
        # The second one may meet Python as it goes down; the exit code says little then.
        assert controller.returncode != 0
        assert living(word) == {}


@pytest.mark.parametrize("kind", ["deaf children", "a session of its own", "a daemon"])
def test_what_a_killed_controller_left_is_found_by_its_marker(kind: str, word: str) -> None:
    with _controller(_TREES[kind], word) as controller:
        wait_until_living(word, 1 + _COUNTS.get(kind, 2))
        if kind == "a daemon":  # it goes there when nobody stands between any more
            wait_for(lambda: _is_in("/", word), "the daemon")
        controller.kill()
        controller.wait()
    assert len(living(word)) == _COUNTS.get(kind, 2)
    process_trees.end_marked({"some other run"})
    assert len(living(word)) == _COUNTS.get(kind, 2)
    process_trees.end_marked({word, "some other run"})
    assert living(word) == {}


def test_children_of_processes_that_end_meanwhile_are_none() -> None:
    for _ in range(300):
        child = subprocess.Popen(["true"])
        reaper = threading.Thread(target=child.wait)
        reaper.start()
        while reaper.is_alive():
            assert process_trees.child_pids(child.pid) == []
