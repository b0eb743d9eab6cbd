"""From what a job left in its folder, and Slurm's word, to the results of its runs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from played_jobs import COMPLETE, HEADER, MEASURED, WORKLOAD, Written

from commtune.cluster.job_states import JobState
from commtune.cluster.jobs.job_folder import JobFolder
from commtune.cluster.jobs.run_results import JobEnd, ResultReader
from commtune.cluster.jobs.submission import TrackedJob
from commtune.cluster.slurm.allocation import Srun, read_topology
from commtune.model import (
    Configuration,
    JobKind,
    JobRecord,
    Outcome,
    RunRequest,
    RunResult,
    Timing,
)
from commtune.tuner.ports import Records

_T0 = 1_700_000_000.0
_LIMIT_S = 60.0
_TOPOLOGY = read_topology("SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n3")


@dataclass
class Job:
    """A job's folder, filled as its script would."""

    folder: JobFolder
    program: Written
    requests: list[RunRequest] = field(default_factory=list)

    def run(
        self,
        status: int | None = 0,
        *,
        wall_s: float = 2.0,
        records: Records = COMPLETE,
        output: str | None = "",
    ) -> None:
        """One run; without a status it left no exit file, without output it never began."""
        position = len(self.requests)
        run_id = f"run-{position}"
        self.requests.append(
            RunRequest(run_id, Configuration(), WORKLOAD, Timing(), position=position)
        )
        self.program.found[run_id] = records
        if output is not None:
            self.folder.step_output(position).write_text(output)
        if status is not None:
            began = _T0 + 100 * position
            text = f"{status} {began:.6f} {began + wall_s:.6f}\n"
            self.folder.step_exit(position).write_text(text)

    def script_ended(self, status: int) -> None:
        text = f"{status} {_T0 - 1:.6f} {_T0 + 1000:.6f}\n"
        (self.folder.path / "finished").write_text(text)

    @property
    def reader(self) -> ResultReader:
        return ResultReader(self.program, {}, (), self.folder.path, _TOPOLOGY, Srun())

    def results(self, state: JobState, *, ended_at: float | None = None) -> list[Outcome]:
        return [result.outcome for result in self.read(state, ended_at=ended_at)]

    def read(self, state: JobState, *, ended_at: float | None = None) -> list[RunResult]:
        return self.reader.results(self.tracked(), JobEnd(state, f"job 7: {state}", ended_at))

    def tracked(self, nodes: str = "") -> TrackedJob:
        job = JobRecord("key", JobKind.BLOCK, str(self.folder.path), _T0, 2, nodes=nodes)
        return TrackedJob(job, tuple(self.requests), _LIMIT_S)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(JobFolder(tmp_path), Written(usual=Records()))


def test_a_block_that_went_well(job: Job) -> None:
    job.run()
    job.run()
    job.script_ended(0)
    (job.folder.path / "nodes").write_text("SLURM_JOB_ID=7\nSLURM_JOB_NODELIST=n[1-2]\n")
    first, second = job.read(JobState.COMPLETED)
    assert (first.outcome, second.outcome) == (Outcome.OK, Outcome.OK)
    assert first.started_at == _T0
    assert first.wall_s == pytest.approx(2.0)
    assert second.started_at == _T0 + 100
    assert first.measurements == (MEASURED,)
    assert (first.nodes, first.distance) == (("n1", "n2"), "same-switch")
    assert job.read(JobState.COMPLETED) == [first, second]  # however often it is read


def test_where_it_was_when_only_slurm_says_so(job: Job) -> None:
    job.run(None, records=Records(), output=None)
    end = JobEnd(JobState.NODE_FAILURE, "job 7")
    (result,) = job.reader.results(job.tracked("n[2-3]"), end)
    assert (result.nodes, result.distance) == (("n2", "n3"), "different-groups")
    (result,) = job.reader.results(job.tracked(), end)
    assert (result.nodes, result.distance) == ((), "")


@pytest.mark.parametrize(
    ("status", "wall_s", "records", "outcome"),
    [
        (124, 61.0, Records(HEADER), Outcome.TIMED_OUT),
        (137, 71.0, Records(HEADER), Outcome.TIMED_OUT),
        (137, 5.0, Records(HEADER), Outcome.CRASHED),
        (3, 2.0, replace(COMPLETE, footer={"status": "wrong"}), Outcome.WRONG_RESULT),
        (1, 2.0, Records(), Outcome.FAILED),
        (139, 2.0, Records(HEADER), Outcome.CRASHED),
        (0, 2.0, Records(HEADER, (MEASURED,)), Outcome.TRUNCATED),
        (0, 2.0, replace(COMPLETE, measurements=()), Outcome.MALFORMED),
    ],
)
def test_a_run_that_failed_by_itself_and_did_not_end_the_job(
    job: Job, status: int, wall_s: float, records: Records, outcome: Outcome
) -> None:
    job.run()
    job.run(status, wall_s=wall_s, records=records, output="words of the program")
    job.run()
    job.script_ended(0)
    results = job.read(JobState.COMPLETED)
    assert [r.outcome for r in results] == [Outcome.OK, outcome, Outcome.OK]
    assert results[1].output_tail == "words of the program"
    assert outcome.blames_configuration


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        (JobState.NODE_FAILURE, Outcome.NODE_FAILURE),
        (JobState.PREEMPTED, Outcome.PREEMPTED),
        (JobState.CANCELLED, Outcome.CANCELLED),
        (JobState.FAILED, Outcome.INTERRUPTED),
        (JobState.ABSENT, Outcome.INTERRUPTED),
    ],
)
def test_a_job_that_ended_under_a_run(job: Job, state: JobState, outcome: Outcome) -> None:
    job.run()
    job.run(None, records=Records(HEADER))
    job.run(None, records=Records(), output=None)
    assert job.results(state) == [Outcome.OK, outcome, outcome]
    assert not outcome.blames_configuration
    _, cut, never = job.read(state)
    assert cut.detail == f"cut short: job 7: {state}"
    assert never.detail == f"never made: job 7: {state}"


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        (JobState.NODE_FAILURE, Outcome.NODE_FAILURE),
        (JobState.CANCELLED, Outcome.CANCELLED),
        (JobState.TIMED_OUT, Outcome.INTERRUPTED),
    ],
)
def test_a_run_that_was_ended_with_its_job_and_could_say_so(
    job: Job, state: JobState, outcome: Outcome
) -> None:
    """Its own exit status says that it failed; that was not its configuration's doing."""
    job.run(1, records=Records(HEADER))
    job.run(143, records=Records(HEADER))
    job.run(None, records=Records(), output=None)
    job.script_ended(143)
    lost = Outcome.INTERRUPTED if state is JobState.TIMED_OUT else outcome
    # Which of them hung on the node that failed nobody knows.
    first = outcome if state is JobState.NODE_FAILURE else Outcome.FAILED
    assert job.results(state) == [first, outcome, lost]


def test_a_time_limit_of_the_job_blames_who_was_over_its_own(job: Job) -> None:
    job.run()
    job.run(None, records=Records(HEADER))
    began = _T0 + 2
    within = job.results(JobState.TIMED_OUT, ended_at=began + _LIMIT_S - 1)
    beyond = job.results(JobState.TIMED_OUT, ended_at=began + _LIMIT_S + 1)
    assert within == [Outcome.OK, Outcome.INTERRUPTED]
    assert beyond == [Outcome.OK, Outcome.TIMED_OUT]


def test_who_hung_on_a_dead_node_is_not_blamed(job: Job) -> None:
    job.run()
    job.run(137, wall_s=_LIMIT_S + 10, records=Records(HEADER))
    job.run(
        1, records=Records(), output="srun: error: Task launch for StepId=7.2 failed on node n2: x"
    )
    job.script_ended(0)
    found = job.read(JobState.COMPLETED)
    assert [r.outcome for r in found] == [
        Outcome.OK,
        Outcome.NODE_FAILURE,
        Outcome.NEVER_STARTED,
    ]
    assert found[1].detail == "its job lost a node; over its 60.0 s, with 0 sizes finished"
    assert job.reader.lost_nodes(found, ["n1", "n2"]) == {"n2"}


def test_the_scheduler_is_asked_for_lost_nodes_only_after_a_run_that_they_may_have_hit(
    job: Job,
) -> None:
    reader = replace(job.reader, failed_nodes=lambda nodes: nodes[1:])
    job.run()
    assert reader.lost_nodes(job.read(JobState.COMPLETED), ["n1", "n2"]) == set()
    job.run(139, records=Records(HEADER))
    assert reader.lost_nodes(job.read(JobState.COMPLETED), ["n1", "n2"]) == {"n2"}


def test_who_was_over_time_and_left_no_room_for_others_is_not_blamed(job: Job) -> None:
    job.run(137, wall_s=_LIMIT_S + 10, records=Records(HEADER))
    job.run(137, wall_s=_LIMIT_S + 10, records=Records(HEADER))
    words = "srun: error: Unable to create step for job 7: x"
    job.run(124, wall_s=_LIMIT_S, records=Records(), output=words)
    job.script_ended(0)
    assert job.results(JobState.COMPLETED) == [
        Outcome.TIMED_OUT,
        Outcome.NODE_FAILURE,
        Outcome.NEVER_STARTED,
    ]


def test_out_of_memory_is_the_run_that_says_so(job: Job) -> None:
    job.run(1, records=Records(HEADER), output="slurmstepd: error: Detected 1 oom-kill event(s)")
    job.run(1, records=Records(HEADER), output="another reason")
    job.run()
    job.script_ended(0)
    assert job.results(JobState.OUT_OF_MEMORY) == [
        Outcome.OUT_OF_MEMORY,
        Outcome.FAILED,
        Outcome.OK,
    ]


def test_out_of_memory_that_took_the_job_along(job: Job) -> None:
    job.run()
    job.run(None, records=Records(HEADER))
    job.run(None, records=Records(), output=None)
    assert job.results(JobState.OUT_OF_MEMORY) == [
        Outcome.OK,
        Outcome.OUT_OF_MEMORY,
        Outcome.INTERRUPTED,
    ]


def test_a_script_that_failed_before_its_first_run_shows_what_it_said(job: Job) -> None:
    job.run(None, records=Records(), output=None)
    job.folder.output.write_text("Lmod has detected the following error: no module mpi/9\n")
    (result,) = job.read(JobState.FAILED)
    assert result.outcome is Outcome.INTERRUPTED
    assert "no module mpi/9" in result.output_tail


@pytest.mark.parametrize(
    "text",
    ["", "0", "0 1.5 2.5", "x 1700000000.0 1700000001.0", "0 1700000000.0", "0 nan nan", "\xff"],
)
def test_exit_files_that_say_nothing_are_as_if_not_there(job: Job, text: str) -> None:
    job.run(None)
    job.folder.step_exit(0).write_text(text)
    assert job.folder.ending(0) is None


def test_a_note_for_who_adopts_the_job(job: Job) -> None:
    job.folder.write_script("#!/bin/bash\n", 12.5, 100.0)
    assert job.folder.note() == (12.5, 100.0)
    assert job.folder.script.stat().st_mode & 0o077 == 0
    (job.folder.path / "note").write_text("no numbers")
    assert job.folder.note() == (0.0, 0.0)


@pytest.mark.parametrize(
    ("variables", "number", "nodes"),
    [
        ("SLURM_JOB_ID=1001\nSLURM_JOB_NODELIST=n[1-2]\n", "1001", "n[1-2]"),
        ("PBS_JOBID=12.server\nPBS_NODES=n1,n2\n", "12", "n1,n2"),
        ("", "", ""),
    ],
)
def test_a_job_says_its_number_and_nodes(
    job: Job, variables: str, number: str, nodes: str
) -> None:
    assert job.folder.job_number() == job.folder.node_list() == ""
    (job.folder.path / "nodes").write_text(variables)
    assert (job.folder.job_number(), job.folder.node_list()) == (number, nodes)
    assert job.folder.waited_s() == 0
    (job.folder.path / "waited").write_text("17\n")
    assert job.folder.waited_s() == 17
