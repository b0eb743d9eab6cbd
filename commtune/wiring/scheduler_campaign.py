"""Builds a campaign on a scheduler: as jobs from a login node, or as steps in an allocation."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from commtune.campaign.loading import CampaignSpec
from commtune.cluster.jobs.aggressor import AggressorLaunch, request_with_aggressor
from commtune.cluster.jobs.allocation_chain import AllocationChain
from commtune.cluster.jobs.block_jobs import BlockJobs
from commtune.cluster.jobs.cancel_request import CancelRequest
from commtune.cluster.jobs.failures import FailedNodes, StopPolicy
from commtune.cluster.jobs.job_folder import JobFolder
from commtune.cluster.jobs.monitor import JobMonitor
from commtune.cluster.jobs.node_hours import NodeHourAccount
from commtune.cluster.jobs.queue_wait import QueueWait
from commtune.cluster.jobs.run_results import ResultReader
from commtune.cluster.jobs.scripts import AllocationScript, Scripts
from commtune.cluster.jobs.steps import Steps, step_launcher
from commtune.cluster.jobs.submission import Submitter
from commtune.cluster.local.benchmark import LocalBenchmark
from commtune.cluster.local.launch import base_environment, command_path
from commtune.cluster.local.shared_launch import SharedLaunch, can_share_launches
from commtune.cluster.placement import find_distance
from commtune.cluster.scheduler import (
    AFTER_VARIABLE,
    Allocation,
    PollBackoff,
    Scheduler,
    Site,
    StepLauncher,
)
from commtune.cluster.slurm.client import SlurmScheduler
from commtune.cluster.tracing.tracer import Tracer
from commtune.db.connection.location import database_url
from commtune.db.storage.store import Store
from commtune.errors import EnvironmentFault, MissingComponent, UserError
from commtune.kernels.adapters.program import CommandProgram
from commtune.kernels.bench import AGGRESSOR_SIGN, NativeProgram, aggressor_arguments, read_traffic
from commtune.kernels.programs import AnyProgram, watching_program
from commtune.model import DEFAULT, JobScheduler, MpiInstallation, RunRequest
from commtune.slurm_templates.job_request import JobRequest
from commtune.slurm_templates.launch_command import launch_words
from commtune.systems.schema import Slurm
from commtune.tuner.execution.time_limits import first_limit
from commtune.tuner.ports import JobBook
from commtune.wiring.allocations import allocation_script
from commtune.wiring.job_handover import guards_here
from commtune.wiring.schedulers import (
    LOOK_AT,
    failed_nodes_of,
    launcher_of,
    scheduler_of,
    topology_here,
    with_shared_answers,
)
from commtune.wiring.user_folders import data_folder

#: Seconds of an allocation that ending the campaign takes.
_ENDING_S = 3.0
#: Configurations in an example script.
_EXAMPLES = 3


@dataclass(frozen=True)
class SchedulerCampaign:
    """A campaign on a scheduler, with what jobs and steps have in common."""

    spec: CampaignSpec
    request: JobRequest
    mpi: MpiInstallation
    program: AnyProgram
    site: Site
    folder: Path  # the campaign's; record files are in ``runs``, jobs in ``jobs``
    allocation: Allocation | None
    #: Key of the allocation of ``commtune submit`` that we run in; else empty.
    key: str = ""
    say: Callable[[str], None] = lambda _: None

    @property
    def follows_allocation(self) -> bool:
        """Whether our job succeeds another allocation of the campaign, or was requeued."""
        return bool(os.environ.get(AFTER_VARIABLE)) or (
            bool(self.key) and os.environ.get("SLURM_RESTART_COUNT", "0") != "0"
        )

    @property
    def look_at(self) -> str:
        return LOOK_AT[self.kind]

    @property
    def kind(self) -> JobScheduler:
        return self.request.scheduler

    @property
    def scheduler(self) -> Scheduler:
        return scheduler_of(self.kind, keeps_accounts=self.site.keeps_accounts)

    @property
    def _launcher(self) -> StepLauncher:
        return launcher_of(self.kind)

    @property
    def _backoff(self) -> PollBackoff:
        return PollBackoff(shortest_s=self.request.poll_s)

    @property
    def _slurm(self) -> Slurm | None:
        """What the system's description says of Slurm."""
        return self.spec.system.slurm if self.spec.system else None

    @property
    def _switch_is_group(self) -> bool:
        return self._slurm is not None and self._slurm.switches == "group"

    @property
    def _libraries(self) -> tuple[str, ...]:
        return (self.spec.plan.space.library,)

    @property
    def _launch(self) -> Callable[..., tuple[str, ...]]:
        system, launcher = self.spec.system, str(self.mpi.launcher)
        return partial(launch_words, system, libraries=self._libraries, mpi_launcher=launcher)

    @property
    def _variables(self) -> dict[str, str]:
        """Variables of every run: protected ones that are set, the MPI's own, and pinned ones."""
        guards = guards_here(self.spec.protected_variables)
        return {**guards, **self.mpi.environment, **self.spec.plan.space.pinned}

    def batches(self, book: JobBook, alive: Callable[[], None]) -> BlockJobs:
        scheduler = self.scheduler
        asked = with_shared_answers(scheduler, data_folder(), self.site.name, self.request.poll_s)
        reader = ResultReader(
            program=self.program,
            environment=self._variables,
            watched=self.program.env_names,
            records=self._records,
            topology=self.site.topology,
            launcher=self._launcher,
            switch_is_group=self._switch_is_group,
            failed_nodes=failed_nodes_of(scheduler),
            aggressor=self._aggressor,
        )
        return BlockJobs(
            folder=self.folder / "jobs",
            scripts=self.scripts(),
            reader=reader,
            tracer=Tracer(
                self.program,
                self.mpi.flavour,
                self._variables,
                self.program.env_names,
                self._records / "traces",
            ),
            book=book,
            submitter=self._submitter(book),
            monitor=JobMonitor(
                asked,
                self._backoff,
                time.time,
                self.say,
                changed=lambda tracked: book.put_job(tracked.job),
                has_files=reader.has_files,
                late_files_s=self.request.late_files_s,
            ),
            node_hours=NodeHourAccount(
                book, self.nodes, self.spec.plan.budget.node_hours, asked, time.time
            ),
            stop_policy=StopPolicy(scheduler, self._failed_nodes, self.say),
            queue_wait=QueueWait(scheduler, time.time, self.say, self.request.pending_time_s),
            most_in_flight=self.request.jobs,
            file_poll_s=min(1.0, self.request.poll_s),
            alive=alive,
        )

    def steps(self, chain: AllocationChain | None) -> Steps:
        """Returns the benchmark that makes runs as steps of our allocation.

        Args:
            chain: submits the next allocation, if this one is of ``commtune submit``.
        """
        allocation = self.allocation
        if allocation is None:
            raise UserError("this is not an allocation", hint="start it by 'commtune submit'")
        if len(allocation.nodes) < self.nodes:
            raise UserError(
                f"the campaign needs {self.nodes} nodes, and job {allocation.number} has "
                f"{len(allocation.nodes)}",
                hint="'commtune submit' requests what the campaign needs",
            )
        program = self.program
        # In our own job, modules have set PATH; in a user's allocation, their shell has.
        if isinstance(program, CommandProgram) and not self.key:
            program = replace(program, path=command_path(os.environ, self.mpi))
        base = dict(os.environ)
        if not self.key:
            slurm = {n: v for n, v in base.items() if n.startswith(("SLURM_", "SLURMD_"))}
            base = {**base_environment(base, self.mpi), **slurm}
        aggressor = self._aggressor
        launcher = step_launcher(
            partial(self._launch, self.request, first_node=0 if aggressor else None),
            self._launcher,
            aggressor,
            self._records,
        )
        inner = LocalBenchmark(
            mpi=self.mpi,
            program=program,
            environment={**base, **self._variables},
            watched=program.env_names,
            folder=self._records,
            launcher=launcher,
            shared=SharedLaunch(self.say) if can_share_launches(self.spec.plan) else None,
        )
        topology = topology_here(self.kind, allocation, self.site.topology)
        measured = allocation.nodes[: self.request.nodes if aggressor else None]
        return Steps(
            inner,
            allocation,
            str(find_distance(topology, measured, switch_is_group=self._switch_is_group)),
            scheduler=self.scheduler,
            launcher=self._launcher,
            worked=chain.worked if chain else lambda: None,
            failed_nodes=self._failed_nodes,
            backoff=self._backoff,
            say=self.say,
            aggressor=aggressor,
        )

    def further_runs(self, store: Store, campaign_id: int) -> BlockJobs | Steps:
        """Returns what makes further runs: steps of our allocation if we are in one, else jobs."""
        if self.allocation is not None:
            return self.steps(None)
        book = store.job_book(campaign_id)
        return self.batches(book, alive=partial(store.touch, campaign_id))

    def unstored_steps(self, watched: Sequence[str], folder: Path) -> Steps:
        """Returns steps whose runs are not stored; all nodes must share ``folder``."""
        program = watching_program(self.program, watched)
        return replace(self, program=program, folder=folder).steps(None)

    def scripts(self) -> Scripts:
        return Scripts(
            campaign=self.spec.plan.name,
            system=self.spec.system,
            job_request=self.request,
            program=self.program,
            libraries=self._libraries,
            environment=self._variables,
            launch=self._launch,
            records=self._records,
            aggressor=self._aggressor,
            places=None if self.site.topology else self._launcher,
        )

    def example_script(self, db: str | None, *, block: bool) -> str:
        """Returns the script that would be submitted, for an allocation or for a likely block.

        The block has the default and the first configurations.
        """
        if not block:
            return self.allocation_script(database_url(db)).render("0" * 16)
        plan = self.spec.plan
        some = islice(plan.space.configurations(), _EXAMPLES)
        requests = [
            RunRequest(f"run-{number}", configuration, plan.workload, plan.timing)
            for number, configuration in enumerate(dict.fromkeys([DEFAULT, *plan.first, *some]))
        ]
        limit_s = plan.time_limit_s or first_limit(plan.workload, plan.timing)
        folder = JobFolder(self.folder / "jobs" / ("0" * 16))
        scripts = self.scripts()
        time_s = scripts.time_limit(len(requests), None, limit_s)
        return scripts.block(folder, requests, limit_s, time_s)

    def test_script(self, script: str) -> str:
        """Returns what ``sbatch --test-only`` prints for a script.

        Raises:
            EnvironmentFault: there is no sbatch here.
            SlurmFault: Slurm would refuse it.
        """
        scheduler = self.scheduler
        if not isinstance(scheduler, SlurmScheduler):
            raise UserError(
                f"{scheduler.name} can't be asked whether it would take a job",
                hint="'--dry-run --block' shows the script; try it with qsub",
            )
        with tempfile.TemporaryDirectory(prefix="commtune-") as folder:
            file = Path(folder) / "script.sh"
            file.write_bytes(script.encode("ascii"))
            try:
                return scheduler.test_only(file, folder=Path(folder))
            except MissingComponent as error:
                raise EnvironmentFault(
                    "there is no sbatch here to ask", hint="try it on a login node"
                ) from error

    def allocation_script(self, database: str) -> AllocationScript:
        """Returns the script of an allocation; ``database`` is the URL for its controller."""
        # Our request also excludes nodes of other kinds, unlike that of the file.
        spec = replace(self.spec, job_request=self.request)
        return allocation_script(spec, self.folder, database)

    def chain(self, book: JobBook, database: str) -> AllocationChain:
        script, submitter = self.allocation_script(database), self._submitter(book)
        return AllocationChain(script, book, submitter, self._failed_nodes, time.time)

    def left_s(self, book: JobBook) -> float:
        """Returns the seconds of this allocation that the node-hours leave."""
        limit, allocation = self.spec.plan.budget.node_hours, self.allocation
        if limit is None or allocation is None:
            return float("inf")
        used = book.node_hours() + allocation.node_hours(time.time())
        return (limit - used) * 3600 / len(allocation.nodes) - _ENDING_S

    def what(self) -> dict[str, Any]:
        """Returns what identifies the cluster: results on any of its nodes are comparable."""
        request, system, slurm = self.request, self.spec.system, self._slurm
        return {
            "cluster": self.site.name,
            "system": system.name if system else "",
            "partition": request.partition or (slurm.partition if slurm else ""),
            "constraint": request.constraint or (slurm.constraint if slurm else ""),
        }

    @property
    def _failed_nodes(self) -> FailedNodes:
        # qsub has no option to exclude nodes.
        excludes = self.kind is not JobScheduler.PBS
        return FailedNodes(self.folder / "failed-nodes.json", self.say, excludes)

    @property
    def cancel_request(self) -> CancelRequest:
        return CancelRequest.of(self.folder)

    @property
    def _records(self) -> Path:
        return self.folder / "runs"

    @property
    def nodes(self) -> int:
        """The number of nodes of a job, including an aggressor's."""
        return request_with_aggressor(self.request, self.spec.plan.aggressor).nodes

    @property
    def _aggressor(self) -> AggressorLaunch | None:
        aggressor = self.spec.plan.aggressor
        if aggressor is None:
            return None
        assert isinstance(self.program, NativeProgram)  # campaign files are checked for it
        return AggressorLaunch(
            aggressor=aggressor,
            job_request=self.request,
            launch=self._launch,
            arguments=partial(aggressor_arguments, self.program.executable, aggressor),
            sign=AGGRESSOR_SIGN,
            read=read_traffic,
        )

    def _submitter(self, book: JobBook) -> Submitter:
        return Submitter(
            self.scheduler, book, self._backoff, time.time, self.say, self.cancel_request
        )
