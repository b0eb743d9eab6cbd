"""What sbatch says when it takes no job, and what it means; 22.05 to 25.11."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commtune.cluster.slurm.queries import Trouble
from commtune.cluster.slurm.submitting import trouble_of_submission

#: What the controller answers a submission with, by what it means: all that slurmctld of 22.05 and
#: 25.11 can return from there and that says why.
SAID = {
    Trouble.REFUSED: """Invalid partition name specified
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
    Trouble.QUEUE_FULL: """Unable to create job record, try again
        Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)
        Resource temporarily unavailable""",
    Trouble.CLOSED: """Required partition not available (inactive or drain)
        Partition in DOWN state
        System submissions disabled
        Requested operation is presently disabled
        Requested reservation not usable now
        Requested reservation is in use
        Required node not available (down, drained or reserved)
        Job can not start due to maintenance reservation.
        Requested nodes are busy
        PrologSlurmctld is still running""",
    Trouble.BUSY: "Rate limit exceeded, please retry momentarily",
    Trouble.NOT_PERMITTED: """Access/permission denied
        Invalid user id""",
    Trouble.AUTHENTICATION: """Protocol authentication error
        Error generating job credential""",
    Trouble.NOT_UNDERSTOOD: "Incompatible versions of client and server code",
    Trouble.CONTROLLER_DOWN: """Unable to contact slurm controller (connect failure)
        Unable to contact slurm controller (receive failure)
        Socket timed out on send/recv operation
        Slurm backup controller in standby mode
        Zero Bytes were transmitted or received""",
    Trouble.OTHER: """Unspecified error
        Slurm internal error, contact system administrator
        I/O error writing script/environment to file
        Cannot allocate memory""",
}
MESSAGES = [(trouble, line.strip()) for trouble, text in SAID.items() for line in text.split("\n")]


@pytest.mark.parametrize(("trouble", "message"), MESSAGES)
@pytest.mark.parametrize("before", ["Batch job submission failed", "allocation failure"])
def test_what_the_controller_says(trouble: Trouble, message: str, before: str) -> None:
    assert trouble_of_submission(f"sbatch: error: {before}: {message}\n") is trouble


@pytest.mark.parametrize(
    ("limit", "trouble"),
    [
        ("QOSMaxSubmitJobPerUserLimit", Trouble.QUEUE_FULL),
        ("AssocMaxSubmitJobLimit", Trouble.QUEUE_FULL),
        ("AssocGrpSubmitJobsLimit", Trouble.QUEUE_FULL),
        ("QOSGrpSubmitJobsLimit", Trouble.QUEUE_FULL),
        ("MaxSubmitJobsPerAccount", Trouble.QUEUE_FULL),
        ("QOSMaxWallDurationPerJobLimit", Trouble.REFUSED),
        ("QOSMaxNodePerJobLimit", Trouble.REFUSED),
        ("QOSMaxCpuPerUserLimit", Trouble.QUEUE_FULL),
        ("AssocGrpCPUMinutesLimit", Trouble.REFUSED),
    ],
)
def test_which_limit_is_reached(limit: str, trouble: Trouble) -> None:
    text = SAID[Trouble.QUEUE_FULL].split("\n")[1].strip()
    said = f"sbatch: error: {limit}\nsbatch: error: Batch job submission failed: {text}\n"
    assert trouble_of_submission(said) is trouble


@pytest.mark.parametrize(
    ("said", "trouble"),
    [
        ("sbatch: error: Slurm job queue full, sleeping and retrying", Trouble.QUEUE_FULL),
        (
            "sbatch: error: Reached max number of submitted jobs\n"
            "sbatch: error: Batch job submission failed: Unspecified error",
            Trouble.QUEUE_FULL,
        ),
        (
            "sbatch: error: You must name a project\n"
            "sbatch: error: Batch job submission failed: Unspecified error",
            Trouble.REFUSED,
        ),
        ("sbatch: unrecognized option '--nonsense'", Trouble.NOT_UNDERSTOOD),
        ("sbatch: error: Invalid --time specification", Trouble.REFUSED),
        ("sbatch: error: Unable to open file /nowhere", Trouble.REFUSED),
        ("sbatch: error: No cluster 'x' known by database.", Trouble.REFUSED),
        ("", Trouble.OTHER),
    ],
)
def test_what_sbatch_says_itself(said: str, trouble: Trouble) -> None:
    assert trouble_of_submission(said + "\n") is trouble


@given(st.text())
def test_any_text_has_a_trouble(text: str) -> None:
    assert trouble_of_submission(text) in Trouble
