"""sbatch and scancel: what they are called with, and what they say when they refuse."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from late_limits import begin_when
from made_files import write_script
from slurm_cluster import Cluster
from waiting import PATIENCE_S, wait_for

from commtune.cluster.job_states import JobState
from commtune.cluster.slurm.allocation import Srun
from commtune.cluster.slurm.client import SlurmScheduler, clean_environment
from commtune.cluster.slurm.faults import SlurmError, SlurmFault
from commtune.errors import MissingComponent, UserError

UNREACHED = "Unable to contact slurm controller (connect failure)"
BIN = {"PATH": os.environ["PATH"]}


def test_nothing_of_a_job_that_the_controller_runs_in_is_passed_on() -> None:
    kept = {"PATH": "/bin", "SLURM_CONF": "/c", "SLURM_JWT": "t", "UCX_TLS": "a,b", "SBATCHER": ""}
    job = {
        "SLURM_JOB_ID": "7",
        "SLURM_NNODES": "9",
        "SLURMD_NODENAME": "n1",
        "SLURM_CLUSTERS": "x",
    }
    options = {"SBATCH_PARTITION": "x", "SRUN_EXPORT_ENV": "NONE", "SCANCEL_INTERACTIVE": "1"}
    secret = {"COMMTUNE_DB": "postgresql://ann:s3cret@db/x", "PGPASSWORD": "s3cret"}
    session = {"UENV_MOUNT_LIST": "/a.squashfs:/user-environment", "UENV_VIEW": "u:a:default"}
    given = {**kept, **job, **options, **secret, **session, "SALLOC_NO_BELL": "1"}
    assert clean_environment(given) == kept


def program(folder: Path, name: str, text: str) -> None:
    """A program that writes its arguments to a file beside it, then does this."""
    file = folder / name
    write_script(file, f'printf "%s\\n" "$@" "" >> {file}.calls\n{text}')


def submission(folder: Path, text: str = "echo 7") -> SlurmScheduler:
    program(folder, "sbatch", text)
    program(folder, "scancel", text)
    return SlurmScheduler({"PATH": f"{folder}:{BIN['PATH']}"}, timeout_s=PATIENCE_S)


def calls(folder: Path, name: str) -> list[list[str]]:
    text = (folder / f"{name}.calls").read_text()
    return [call.split("\n") for call in text.removesuffix("\n\n").split("\n\n")]


def test_what_sbatch_is_called_with(tmp_path: Path) -> None:
    odd = tmp_path / "a folder; $(odd)"
    odd.mkdir()
    assert submission(tmp_path).submit(tmp_path / "-x.sh", folder=odd, after="6") == "7"
    assert calls(tmp_path, "sbatch") == [
        [
            f"--chdir={odd}",
            "--parsable",
            "--dependency=afterany:6",
            f"{tmp_path}/-x.sh",
        ]
    ]


@pytest.mark.parametrize(
    "printed", ["1234;cluster", "sbatch: this site says 99\n1234", "1\n1234", "1234\nsbatch: 5"]
)
def test_the_number_among_what_a_site_lets_sbatch_say(tmp_path: Path, printed: str) -> None:
    one = submission(tmp_path, f"echo '{printed}'")
    assert one.submit(tmp_path / "x", folder=tmp_path) == "1234"


@pytest.mark.parametrize(
    ("says", "trouble", "perhaps"),
    [
        ("exit 0", SlurmError.OTHER, True),
        ("echo 0; exit 1", SlurmError.OTHER, True),
        ("echo Socket timed out on send/recv operation; exit 1", SlurmError.CONTROLLER_DOWN, True),
        (f"echo '{UNREACHED}'; exit 1", SlurmError.CONTROLLER_DOWN, False),
        ("echo sbatch: error: Invalid --time specification; exit 1", SlurmError.REFUSED, False),
        ("echo Required partition not available; exit 1", SlurmError.CLOSED, False),
        ("echo sbatch: error: Slurm job queue full; sleep 60", SlurmError.QUEUE_FULL, True),
        ("sleep 60", SlurmError.CONTROLLER_DOWN, True),
    ],
)
def test_whether_a_job_without_a_number_may_be_there(
    tmp_path: Path, says: str, trouble: SlurmError, perhaps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = replace(submission(tmp_path, says.replace("sleep", ": >said; sleep")), timeout_s=0.2)
    begin_when(monkeypatch, (tmp_path / "said").exists)
    with pytest.raises(SlurmFault) as caught:
        one.submit(tmp_path / "x", folder=tmp_path)
    assert (caught.value.error, caught.value.perhaps_accepted) == (trouble, perhaps)
    assert caught.value.transient == (trouble is not SlurmError.REFUSED)
    assert caught.value.hint


def test_a_number_counts_even_if_sbatch_does_not_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = replace(submission(tmp_path, "echo 7; : >said; sleep 60"), timeout_s=0.2)
    begin_when(monkeypatch, (tmp_path / "said").exists)
    assert one.submit(tmp_path / "x", folder=tmp_path) == "7"


def test_no_sbatch_or_no_folder_is_no_passing_fault(tmp_path: Path) -> None:
    with pytest.raises(MissingComponent):
        SlurmScheduler({"PATH": str(tmp_path)}).submit(tmp_path, folder=tmp_path)
    with pytest.raises(MissingComponent, match="nowhere"):
        submission(tmp_path).submit(tmp_path, folder=tmp_path / "nowhere")


@pytest.mark.parametrize(
    "number", ["", "0", "7;x", "-1", "--user=root", "7 8", "7,8", "7_*", "7_[1-2]", "7.0", "７"]
)
def test_what_is_no_job_is_not_cancelled(tmp_path: Path, number: str) -> None:
    with pytest.raises(UserError, match="is not a Slurm job id"):
        submission(tmp_path).cancel(["7", number])
    assert not (tmp_path / "scancel.calls").exists()


def test_few_calls_for_many_jobs_and_none_for_no_jobs(tmp_path: Path) -> None:
    one = submission(tmp_path, "true")
    one.cancel([])
    assert not (tmp_path / "scancel.calls").exists()
    wanted = {str(number) for number in range(1, 12_001)}
    one.cancel([*wanted, "7"])
    made = calls(tmp_path, "scancel")
    assert len(made) == 3
    assert sorted(number for call in made for number in call) == sorted(wanted)


@pytest.mark.parametrize(
    "says",
    [
        "echo 'scancel: error: Kill job error on job id 7: Invalid job id specified'; exit 1",
        "echo 'scancel: error: Kill job error on job id 7: Job/step already completing or "
        "completed'; exit 229",
    ],
)
def test_cancelling_what_is_gone(tmp_path: Path, says: str) -> None:
    submission(tmp_path, says).cancel(["7"])


@pytest.mark.parametrize(
    ("says", "trouble"),
    [
        (
            "echo 'scancel: error: Kill job error on job id 7: Invalid job id specified'\n"
            "echo 'scancel: error: Kill job error on job id 8: Access/permission denied'",
            SlurmError.NOT_PERMITTED,
        ),
        (
            "echo 'scancel: error: Kill job error on job id 7: Access/permission denied'\n"
            "yes 'scancel: error: Kill job error on job id 8: Invalid job id specified' | "
            "head -n 99",
            SlurmError.NOT_PERMITTED,
        ),
        (f"echo '{UNREACHED}'; exit 1", SlurmError.CONTROLLER_DOWN),
        ("exit 1", SlurmError.OTHER),
    ],
)
def test_cancelling_what_can_not_be(tmp_path: Path, says: str, trouble: SlurmError) -> None:
    with pytest.raises(SlurmFault) as caught:
        submission(tmp_path, says).cancel(["7", "8"])
    assert caught.value.error is trouble


def test_steps_that_an_srun_left_are_ended_and_not_the_script(tmp_path: Path) -> None:
    own = Srun({"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    program(tmp_path, "scancel", "")
    program(tmp_path, "squeue", "echo 7.batch 7.extern")
    own.end_steps("7")
    program(tmp_path, "squeue", "echo 7.batch 7.0 7.12 7.extern")
    own.end_steps("7")
    assert calls(tmp_path, "scancel") == [["7.0", "7.12"]]


@pytest.fixture
def real(slurm: Cluster) -> SlurmScheduler:
    return SlurmScheduler(slurm.environment)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "job.sh"
    file.write_text("#!/bin/bash\n#SBATCH --nodes=1 --ntasks=1\nenv -0 > environment\nsleep 600\n")
    return file


def with_option(script: Path, option: str) -> Path:
    """A copy of the script with another option of sbatch."""
    first, rest = script.read_text().split("\n", 1)
    copy = script.with_name("with-option.sh")
    copy.write_text(f"{first}\n#SBATCH {option}\n{rest}")
    return copy


def written(file: Path) -> str:
    """What a job writes into a file, once it ends in a zero byte."""
    wait_for(lambda: file.exists() and file.read_text().endswith("\0"), "what it writes")
    return file.read_text()


def test_a_job_runs_in_its_folder_without_what_the_controller_has(
    slurm: Cluster, tmp_path: Path, script: Path
) -> None:
    outer = {
        "SLURM_JOB_ID": "7",
        "SLURM_NNODES": "3",
        "SBATCH_PARTITION": "nowhere",
        "MINE": "yes",
    }
    real = SlurmScheduler({**slurm.environment, **outer})
    job = real.submit(script, folder=tmp_path)
    slurm.until(job, "RUNNING")
    text = written(tmp_path / "environment")
    seen = dict(pair.split("=", 1) for pair in text.split("\0")[:-1])
    real.cancel([job, "999999"])
    assert seen["MINE"] == "yes"
    assert (seen["SLURM_JOB_ID"], seen["SLURM_NNODES"], seen["PWD"]) == (job, "1", str(tmp_path))
    slurm.until(job, "CANCELLED")
    real.cancel([job])
    assert SlurmScheduler(slurm.environment).poll([job]).state_of(job).state is JobState.CANCELLED


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--partition=nowhere", "Invalid partition name"),
        ("--constraint=blue", "Invalid feature"),
        ("--reservation=none", "Requested reservation is invalid"),
        ("--time=never", "Invalid --time"),
        ("--mem=99T", "Requested node configuration"),
    ],
)
def test_a_job_that_can_not_be_is_refused_in_slurms_words(
    real: SlurmScheduler, script: Path, option: str, words: str
) -> None:
    for call in (real.submit, real.test_only):
        with pytest.raises(SlurmFault, match=words) as caught:
            call(with_option(script, option), folder=script.parent)
        assert caught.value.error is SlurmError.REFUSED
        assert not caught.value.transient


def test_a_job_that_would_be_taken(real: SlurmScheduler, script: Path) -> None:
    said = real.test_only(script, folder=script.parent)
    assert "to start at" in said
    assert "\n" not in said


def refusal(real: SlurmScheduler, script: Path) -> SlurmFault:
    with pytest.raises(SlurmFault) as caught:
        real.submit(with_option(script, "--begin=now+1hour"), folder=script.parent)
    return caught.value


@pytest.mark.parametrize(
    ("option", "words"),
    [("--account=nobodys", "Invalid account"), ("--qos=none", "Invalid qos")],
)
def test_an_account_that_does_not_exist(
    real: SlurmScheduler, script: Path, option: str, words: str
) -> None:
    with pytest.raises(SlurmFault, match=words) as caught:
        real.submit(with_option(script, option), folder=script.parent)
    assert caught.value.error is SlurmError.REFUSED


def test_a_limit_on_waiting_jobs_passes(
    slurm: Cluster, real: SlurmScheduler, script: Path
) -> None:
    slurm.limit_submissions(1)
    job = real.submit(script, folder=script.parent)
    fault = refusal(real, script)
    assert (fault.error, fault.perhaps_accepted) == (SlurmError.QUEUE_FULL, False)
    assert "QOSMaxSubmitJobPerUserLimit" in fault.message
    real.cancel([job])
    slurm.until(job, "CANCELLED")
    assert real.submit(script, folder=script.parent)


def test_a_partition_that_takes_no_jobs_for_a_while(
    slurm: Cluster, real: SlurmScheduler, script: Path
) -> None:
    slurm.refuse_submissions()
    fault = refusal(real, script)
    assert (fault.error, fault.perhaps_accepted) == (SlurmError.CLOSED, False)
    slurm.refuse_submissions(False)
    assert real.submit(script, folder=script.parent)


def test_without_a_controller_nothing_is_accepted(slurm: Cluster, script: Path) -> None:
    real = SlurmScheduler(slurm.impatient)
    slurm.stop_controller()
    fault = refusal(real, script)
    assert (fault.error, fault.perhaps_accepted) == (SlurmError.CONTROLLER_DOWN, False)
    with pytest.raises(SlurmFault) as caught:
        real.cancel(["1"])
    assert caught.value.error is SlurmError.CONTROLLER_DOWN


def waits_for_an_answer(program: str) -> bool:
    """Whether a process of this name has said to a server what it has to say."""
    found = [one for one in psutil.process_iter(["name"]) if one.info["name"] == program]
    for one in found:
        with contextlib.suppress(psutil.Error):
            ports = {c.laddr.port for c in one.net_connections("tcp") if c.status == "ESTABLISHED"}
            if any(port in ports for port in _unread()):
                return True
    return False


def _unread() -> Iterator[int]:
    """Ports of senders of what lies unread at its receiver on this machine."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, _, sender, _, queues, *_ = line.split()
        if int(queues.partition(":")[2], 16):
            yield int(sender.partition(":")[2], 16)


@pytest.mark.parametrize("timeout_s", [1.0, 30.0])  # it is given up, and sbatch gives up
def test_a_job_whose_number_never_came_back_is_in_the_queue(
    slurm: Cluster,
    real: SlurmScheduler,
    script: Path,
    timeout_s: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slurm.pause_controller()
    begin_when(monkeypatch, lambda: waits_for_an_answer("sbatch"))
    environment = slurm.impatient if timeout_s > 1 else slurm.environment
    fault = refusal(replace(real, environment=environment, timeout_s=timeout_s), script)
    assert (fault.error, fault.perhaps_accepted) == (SlurmError.CONTROLLER_DOWN, True)
    slurm.resume_controller()
    queue = SlurmScheduler(slurm.environment)
    wait_for(
        lambda: [job for job in queue.poll().jobs if not job.observed.state.is_over],
        "Slurm to accept it after all",
    )
