"""An aggressor beside runs: what starts it, what jobs ask for, and which runs count."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from played_jobs import Laboratory, block

from commtune.cluster.jobs.aggressor import AggressorLaunch, request_with_aggressor
from commtune.kernels.bench import AGGRESSOR_SIGN, aggressor_arguments, read_traffic
from commtune.model import Aggressor, AggressorPattern, Outcome, RunResult
from commtune.slurm_templates.job_request import JobRequest
from commtune.slurm_templates.launch_command import launch_words
from commtune.slurm_templates.rendering import Step

AGGRESSOR = Aggressor(AggressorPattern.INCAST, nodes=3, ranks_per_node=2)
REQUEST = JobRequest(
    nodes=2, ranks_per_node=4, mpi="pmix", cpu_bind="map_cpu:0,1,2,3", gpu_bind="closest"
)
END = "commtune: this was there to the end"


def beside(request: JobRequest = REQUEST, aggressor: Aggressor = AGGRESSOR) -> AggressorLaunch:
    return AggressorLaunch(
        aggressor=aggressor,
        job_request=request,
        launch=partial(launch_words, None, mpi_launcher="mpirun"),
        arguments=partial(aggressor_arguments, Path("/bench"), aggressor),
        sign=AGGRESSOR_SIGN,
        read=read_traffic,
    )


def result(outcome: Outcome = Outcome.OK, **more: object) -> RunResult:
    found = RunResult("run", outcome, 1.0, 2.0, header={"ranks": 8}, detail="as it was")
    return replace(found, **more)  # type: ignore[arg-type]  # fields by name


def test_it_starts_on_the_nodes_behind_those_of_the_run() -> None:
    step = Step(("srun", "run"), "/jobs/0.out", "/jobs/0.exit", {"A": "1"}, time_limit_s=10)
    joined = beside().joined(step, "run-1")
    assert replace(joined, beside=None) == step
    command = joined.beside
    assert command is not None
    words = list(command.command)
    assert words[0] == "srun"
    assert {"--nodes=3", "--ntasks=6", "--ntasks-per-node=2", "--relative=2"} <= set(words)
    assert {"--mpi=pmix", "--mode=aggress", "--pattern=incast", "--expect-ranks=6"} <= set(words)
    assert "--records=/jobs/0.out.beside.jsonl" in words
    assert f"--stop-file={command.stop_file}" in words
    (longest,) = (word for word in words if word.startswith("--longest="))
    assert float(longest.removeprefix("--longest=")) > 10 + command.limit_s + 20
    assert command.sign == AGGRESSOR_SIGN


@pytest.mark.parametrize(("limit", "asked"), [(None, "0-00:04:00"), (0.1, "0-00:03:00")])
def test_a_job_beside_it_keeps_to_the_node_hours_that_are_left(
    laboratory: Laboratory, limit: float | None, asked: str
) -> None:
    laboratory.limit = limit
    jobs = laboratory.jobs()
    jobs.scripts = replace(jobs.scripts, aggressor=beside(aggressor=replace(AGGRESSOR, nodes=1)))
    jobs.submit(block(0), 60.0)
    script = laboratory.tracked(jobs, 0).folder.script.read_text()
    assert f"#SBATCH --time={asked}\n" in script


@pytest.mark.parametrize(("ranks", "bound"), [(2, False), (4, True)])
def test_binding_of_the_runs_is_for_as_many_ranks_only(ranks: int, bound: bool) -> None:
    aggressor = replace(AGGRESSOR, ranks_per_node=ranks)
    words = beside(aggressor=aggressor).command(Path("o"), "run-1", 1.0).command
    assert ("--cpu-bind=map_cpu:0,1,2,3" in words) is bound
    assert ("--gpu-bind=closest" in words) is bound


def test_a_job_has_room_for_both() -> None:
    assert request_with_aggressor(REQUEST, None) == REQUEST
    assert request_with_aggressor(REQUEST, AGGRESSOR) == replace(REQUEST, nodes=5)
    assert (
        request_with_aggressor(REQUEST, replace(AGGRESSOR, ranks_per_node=9)).ranks_per_node == 9
    )


@pytest.mark.parametrize(
    ("printed", "why"),
    [
        (None, "nobody knows how long it was there"),
        ("commtune-bench: sending\n", "nobody knows how long it was there"),
        ("commtune: this ended before what it stood beside\n", "it ended before what it stood"),
        ("commtune: this did not begin its work within 60 s\n", "it did not begin its work"),
    ],
)
@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.CRASHED, Outcome.TIMED_OUT])
def test_a_run_without_it_is_lost_whatever_it_came_to(
    tmp_path: Path, printed: str | None, why: str, outcome: Outcome
) -> None:
    output = tmp_path / "out"
    if printed is not None:
        output.write_text(printed)
    found = beside().checked(result(outcome), output)
    assert found.outcome is Outcome.INTERRUPTED
    assert found.detail.startswith(f"not beside its aggressor: {why}")
    assert found.output_tail == (printed or "")


def test_what_was_lost_otherwise_stays_so(tmp_path: Path) -> None:
    lost = result(Outcome.NODE_FAILURE)
    assert beside().checked(lost, tmp_path / "none") == lost


@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.TIMED_OUT])
@pytest.mark.parametrize("last", [END, f"{END}, and had to be killed"])
def test_a_run_beside_it_counts_and_keeps_what_it_sent(
    tmp_path: Path, outcome: Outcome, last: str
) -> None:
    output = tmp_path / "out"
    output.write_text(f"commtune-bench: sending\n{last}\n")
    assert beside().checked(result(outcome), output) == result(outcome)  # no records
    sent = {"bytes_moved": 10**9, "active_s": 2.0, "gigabits_per_s": 4.0}
    one = replace(beside(), read=lambda _: sent)
    found = one.checked(result(outcome), output)
    assert found.outcome is outcome
    assert found.header == {
        "ranks": 8,
        "beside": sent,
    }
    assert one.checked(result(outcome, header=None), output).header is None
