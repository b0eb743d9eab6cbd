"""The real benchmark as an aggressor: it moves data, ends when told to, and leaves nothing."""

from __future__ import annotations

import copy
import dataclasses
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bench_runs import RunBench, read_valid, write_records
from left_over import living, wait_until_gone
from waiting import PATIENCE_S, wait_for

from commtune import process
from commtune.cluster.local.launch import base_environment, local_launcher
from commtune.kernels.bench import AGGRESSOR_SIGN, aggressor_arguments, read_traffic
from commtune.kernels.records import read_records
from commtune.model import (
    DEFAULT,
    Aggressor,
    AggressorPattern,
    MpiInstallation,
    Operation,
    RunRequest,
    Timing,
    Workload,
)


@dataclasses.dataclass
class Started:
    """An aggressor under way."""

    launcher: subprocess.Popen[bytes]
    run_id: str
    folder: Path

    @property
    def records(self) -> Path:
        return self.folder / f"{self.run_id}.jsonl"

    @property
    def stop_file(self) -> Path:
        return self.folder / f"{self.run_id}.stop"

    @property
    def output(self) -> Path:
        return self.folder / f"{self.run_id}.txt"

    def ended_by(self) -> str | None:
        footer = read_records(self.records).footer
        return str(footer["ended_by"]) if footer else None

    def ranks(self) -> list[int]:
        """Process numbers of its ranks."""
        header = read_records(self.records).header
        assert header is not None
        return [rank["pid"] for rank in header["rank_info"]]

    def wait_until_it_moves_data(self) -> None:
        def moved() -> dict[str, float]:
            assert self.launcher.poll() is None, self.output.read_text()
            return read_traffic(self.records)

        wait_for(moved, "data to be moved")

    def wait_until_gone(self) -> int:
        """The launcher's exit status, once no process of the run is left."""
        status = self.launcher.wait(PATIENCE_S)
        assert wait_until_gone(self.run_id) == {}
        return status


Start = Callable[..., Started]


@pytest.fixture
def start(mpi: MpiInstallation, executable: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts aggressors, and ends what a failed test leaves of them."""
    started = []

    def start_one(
        pattern: AggressorPattern = AggressorPattern.INCAST,
        ranks: int = 2,
        longest_s: float = PATIENCE_S,
        **more: Any,
    ) -> Started:
        run_id = uuid.uuid4().hex
        arguments = aggressor_arguments(
            executable,
            Aggressor(pattern, nodes=1, ranks_per_node=ranks, **more),
            tmp_path / f"{run_id}.jsonl",
            run_id,
            longest_s=longest_s,
            stop_file=tmp_path / f"{run_id}.stop",
        )
        with (tmp_path / f"{run_id}.txt").open("wb") as output:
            launcher = subprocess.Popen(
                local_launcher(mpi).command(ranks, arguments, 0.0),
                env=base_environment(os.environ, mpi),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        started.append(Started(launcher, run_id, tmp_path))
        return started[-1]

    yield start_one
    for one in started:
        for pid in living(one.run_id):
            os.kill(pid, signal.SIGKILL)
        one.launcher.wait()


@pytest.mark.parametrize("pattern", list(AggressorPattern))
def test_it_moves_data_and_follows_the_contract(start: Start, pattern: AggressorPattern) -> None:
    one = start(pattern, ranks=3, longest_s=2.0, message_bytes=1000)
    assert one.wait_until_gone() == 0
    header, *traffic, footer = read_valid(one.records)
    assert [record["record"] for record in traffic] == ["traffic"] * len(traffic)
    assert traffic
    moved = [record["bytes_moved"] for record in (*traffic, footer)]
    assert moved == sorted(moved)
    pairs = 2 if pattern is AggressorPattern.INCAST else 6
    assert moved[0] > 0
    assert all(total % (pairs * 1000 * header["window"]) == 0 for total in moved)
    told = [header[name] for name in ("pattern", "message_bytes", "ranks")]
    assert told == [pattern, 1000, 3]
    assert len({rank["host"] for rank in header["rank_info"]}) == 1
    assert footer["ended_by"] == "longest"
    assert read_records(one.records).problems == ()
    assert read_traffic(one.records) == {
        "bytes_moved": moved[-1],
        "active_s": footer["active_s"],
        "gigabits_per_s": pytest.approx(moved[-1] * 8 / 1e9 / footer["active_s"]),
        "gigabits_per_s_between_nodes": 0,
    }


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("pattern", list(AggressorPattern))
def test_a_signal_to_the_launcher_ends_it(
    start: Start, pattern: AggressorPattern, number: signal.Signals
) -> None:
    one = start(pattern)
    one.wait_until_it_moves_data()
    one.launcher.send_signal(number)
    one.wait_until_gone()
    assert one.ended_by() == "signal"
    assert read_records(one.records).problems == ()


def test_a_signal_to_one_rank_ends_all(start: Start) -> None:
    one = start(AggressorPattern.ALLTOALL, ranks=3)
    one.wait_until_it_moves_data()
    os.kill(one.ranks()[1], signal.SIGTERM)
    assert one.wait_until_gone() == 0
    assert one.ended_by() == "signal"


def test_the_stop_file_ends_it_also_in_a_pause(start: Start) -> None:
    one = start(burst_s=0.01, pause_s=1000.0)
    one.wait_until_it_moves_data()
    time.sleep(0.1)
    one.stop_file.touch()
    assert one.wait_until_gone() == 0
    assert one.ended_by() == "stop-file"


def test_it_says_once_that_it_sends_and_not_before_it_does(start: Start) -> None:
    one = start()
    wait_for(lambda: AGGRESSOR_SIGN in one.output.read_text(), "its sign")
    assert read_traffic(one.records)["bytes_moved"] > 0
    time.sleep(1.2)  # the next record comes after a second
    one.stop_file.touch()
    assert one.wait_until_gone() == 0
    assert one.output.read_text().count(AGGRESSOR_SIGN) == 1


def test_in_bursts_it_is_silent_most_of_the_time(start: Start) -> None:
    one = start(burst_s=0.05, pause_s=1.0, longest_s=2.0)
    assert one.wait_until_gone() == 0
    footer = read_records(one.records).footer
    assert footer is not None
    assert footer["ended_by"] == "longest"
    assert 0 < footer["active_s"] < footer["traffic_s"] / 2


def test_killed_it_has_said_what_it_did(start: Start) -> None:
    one = start()
    one.wait_until_it_moves_data()
    for pid in living(one.run_id):
        os.kill(pid, signal.SIGKILL)
    one.wait_until_gone()
    assert one.ended_by() is None
    assert read_records(one.records).problems == ()
    assert read_traffic(one.records)["gigabits_per_s"] > 0


@pytest.mark.slow
def test_ranks_that_wait_for_a_lost_one_go_by_themselves(start: Start) -> None:
    one = start(ranks=3)
    one.wait_until_it_moves_data()
    first, stopped, last = one.ranks()
    os.kill(stopped, signal.SIGSTOP)
    time.sleep(0.5)  # it may have had its say in the present round: the others must be past that
    os.kill(last, signal.SIGTERM)
    os.kill(first, signal.SIGTERM)
    assert one.wait_until_gone() != 0
    assert "ended by force, ranks did not agree" in one.output.read_text()
    assert one.ended_by() is None


@pytest.mark.parametrize(
    ("arguments", "ranks", "message"),
    [
        (["--pattern=incast", "--message=8"], 1, "incast needs at least 2 ranks"),
        (["--pattern=incast", "--message=8", "--stop-file=/a/b/c"], 2, "no folder for /a/b/c"),
    ],
)
def test_wrong_arguments_exit_with_2_and_say_what_is_wrong(
    mpi: MpiInstallation, executable: Path, arguments: list[str], ranks: int, message: str
) -> None:
    """What is decided from the words alone is tested in C++."""
    ended = process.run_process(
        local_launcher(mpi).command(
            ranks, [str(executable), "--mode=aggress", "--longest=5", *arguments], 0.0
        ),
        environment=base_environment(os.environ, mpi),
        timeout_s=PATIENCE_S,
    )
    assert ended.exit_code == 2
    assert ended.output.count(message) == 1


def test_bursts_are_given_whole() -> None:
    def of(**more: float) -> list[str]:
        aggressor = Aggressor(AggressorPattern.INCAST, 2, **more)  # type: ignore[arg-type]  # floats
        return aggressor_arguments(Path("b"), aggressor, Path("r"), "id", longest_s=1.0)

    assert not any("--burst" in argument or "--stop" in argument for argument in of())
    assert {"--burst=0.5", "--pause=2.0"} <= set(of(burst_s=0.5, pause_s=2.0))
    # What makes no sense is left to the benchmark to refuse.
    assert "--burst=0.0" in of(pause_s=2.0)


@pytest.fixture(scope="module")
def sound(module_bench: RunBench) -> list[dict[str, Any]]:
    """The records of a short aggressor."""
    records = module_bench.folder / "aggressor.jsonl"
    arguments = aggressor_arguments(
        module_bench.executable,
        Aggressor(AggressorPattern.INCAST, nodes=1, ranks_per_node=2),
        records,
        "id",
        longest_s=2.0,
    )
    ended = process.run_process(
        local_launcher(module_bench.mpi).command(2, arguments, 0.0),
        environment=base_environment(os.environ, module_bench.mpi),
        timeout_s=PATIENCE_S,
    )
    assert ended.ok, ended.output
    return read_valid(records)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda r: r[0].update(pattern="fan"), "unknown pattern: 'fan'"),
        (lambda r: r[0].update(message_bytes=-1), "message_bytes is not a whole number"),
        (lambda r: r[0].update(mode="measure"), "traffic of a run that is no aggressor"),
        (lambda r: r[1].update(bytes_moved=1.5), "bytes_moved is not a whole number"),
        (lambda r: r[-1].update(active_s="1"), "active_s is not a number"),
        (lambda r: r.pop(0), "no header before this record"),
    ],
)
def test_damage_is_a_problem_in_words(
    sound: list[dict[str, Any]],
    tmp_path: Path,
    damage: Callable[[list[dict[str, Any]]], None],
    problem: str,
) -> None:
    records = copy.deepcopy(sound)
    damage(records)
    problems = read_records(write_records(tmp_path / "r", records)).problems
    assert problem in " ".join(problems)


def test_before_it_is_up_nothing_is_known(tmp_path: Path) -> None:
    assert read_traffic(tmp_path / "none") == {}


def test_bytes_between_nodes_are_told_apart(sound: list[dict[str, Any]], tmp_path: Path) -> None:
    records = copy.deepcopy(sound)
    records[-1].update(bytes_moved=4_000_000_000, bytes_between_nodes=1_000_000_000, active_s=2.0)
    found = read_traffic(write_records(tmp_path / "r", records))
    assert found["gigabits_per_s"] == pytest.approx(16.0)
    assert found["gigabits_per_s_between_nodes"] == pytest.approx(4.0)


def test_an_aggressor_is_no_answer_to_a_measurement(
    sound: list[dict[str, Any]], tmp_path: Path
) -> None:
    request = RunRequest("id", DEFAULT, Workload(Operation.ALLTOALL, (8,)), Timing())
    problems = read_records(write_records(tmp_path / "r", sound), request).problems
    assert "operation is 'None', requested was 'alltoall'" in " ".join(problems)


def test_a_measured_run_has_no_traffic(
    run_bench: RunBench, sound: list[dict[str, Any]], tmp_path: Path
) -> None:
    run = run_bench("--op=allreduce", "--sizes=8")
    lines = run.valid_records()
    lines.insert(1, sound[1])
    assert read_records(write_records(tmp_path / "r", lines)).problems == (
        "line 2: traffic of a run that is no aggressor",
    )
