"""A program that makes one thing after the other: what it says, how it ends, what it leaves."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from left_over import living
from waiting import PATIENCE_S, wait_for

from commtune.errors import MissingComponent
from commtune.process import StandingProcess

_SIGN = "done with it"
#: Does with each line what it says; an empty one ends it.
_CODE = f"""
import os, signal, subprocess, sys, time
def say(text): sys.stdout.write(text); sys.stdout.flush()
for line in sys.stdin:
    what = line.strip()
    if not what: break
    if what.startswith("exit "): sys.exit(int(what[5:]))
    if what == "die": os.kill(os.getpid(), 9)
    if what == "hang": time.sleep(600)
    if what == "deaf": signal.signal(15, signal.SIG_IGN); time.sleep(600)
    if "quiet" in what: os.close(1); os.close(2)
    if what == "quiet end": os._exit(3)
    if what == "quiet": time.sleep(600)
    if what == "flood": say("x" * 1_000_000 + "\\n")
    if what == "leave":
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", *sys.argv[1:]])
        sys.exit(5)
    if what == "pieces": say("{_SIGN[:4]}"); time.sleep(0.2); say("{_SIGN[4:]}\\n"); continue
    say(what + "\\n{_SIGN}\\n")
if "deaf at the end" in sys.argv: signal.signal(15, signal.SIG_IGN); time.sleep(600)
"""


@pytest.fixture
def word(tmp_path: Path) -> Iterator[str]:
    word = f"standing-{tmp_path.name}-{os.getpid()}"
    yield word
    assert living(word) == {}


@pytest.fixture
def standing(word: str) -> Iterator[StandingProcess]:
    made = _make(word)
    yield made
    made.end()


def _make(*words: str) -> StandingProcess:
    program = [sys.executable, "-S", "-c", _CODE, *words]
    return StandingProcess(program, environment={}, sign=_SIGN)


def test_it_is_started_once_and_answers_each_line(standing: StandingProcess, word: str) -> None:
    assert not standing.is_running
    first = standing.ask("one", PATIENCE_S)
    pids = set(living(word))
    assert first.ok and first.output == "one\n"
    for what in ("two", "pieces", "three"):
        done = standing.ask(what, PATIENCE_S)
        assert done.ok and done.exit_code == 0
    assert standing.is_running and set(living(word)) == pids


def test_its_cpu_time_is_told(standing: StandingProcess) -> None:
    # The system counts hundredths of a second, and a line takes less.
    wait_for(lambda: standing.ask("flood", PATIENCE_S).ok and standing.used_s() > 0, "CPU time")


def test_of_a_flood_the_end_is_kept(standing: StandingProcess) -> None:
    done = standing.ask("flood", PATIENCE_S)
    assert done.ok
    assert done.output.endswith("x\nflood\n") and len(done.output) == 4000


@pytest.mark.parametrize(
    ("what", "exit_code", "number"),
    [("exit 3", 3, None), ("exit 0", 1, None), ("die", None, signal.SIGKILL), ("leave", 5, None)],
)
def test_a_program_that_ends_over_a_line_says_how(
    standing: StandingProcess, word: str, what: str, exit_code: int | None, number: int | None
) -> None:
    done = standing.ask(what, PATIENCE_S)
    assert (done.exit_code, done.signal, done.timed_out) == (exit_code, number, False)
    assert not standing.is_running and living(word) == {}
    assert standing.ask("again", PATIENCE_S).output == "again\n"


def test_one_that_was_ended_between_two_lines_is_not_running(
    standing: StandingProcess, word: str
) -> None:
    assert standing.ask("one", PATIENCE_S).ok
    for pid in living(word):
        os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not standing.is_running, "its end")


@pytest.mark.parametrize("what", ["hang", "deaf"])
def test_over_its_time_it_is_ended_with_all_it_started(
    standing: StandingProcess, word: str, what: str
) -> None:
    assert standing.ask("one", PATIENCE_S).ok
    done = standing.ask(what, 0.3)
    assert done.timed_out and not done.ok
    assert not standing.is_running and living(word) == {}


def test_nobody_is_busy_waiting_for_one_that_closed_its_output(
    standing: StandingProcess,
) -> None:
    used_s = time.process_time()
    assert standing.ask("quiet", 2.0).timed_out
    # CPU time: a busy wait has most of these two seconds.
    assert time.process_time() - used_s < 0.5
    done = standing.ask("quiet end", PATIENCE_S)
    assert (done.exit_code, done.timed_out) == (3, False)


def test_what_does_not_go_by_itself_is_ended(word: str) -> None:
    standing = _make(word, "deaf at the end")
    assert standing.ask("one", PATIENCE_S).ok
    standing.end()
    assert living(word) == {}
    standing.end()  # a second time there is nothing to do


def test_ctrl_c_ends_it(standing: StandingProcess, word: str) -> None:
    def interrupt() -> None:
        wait_for(lambda: living(word), "the program's start")
        os.kill(os.getpid(), signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        standing.ask("hang", PATIENCE_S)
    interrupting.join()
    assert not standing.is_running and living(word) == {}


def test_a_program_that_is_missing_is_said() -> None:
    standing = StandingProcess(["/no/such/program"], environment={}, sign=_SIGN)
    with pytest.raises(MissingComponent, match="/no/such/program"):
        standing.ask("one", PATIENCE_S)
    assert not standing.is_running
