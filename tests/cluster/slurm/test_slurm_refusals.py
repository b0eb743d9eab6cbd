"""What sbatch says when it takes no job, and what it means; 22.05 to 25.11."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commtune.cluster.slurm.faults import SlurmError, SlurmFault, _classify_submission_error

#: What the controller answers a submission with, by what it means: all that slurmctld of 22.05 and
#: 25.11 can return from there and that says why.
SAID = {
    SlurmError.REFUSED: """Invalid partition name specified
        No partition specified or system default partition
        User's group not permitted to use this partition
        Requested nodes not in this partition
        More processors requested than permitted
        Node count specification invalid
        Job size specification needs to be provided
        Job script not specified
        Pathname of a file, directory or other parameter too long
        Requested node configuration is not available
        Requested partition configuration not available now
        Requested topology configuration is not available
        Invalid node name specified
        Task distribution specification invalid
        Task count specification invalid
        Invalid feature specification
        Requested operation not supported on this system
        Job dependency problem
        Circular job dependency
        Only batch jobs are accepted or processed
        Memory required by task is not available
        Invalid account or account/partition combination specified
        Invalid qos specification
        Invalid wckey specification
        Invalid license specification
        Requested time limit is invalid (missing or exceeds some limit)
        Access denied to requested reservation
        Requested reservation is invalid
        Invalid time specified
        CPU count specification invalid
        Invalid generic resource (gres) specification
        Requested account has breached requested QOS usage threshold
        Invalid job array specification
        Burst Buffer permission denied
        Burst Buffer request invalid
        Invalid mcs_label specified
        Duplicate generic resource (gres) specification
        Job --batch option is invalid or not a subset of --constraints
        Invalid Trackable RESource (TRES) specification
        Invalid GRES specification (with and without type identification)
        Requested GRES option unsupported by configured SelectType plugin
        Invalid --nice value
        Invalid time-min specification (exceeds job's time or other limits)
        Environment is missing in job
        Multiple partition job request not supported when a partition is set in the association
        Invalid preferred feature specification
        Insufficient GRES available in allocation
        Preemption is required but is disabled on this system
        Invalid extra constraints specification
        Invalid container id specified
        Job cannot be submitted without the current working directory specified.
        Insane message length""",
    SlurmError.QUEUE_FULL: """Unable to create job record, try again
        Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)
        Resource temporarily unavailable""",
    SlurmError.CLOSED: """Required partition not available (inactive or drain)
        Partition in DOWN state
        System submissions disabled
        Requested operation is presently disabled
        Requested reservation not usable now
        Requested reservation is in use
        Required node not available (down, drained or reserved)
        Job can not start due to maintenance reservation.
        Requested nodes are busy
        PrologSlurmctld is still running""",
    SlurmError.BUSY: "Rate limit exceeded, please retry momentarily",
    SlurmError.NOT_PERMITTED: """Access/permission denied
        Invalid user id""",
    SlurmError.AUTHENTICATION: """Protocol authentication error
        Error generating job credential""",
    SlurmError.NOT_UNDERSTOOD: "Incompatible versions of client and server code",
    SlurmError.CONTROLLER_DOWN: """Unable to contact slurm controller (connect failure)
        Unable to contact slurm controller (receive failure)
        Socket timed out on send/recv operation
        Slurm backup controller in standby mode
        Zero Bytes were transmitted or received""",
    SlurmError.OTHER: """Unspecified error
        Slurm internal error, contact system administrator
        I/O error writing script/environment to file
        Cannot allocate memory""",
}
MESSAGES = [(trouble, line.strip()) for trouble, text in SAID.items() for line in text.split("\n")]


@pytest.mark.parametrize(("trouble", "message"), MESSAGES)
@pytest.mark.parametrize("before", ["Batch job submission failed", "allocation failure"])
def test_what_the_controller_says(trouble: SlurmError, message: str, before: str) -> None:
    assert _classify_submission_error(f"sbatch: error: {before}: {message}\n") is trouble


@pytest.mark.parametrize(
    ("limit", "trouble"),
    [
        ("QOSMaxSubmitJobPerUserLimit", SlurmError.QUEUE_FULL),
        ("AssocMaxSubmitJobLimit", SlurmError.QUEUE_FULL),
        ("AssocGrpSubmitJobsLimit", SlurmError.QUEUE_FULL),
        ("QOSGrpSubmitJobsLimit", SlurmError.QUEUE_FULL),
        ("MaxSubmitJobsPerAccount", SlurmError.QUEUE_FULL),
        ("QOSMaxWallDurationPerJobLimit", SlurmError.REFUSED),
        ("QOSMaxNodePerJobLimit", SlurmError.REFUSED),
        ("QOSMaxCpuPerUserLimit", SlurmError.QUEUE_FULL),
        ("AssocGrpCPUMinutesLimit", SlurmError.REFUSED),
    ],
)
def test_which_limit_is_reached(limit: str, trouble: SlurmError) -> None:
    text = SAID[SlurmError.QUEUE_FULL].split("\n")[1].strip()
    said = f"sbatch: error: {limit}\nsbatch: error: Batch job submission failed: {text}\n"
    assert _classify_submission_error(said) is trouble


@pytest.mark.parametrize(
    ("said", "trouble"),
    [
        ("sbatch: error: Slurm job queue full, sleeping and retrying", SlurmError.QUEUE_FULL),
        (
            "sbatch: error: Reached max number of submitted jobs\n"
            "sbatch: error: Batch job submission failed: Unspecified error",
            SlurmError.QUEUE_FULL,
        ),
        (
            "sbatch: error: You must name a project\n"
            "sbatch: error: Batch job submission failed: Unspecified error",
            SlurmError.REFUSED,
        ),
        ("sbatch: unrecognized option '--nonsense'", SlurmError.NOT_UNDERSTOOD),
        ("sbatch: error: Invalid --time specification", SlurmError.REFUSED),
        ("sbatch: error: Unable to open file /nowhere", SlurmError.REFUSED),
        ("sbatch: error: No cluster 'x' known by database.", SlurmError.REFUSED),
        ("", SlurmError.OTHER),
    ],
)
def test_what_sbatch_says_itself(said: str, trouble: SlurmError) -> None:
    assert _classify_submission_error(said + "\n") is trouble


@given(st.text())
def test_any_text_has_a_trouble(text: str) -> None:
    assert _classify_submission_error(text) in SlurmError


def test_of_a_rate_limit_a_user_is_told_what_else_counts() -> None:
    fault = SlurmFault(f"squeue: {SlurmError.BUSY.value}", SlurmError.BUSY)
    assert fault.message == "squeue: slurmctld is rate-limiting your requests"
    assert fault.transient
    assert "loops that call squeue" in fault.hint
