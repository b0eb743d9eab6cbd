"""What others use of the cores: the arithmetic on given counters, and beside real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import PATIENCE_S

from commtune import process
from commtune.cluster.local.background_load import (
    LoadSnapshot,
    _parse_cores,
    load_between,
    read_load,
)

_HZ = os.sysconf("SC_CLK_TCK")
_ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


def taken(at_s: float, own_s: float, *cores: list[float]) -> LoadSnapshot:
    """Counters at a moment; each core's columns in seconds, in the kernel's order."""
    lines = [
        f"cpu{number} " + " ".join(str(round(value * _HZ)) for value in columns)
        for number, columns in enumerate(cores)
    ]
    return LoadSnapshot(_parse_cores("\n".join(["cpu 9 9 9", *lines, "intr 5 6"])), own_s, at_s)


IDLE = [100.0, 20.0, 30.0, 500.0, 4.0, 0.0, 2.0, 1.0, 50.0, 0.0]


def more(**seconds: float) -> list[float]:
    """The columns of a core that was idle before."""
    names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    added = [seconds.get(name, 0.0) for name in names]
    return [a + b for a, b in zip(IDLE, [*added, 0.0, 0.0], strict=True)]


@pytest.mark.parametrize(
    ("own_s", "first", "second", "share"),
    [
        # Two ranks that poll, and nobody else.
        (4.0, {"user": 1.5, "system": 0.5}, {"user": 2.0}, 0.0),
        # Ranks that sleep half of the time, a program beside them on one core.
        (2.0, {"user": 2.0}, {"user": 1.0, "idle": 1.0}, 0.25),
        # All ways to use a core count; waiting for a disk doesn't.
        (0.0, {"nice": 0.5, "system": 0.5, "iowait": 1.0}, {"softirq": 1.0}, 0.5),
        # Another virtual machine.
        (3.0, {"user": 1.0, "steal": 1.0}, {"user": 2.0}, 0.25),
        # The same where the kernel charges the program for what was stolen from it.
        (4.0, {"user": 1.0, "steal": 1.0}, {"user": 2.0}, 0.25),
        # Ticks are coarse: a little more own time than any at all.
        (0.02, {"idle": 2.0}, {"idle": 2.0}, 0.0),
        (0.0, {"user": 2.1}, {"user": 2.1}, 1.0),
    ],
)
def test_what_is_not_our_own_is_others(
    own_s: float, first: dict[str, float], second: dict[str, float], share: float
) -> None:
    before = taken(1000.0, 7.0, IDLE, IDLE)
    found = load_between(before, taken(1002.0, 7.0 + own_s, more(**first), more(**second)))
    assert found == pytest.approx(share)


def test_interrupts_that_nobody_is_charged_for_are_nobodys() -> None:
    charged = load_between(
        taken(0.0, 0.0, IDLE), taken(2.0, 1.0, more(user=0.5, softirq=1.0, idle=0.5))
    )
    before = [*IDLE[:5], 3.0, *IDLE[6:]]
    after = more(user=1.0, irq=3.5, softirq=0.5)
    apart = load_between(taken(0.0, 0.0, before), taken(2.0, 1.0, after))
    assert charged == pytest.approx(0.25)
    assert apart == 0.0


def test_old_kernels_and_offline_cores_are_read() -> None:
    cores = _parse_cores("cpu  9 9 9 9\ncpu0 1 2 3 4\ncpu3 10 20 30 40 50 60 70 80 5 6\nctxt 7")
    assert sorted(cores) == [0, 3]
    assert cores[0] == {"user": 1, "nice": 2, "system": 3, "idle": 4}
    assert [cores[3][name] for name in ("user", "nice", "system")] == [10, 20, 30]
    assert [cores[3][name] for name in ("irq", "softirq", "steal")] == [60, 70, 80]
    assert sum(cores[3].values()) == 360


def test_only_our_cores_count(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("cpu0 100 0 0 900\ncpu1 700 0 0 300\ncpu2 1 0 0 9\n")
    found = read_load(tmp_path, [1])
    assert found is not None
    assert {number: core["user"] for number, core in found.cores.items()} == {1: 700}


@pytest.mark.parametrize(
    "text", [None, "", "intr 1 2 3\n", "cpu0 1 2 3 4\n", "cpu1 a b c d\n", "cpux 1 2\n"]
)
def test_what_cannot_be_told_is_not_guessed(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "stat").write_text(text)
    assert read_load(tmp_path, [1]) is None
    assert load_between(None, read_load()) is None
    assert load_between(read_load(), None) is None


def test_counters_that_stand_still_say_nothing() -> None:
    # As where a sandbox makes them up.
    still = [0.0] * 8
    assert load_between(taken(0.0, 1.0, still), taken(2.0, 3.0, still)) is None
    assert load_between(taken(0.0, 1.0, IDLE), taken(0.0, 1.0, more(user=1.0))) is None


@pytest.fixture
def one_core() -> Iterator[None]:
    """Lets this process and all that it starts run on one core only."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


@pytest.fixture
def burner(one_core: None) -> Iterator[None]:
    """A program of somebody else's that keeps the core busy."""
    assert one_core is None
    child = subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"])
    yield
    child.kill()
    child.wait()


#: Uses this much processor time, however long that takes, and says so; then it goes on if told to.
_SPINS_S = 0.2
_SPIN = f"""\
import sys, time
while time.process_time() < {_SPINS_S}: pass
open("spun", "w").close()
while sys.argv[1:]: pass
"""
_SPINNING = f"{sys.executable} -S spin.py"
_UNTIL_SPUN = "until [ -e spun ]; do sleep 0.01; done"


def run(script: str, folder: Path) -> tuple[float, float, float]:
    """Runs a shell script as runs are; the share of others, the run's own, and its seconds."""
    (folder / "spin.py").write_text(_SPIN)
    before = read_load()
    process.run_process(
        ["/bin/sh", "-c", script], environment=_ENVIRONMENT, timeout_s=PATIENCE_S, cwd=folder
    )
    after = read_load()
    found = load_between(before, after)
    assert found is not None and before is not None and after is not None
    own_s = after.own_s - before.own_s
    return found, own_s / (after.at_s - before.at_s), own_s


@pytest.mark.usefixtures("burner")
def test_a_program_beside_a_quiet_run_is_seen(tmp_path: Path) -> None:
    share, own, _ = run("sleep 0.5", tmp_path)
    # The core is never idle: what we don't use, others do.
    assert share > 0.5
    assert own < 0.4


@pytest.mark.usefixtures("one_core")
@pytest.mark.parametrize(
    "script",
    [
        _SPINNING,
        # A helper that outlives its parent, and is ended with the run.
        f"( ( {_SPINNING} on ) & ) ; {_UNTIL_SPUN}",
        # A helper in a session of its own.
        f"setsid {_SPINNING} on & {_UNTIL_SPUN}",
    ],
    ids=["loop", "orphan", "session"],
)
def test_what_a_run_uses_itself_is_not_others(script: str, tmp_path: Path) -> None:
    share, own, own_s = run(script, tmp_path)
    assert own_s > 0.9 * _SPINS_S
    # There is no more than one core's time: own time that others' still held would be too much.
    assert share + own < 1.2


@pytest.mark.usefixtures("burner")
def test_others_are_seen_beside_a_run_that_polls(tmp_path: Path) -> None:
    share, _, own_s = run(f"( ( {_SPINNING} on ) & ) ; {_UNTIL_SPUN}", tmp_path)
    assert own_s > 0.9 * _SPINS_S
    assert share > 0.2
