"""Slurm as a scheduler: sbatch, scancel, squeue, sacct, sinfo."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from commtune import process, process_trees
from commtune.cluster.scheduler import AccountedJob, QueuedJob, QueueSnapshot
from commtune.cluster.slurm.command_output import (
    ACCOUNT_FIELDS,
    FIELD,
    JOB_ID,
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
    classify_submission_error,
    fault_of_program,
    fault_of_submission,
)
from commtune.cluster.slurm.shared_answer import SharedAnswer
from commtune.errors import MissingComponent, UserError

#: Of sacct, whose question went astray.
_NO_RECORDS = re.compile(r"DBD_GET_JOBS_COND failure: .*")
#: Linux takes 131,072 bytes in one argument.
_ARGUMENT_BYTES = 100_000
_IDS_IN_A_CALL = 5_000
#: What scancel says of jobs that have ended.
_GONE = re.compile(r"Invalid job id specified|already completing or completed")
_ACCEPTED = re.compile(r"^([1-9]\d{0,9})(?:;[^\s;]+)?$", re.ASCII | re.MULTILINE)

#: Variables by which a user changes what Slurm's programs print or whom they ask.
_SETTINGS = re.compile(r"(SQUEUE|SACCT|SINFO)_\w+|SLURM_(CLUSTERS|BITSTR_LEN|TIME_FORMAT)|LC_ALL")
#: What Slurm's programs read, and jobs inherit: options by variable, and what is true of the job
#: that the caller runs in.
_SLURMS = re.compile(r"(SBATCH|SLURMD?|SCANCEL|SALLOC|SRUN|SQUEUE|SACCT|SINFO)_\w+")
#: How to reach the cluster, and prove who one is.
_KEPT = re.compile(r"SLURM_(CONF|CONF_SERVER|JWT|SACK_\w+)")
#: Passwords, which Slurm would keep with the job: jobs get them otherwise.
_SECRET = re.compile(r"COMMTUNE_DB|PGPASSWORD")
#: What uenv knows its sessions by; sbatch refuses to be called from one (uenv 10).
_SESSION = re.compile(r"UENV_(MOUNT_LIST|VIEW)")


def _asking_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment to ask in: the given one without settings of what is printed and how."""
    kept = {name: value for name, value in inherited.items() if not _SETTINGS.fullmatch(name)}
    return {**kept, "LC_ALL": "C", "SLURM_TIME_FORMAT": "%s"}


def ask_slurm(arguments: Sequence[str], environment: Mapping[str, str], timeout_s: float) -> str:
    """What a program of Slurm prints, standard output and error together.

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


def clean_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment to submit in: without passwords, Slurm's variables and a uenv's session.

    Those to reach it by are kept. A controller that itself runs inside of a job would else give
    its own job's size to the next.
    """
    return {
        name: value
        for name, value in inherited.items()
        if _KEPT.fullmatch(name)
        or not any(kind.fullmatch(name) for kind in (_SLURMS, _SECRET, _SESSION))
    }


def _leader_of(job: str) -> str:
    """The number that an array task (``7_3``) or part of a job (``7+1``) is under."""
    found = JOB_ID.fullmatch(job)
    if not found:
        raise _no_job_id(job)
    return found[1]


def _period(since: float) -> tuple[str, str]:
    # sacct ends at this machine's time, which may be before Slurm's.
    return f"--starttime=uts{int(since)}", "--endtime=now+1day"


def _no_job_id(job: str) -> UserError:
    return UserError(f"{job!r} is not a Slurm job id", hint="ids look like 1234, 1234_5 or 1234+1")


def _id_lists(jobs: Iterable[str]) -> Iterator[str]:
    """The jobs' leaders in comma-separated lists, as few as fit into an argument each."""
    waiting = sorted({_leader_of(job) for job in jobs}, key=int)
    room = _ARGUMENT_BYTES // (max((len(job) for job in waiting), default=0) + 1)
    for start in range(0, len(waiting), room):
        yield ",".join(waiting[start : start + room])


@dataclass(frozen=True)
class SlurmScheduler:
    """Implements ``cluster.scheduler.Scheduler``."""

    #: What to call Slurm's programs in; see ``clean_environment``. Jobs inherit the rest of it
    #: unless their scripts say ``--export=NONE``.
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    keeps_accounts: bool = True  # whether there are accounts to ask; see ``has_accounts``
    #: Number of the user whose jobs these are, so that the controller sends no others.
    user: int = field(default_factory=os.getuid)
    #: Answers for all jobs of the user, instead of questions of one's own about named jobs.
    shared_queue: SharedAnswer | None = None
    shared_accounts: SharedAnswer | None = None
    timeout_s: float = 60.0  # seconds that a call may take

    @property
    def name(self) -> str:
        return "Slurm"

    def submit(
        self, script: Path, *, folder: Path, after: str = "", options: Sequence[str] = ()
    ) -> str:
        """As the port says; ``options`` of sbatch go before those in the script."""
        waiting = [f"--dependency=afterany:{after}"] if after else []
        done = self._run_sbatch(["--parsable", *waiting, *options], script, folder)
        numbers: list[str] = _ACCEPTED.findall(done.output)
        if numbers:
            return numbers[-1]
        raise fault_of_submission(done, self.timeout_s)

    def end_submission(self, script: Path) -> None:
        process_trees.end_running("sbatch", str(script.absolute()))

    def test_only(self, script: Path, *, folder: Path, options: Sequence[str] = ()) -> str:
        """What Slurm says, asked whether it would take the job; a ``SlurmFault`` if not."""
        done = self._run_sbatch(["--test-only", *options], script, folder)
        if not done.ok:
            error = classify_submission_error(done.output)
            raise fault_of_program("sbatch", done, error, self.timeout_s)
        said = " ".join(done.output.replace("sbatch: ", "").split())
        return said or "Slurm would accept the job"

    def cancel(self, jobs: Collection[str]) -> None:
        for job in jobs:
            # Slurm itself takes 0 for all jobs.
            if _leader_of(job).startswith("0"):
                raise _no_job_id(job)
        ordered = sorted(set(jobs))
        for start in range(0, len(ordered), _IDS_IN_A_CALL):
            self._run_scancel(ordered[start : start + _IDS_IN_A_CALL])

    def let_requeue(self, job: str, allowed: bool) -> None:
        self._ask_scontrol("update", f"jobid={job}", f"requeue={int(allowed)}")

    def requeue(self, job: str) -> None:
        self._ask_scontrol("requeue", job)

    def poll(self, jobs: Collection[str] | None = None) -> QueueSnapshot:
        """One call, or one for every 9,000 jobs; ended jobs are seen for minutes (MinJobAge)."""
        if jobs is None:
            return self._ask_queue([])
        ask = self._question_queue
        if self.shared_queue and (got := self.shared_queue.get(lambda _: ask([]))):
            return replace(read_queue(got[0]), asked_at=got[1])
        answers = [self._ask_queue([f"--jobs={ids}"]) for ids in _id_lists(jobs)]
        found: list[QueuedJob] = []
        for answer in answers:
            found += answer.jobs
        return QueueSnapshot(tuple(found), all(answer.complete for answer in answers))

    def account(self, jobs: Collection[str] | None, since: float) -> tuple[AccountedJob, ...]:
        """All attempts of these jobs, or of all jobs of the user.

        Of all, without jobs that were never free to start (held, say), and, for some seconds
        after its submission, with a job's name not yet known.

        Raises:
            SlurmFault: ACCOUNTING_OFF where there are no accounts, ACCOUNTING_DOWN where they
                don't answer now, OTHER where the next shared answer is to be waited for.
        """
        if not self.keeps_accounts:
            return ()
        if jobs is None:
            return read_accounts(self._ask_accounts_of_user(since))
        if self.shared_accounts is not None:
            if not (got := self.shared_accounts.get(self._ask_accounts_of_user, since)):
                raise SlurmFault("sacct was asked a moment ago", SlurmError.OTHER)
            wanted = {_leader_of(job) for job in jobs}
            return tuple(one for one in read_accounts(got[0]) if _leader_of(one.id) in wanted)
        found: list[AccountedJob] = []
        for ids in _id_lists(jobs):
            found += read_accounts(self._ask_accounts([f"--jobs={ids}", *_period(since)]))
        return tuple(found)

    def has_accounts(self) -> bool:
        """Whether there are accounts that answer us, now or later, on this machine."""
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
        said = ask_slurm(question, self.environment, self.timeout_s)
        return read_failed_nodes(said) & set(nodes)

    def release_command(self, job: str) -> str:
        return f"scontrol release {job}"

    def _question_queue(self, which: list[str]) -> str:
        question = ["squeue", "--noheader", "--array", "--all", "--states=all"]
        question += [f"--user={self.user}", f"--format={QUEUE_FORMAT}"]
        return ask_slurm([*question, *which], self.environment, self.timeout_s)

    def _ask_queue(self, which: list[str]) -> QueueSnapshot:
        try:
            return read_queue(self._question_queue(which))
        except SlurmFault as fault:
            # Asked for one job only, squeue calls its absence an error; for several it doesn't.
            if fault.error is SlurmError.NO_SUCH_JOB:
                return QueueSnapshot()
            raise

    def _ask_scontrol(self, *words: str) -> None:
        ask_slurm(["scontrol", *words], self.environment, self.timeout_s)

    def _ask_accounts_of_user(self, since: float) -> str:
        return self._ask_accounts([f"--user={self.user}", *_period(since)])

    def _ask_accounts(self, which: Sequence[str]) -> str:
        question = ["sacct", "--allocations", "--duplicates", "--noheader", "--parsable2"]
        question += [f"--delimiter={FIELD}", f"--format={','.join(ACCOUNT_FIELDS)}", *which]
        said = ask_slurm(question, self.environment, self.timeout_s)
        if failed := _NO_RECORDS.search(said):  # with status 0: it would say that jobs are gone
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
        # Its exit status is an error number's last byte: zero proves nothing, other things little.
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
