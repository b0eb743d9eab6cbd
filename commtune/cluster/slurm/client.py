"""Slurm as a scheduler: sbatch, scancel, squeue, sacct, sinfo."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from commtune import process, process_trees
from commtune.cluster.scheduler import SECRETS, AccountedJob, QueueSnapshot
from commtune.cluster.slurm.command_output import (
    ACCOUNT_FIELDS,
    FIELD,
    JOB_NUMBER,
    NODE_FORMAT,
    QUEUE_FORMAT,
    read_accounts,
    read_failed_nodes,
    read_queue,
)
from commtune.cluster.slurm.faults import (
    SlurmError,
    SlurmFault,
    classify_error,
    fault_of_program,
    fault_of_submission,
)
from commtune.cluster.slurm.shared_answer import SharedAnswer
from commtune.errors import MissingComponent, UserError

#: What sacct prints, with exit status 0, when slurmdbd doesn't answer its query.
_NO_RECORDS = re.compile(r"DBD_GET_JOBS_COND failure: .*")
#: Less than Linux's limit for one argument, 131,072 bytes.
_ARGUMENT_BYTES = 100_000
_IDS_IN_A_CALL = 5_000
#: What scancel prints about jobs that have ended.
_GONE = re.compile(r"Invalid job id specified|already completing or completed")
_ACCEPTED = re.compile(r"^([1-9]\d{0,9})(?:;[^\s;]+)?$", re.ASCII | re.MULTILINE)

#: Variables that change the output of Slurm's commands, or the cluster that they query.
_SETTINGS = re.compile(r"(SQUEUE|SACCT|SINFO)_\w+|SLURM_(CLUSTERS|BITSTR_LEN|TIME_FORMAT)|LC_ALL")
#: Variables that Slurm's commands read as options, and output variables of the caller's own job:
#: the next job would inherit both.
_SLURMS = re.compile(r"(SBATCH|SLURMD?|SCANCEL|SALLOC|SRUN|SQUEUE|SACCT|SINFO)_\w+")
#: Those of them that are needed to reach the cluster and to authenticate.
_KEPT = re.compile(r"SLURM_(CONF|CONF_SERVER|JWT|SACK_\w+)")
#: Variables of a uenv session: uenv's plugin (version 10) makes sbatch fail in one.
_SESSION = re.compile(r"UENV_(MOUNT_LIST|VIEW)")


def _asking_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment for queries: without settings that change what is printed."""
    kept = {name: value for name, value in inherited.items() if not _SETTINGS.fullmatch(name)}
    return {**kept, "LC_ALL": "C", "SLURM_TIME_FORMAT": "%s"}


def ask_slurm(
    arguments: Sequence[str], environment: Mapping[str, str], timeout_s: float = 60.0
) -> str:
    """Runs a Slurm command; returns its standard output and error together.

    Raises:
        SlurmFault: it failed, or gave no answer within ``timeout_s`` seconds.
        MissingComponent: there is no such program.
    """
    completed = process.run_process(
        arguments,
        environment=_asking_environment(environment),
        timeout_s=timeout_s,
        whole_output=True,
    )
    if completed.ok:
        return completed.output
    raise fault_of_program(arguments[0], completed, classify_error(completed.output), timeout_s)


def try_ask_slurm(
    arguments: Sequence[str], environment: Mapping[str, str], timeout_s: float = 60.0
) -> str:
    """As ``ask_slurm``, but returns nothing if it fails: the answer is optional."""
    try:
        return ask_slurm(arguments, environment, timeout_s)
    except (SlurmFault, MissingComponent):
        return ""


def clean_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment for sbatch: without passwords, Slurm's variables and uenv sessions.

    Without this, a controller inside a job would pass its own job's size to the next one. The
    variables that are needed to reach Slurm are kept.
    """
    return {
        name: value
        for name, value in inherited.items()
        if _KEPT.fullmatch(name)
        or not any(kind.fullmatch(name) for kind in (_SLURMS, SECRETS, _SESSION))
    }


def _period(since: float) -> tuple[str, str]:
    # By default, sacct's period ends now by this machine's clock, which may be behind Slurm's.
    return f"--starttime=uts{int(since)}", "--endtime=now+1day"


def _id_lists(jobs: Iterable[str]) -> Iterator[str]:
    """Yields the jobs' numbers in comma-separated lists, each short enough for an argument."""
    waiting = sorted(set(jobs), key=int)
    room = _ARGUMENT_BYTES // (max((len(job) for job in waiting), default=0) + 1)
    for start in range(0, len(waiting), room):
        yield ",".join(waiting[start : start + room])


@dataclass(frozen=True)
class SlurmScheduler:
    """Slurm by its commands; implements ``cluster.scheduler.Scheduler``."""

    name = "Slurm"
    #: Environment of Slurm's commands. Jobs inherit it, without what ``clean_environment`` drops,
    #: unless their scripts say ``--export=NONE``.
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    keeps_accounts: bool = True  # whether the site has accounting; see ``has_accounts``
    #: Id of the user whose jobs these are: slurmctld sends no others.
    user: int = field(default_factory=os.getuid)
    #: shared_queue, shared_accounts: answers about all jobs of the user, which controllers share
    #: instead of each asking about its own jobs.
    shared_queue: SharedAnswer | None = None
    shared_accounts: SharedAnswer | None = None
    timeout_s: float = 60.0  # seconds that a call may take

    def submit(self, script: Path, *, folder: Path, after: str = "") -> str:
        waiting = [f"--dependency=afterany:{after}"] if after else []
        done = self._run_sbatch(["--parsable", *waiting], script, folder)
        numbers: list[str] = _ACCEPTED.findall(done.output)
        if numbers:
            return numbers[-1]
        raise fault_of_submission(done, self.timeout_s)

    def end_submission(self, script: Path) -> None:
        process_trees.end_running("sbatch", str(script.absolute()))

    def test_only(self, script: Path, *, folder: Path) -> str:
        """Returns the output of ``sbatch --test-only``; a ``SlurmFault`` if it refuses the job."""
        done = self._run_sbatch(["--test-only"], script, folder)
        if not done.ok:
            raise fault_of_submission(done, self.timeout_s)
        said = " ".join(done.output.replace("sbatch: ", "").split())
        return said or "Slurm would accept the job"

    def cancel(self, jobs: Collection[str]) -> None:
        for job in jobs:
            if not JOB_NUMBER.fullmatch(job):  # Slurm understands job id 0 as all jobs
                raise UserError(f"{job!r} is not a Slurm job id", hint="ids look like 1234")
        ordered = sorted(set(jobs))
        for start in range(0, len(ordered), _IDS_IN_A_CALL):
            self._run_scancel(ordered[start : start + _IDS_IN_A_CALL])

    def let_requeue(self, job: str, allowed: bool) -> None:
        self._ask(["scontrol", "update", f"jobid={job}", f"requeue={int(allowed)}"])

    def requeue(self, job: str) -> None:
        self._ask(["scontrol", "requeue", job])

    def poll(self, jobs: Collection[str] | None = None) -> QueueSnapshot:
        """As the port says: one squeue for up to 9,000 jobs; ended ones stay for MinJobAge."""
        if jobs is None:
            return self._ask_queue([])
        if self.shared_queue and (got := self.shared_queue.get(lambda _: self._list_queue([]))):
            return replace(read_queue(got[0]), asked_at=got[1])
        answers = [self._ask_queue([f"--jobs={ids}"]) for ids in _id_lists(jobs)]
        found = tuple(job for answer in answers for job in answer.jobs)
        return QueueSnapshot(found, all(answer.complete for answer in answers))

    def account(self, jobs: Collection[str] | None, since: float) -> tuple[AccountedJob, ...]:
        """Returns all attempts of these jobs, or of all jobs of the user.

        If asked for all jobs, sacct leaves out those that were never eligible to start (held
        ones, say), and lacks a job's name for some seconds after its submission.

        Raises:
            SlurmFault: ACCOUNTING_OFF if the site has none, ACCOUNTING_DOWN if slurmdbd doesn't
                answer, OTHER if only the next shared answer will reach back far enough.
        """
        if not self.keeps_accounts:
            return ()
        if jobs is None:
            return read_accounts(self._ask_accounts_of_user(since))
        if self.shared_accounts is not None:
            if not (got := self.shared_accounts.get(self._ask_accounts_of_user, since)):
                raise SlurmFault("sacct was asked a moment ago", SlurmError.OTHER)
            return tuple(one for one in read_accounts(got[0]) if one.number in jobs)
        found: list[AccountedJob] = []
        for ids in _id_lists(jobs):
            found += read_accounts(self._ask_accounts([f"--jobs={ids}", *_period(since)]))
        return tuple(found)

    def has_accounts(self) -> bool:
        """Whether this machine can query accounting, now or once a transient fault is over."""
        try:
            self._ask_accounts(["--starttime=now", "--jobs=1"])
        except MissingComponent:
            return False
        except SlurmFault as fault:
            return fault.transient
        return True

    def failed_nodes(self, nodes: Collection[str]) -> frozenset[str]:
        if not nodes:
            return frozenset()
        question = ["sinfo", "--Node", "--noheader", f"--format={NODE_FORMAT}"]
        question += [f"--nodes={','.join(sorted(nodes))}"]
        return read_failed_nodes(self._ask(question)) & set(nodes)

    def release_command(self, job: str) -> str:
        return f"scontrol release {job}"

    def _list_queue(self, which: list[str]) -> str:
        question = ["squeue", "--noheader", "--all", "--states=all"]
        question += [f"--user={self.user}", f"--format={QUEUE_FORMAT}"]
        return self._ask([*question, *which])

    def _ask_queue(self, which: list[str]) -> QueueSnapshot:
        try:
            return read_queue(self._list_queue(which))
        except SlurmFault as fault:
            # squeue calls the absence of a job an error only if it is asked for a single one.
            if fault.error is SlurmError.NO_SUCH_JOB:
                return QueueSnapshot()
            raise

    def _ask(self, arguments: Sequence[str]) -> str:
        return ask_slurm(arguments, self.environment, self.timeout_s)

    def _ask_accounts_of_user(self, since: float) -> str:
        return self._ask_accounts([f"--user={self.user}", *_period(since)])

    def _ask_accounts(self, which: Sequence[str]) -> str:
        question = ["sacct", "--allocations", "--duplicates", "--noheader", "--parsable2"]
        question += [f"--delimiter={FIELD}", f"--format={','.join(ACCOUNT_FIELDS)}", *which]
        said = self._ask(question)
        if failed := _NO_RECORDS.search(said):  # else the empty answer would mean "no such jobs"
            error = SlurmError.ACCOUNTING_DOWN
            raise SlurmFault(f"sacct: {error.value}: {failed[0]}", error)
        return said

    def _run_scancel(self, jobs: Sequence[str]) -> None:
        done = process.run_process(
            ["scancel", *jobs],
            environment=_asking_environment(clean_environment(self.environment)),
            timeout_s=self.timeout_s,
            whole_output=True,
        )
        lines = done.output.splitlines()
        said = "\n".join(line for line in lines if not _GONE.search(line))
        # scancel's exit status is the last byte of an error number: 0 may be an error, too.
        if done.timed_out or "Kill job error" in said or not (done.ok or (lines and not said)):
            raise fault_of_program("scancel", done, classify_error(said), self.timeout_s)

    def _run_sbatch(self, options: Sequence[str], script: Path, folder: Path) -> process.Completed:
        chdir = f"--chdir={folder.absolute()}"
        return process.run_process(
            ["sbatch", chdir, *options, script.absolute()],
            environment=clean_environment(self.environment),
            timeout_s=self.timeout_s,
            cwd=folder,
            whole_output=True,
        )
