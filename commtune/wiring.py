"""Builds the objects from settings: the only place that knows all adapters."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from math import fsum
from pathlib import Path

from commtune.campaign_records import (
    Folders,
    record_of,
    replayed_record,
    runs_folder,
    slurm_record,
)
from commtune.cluster.launch import base_environment, local
from commtune.cluster.local import LocalBenchmark
from commtune.cluster.machine import describe_machine
from commtune.cluster.mpi import find_mpi
from commtune.cluster.slurm import glance
from commtune.cluster.slurm.block_jobs import BlockJobs
from commtune.cluster.slurm.cancelling import Cancelled, cancel_all
from commtune.cluster.slurm.placement import expand_hosts
from commtune.cluster.slurm.queries import Queue
from commtune.cluster.slurm.steps import Steps
from commtune.cluster.slurm.submitting import Submission, clean_environment
from commtune.db.describing import describe
from commtune.db.engine import Database, open_database
from commtune.db.location import database_url, shown_url
from commtune.db.locks import LockOwner
from commtune.db.records import CampaignRecord
from commtune.db.store import Store
from commtune.errors import (
    CampaignError,
    CampaignLocked,
    DatabaseFault,
    EnvironmentFault,
    NoAnswer,
    UnknownName,
    UserError,
)
from commtune.gpu_wiring import (
    MPI_LIBRARIES,
    check_launch,
    libraries_of,
    require_backend,
    shown_names,
    toolchain_for,
)
from commtune.kernels.bench import NativeProgram
from commtune.kernels.build import backends_of, build
from commtune.kernels.programs import AnyProgram, other_program, watching_program
from commtune.kernels.toolchains import Toolchain
from commtune.model import (
    Backend,
    JobKind,
    JobRecord,
    JobStage,
    MpiFlavour,
    MpiInstallation,
    RunRequest,
    RunResult,
    Workload,
)
from commtune.slurm_wiring import OnSlurm, follows, in_allocation, on_slurm
from commtune.spaces import Space
from commtune.tuner.campaign import Campaign, Report
from commtune.tuner.campaign_file import CampaignSpec
from commtune.tuner.grids import Grid
from commtune.tuner.guarding import guarded, guards_of
from commtune.tuner.ports import Reporter
from commtune.tuner.replay import ReplayBenchmark, check_plan
from commtune.tuner.runner import Runner

#: How far the clocks of a cluster's machines may differ, seconds.
_CLOCKS_S = 60.0
#: The space that fits an MPI where the user names none.
_PRESETS = {
    MpiFlavour.MPICH: "mpich-host",
    MpiFlavour.OPENMPI: "openmpi-host",
    MpiFlavour.INTEL: "intel-host",
}
#: The spaces that fit a library.
_SPACES = {
    **{MPI_LIBRARIES[flavour]: preset for flavour, preset in _PRESETS.items()},
    "nccl": "nccl",
    "rccl": "rccl",
    "ucx": "ucx",
}
#: What to look at where no run on Slurm works.
LOOK_AT = (
    "look at 'slurm:' in the campaign file: 'mpi' (pmi2 for MPICH, pmix for Open MPI; "
    "'srun --mpi=list'), 'modules', 'before'\n"
    "'commtune submit --dry-run --block FILE' shows the script of a job"
)
#: Seconds that Slurm may take to answer where the answer is nice to have.
_ANSWER_S = 10.0
#: Nodes of an allocation that are named.
_NODES_SAID = 4


def preset_for(mpi: MpiInstallation, operation: str, backend: str = Backend.MPI_HOST) -> str:
    """The name of the search space for a backend on one machine, an MPI and an operation.

    Raises:
        MissingComponent: there is nothing to build the backend with.
    """
    if backend == Backend.XCCL:
        return _SPACES[next(iter(libraries_of(backend, mpi)))]
    if mpi.flavour is MpiFlavour.MPICH and operation == "allreduce":
        return "mpich-host-allreduce"
    return _PRESETS[mpi.flavour]


def check_library(spec: CampaignSpec, mpi: MpiInstallation) -> str:
    """Refuses a campaign whose space was made for another library than the one found.

    Returns:
        A warning where the library is right but its version is not; else nothing.

    Raises:
        CampaignError: with the place in its file, and the space that would fit.
        MissingComponent: there is nothing to build the backend with.
    """
    space, backend = spec.plan.space, spec.plan.workload.backend
    if backend == Backend.COMMAND:
        return ""  # only its user knows which libraries it uses
    found = libraries_of(backend, mpi)
    if space.library in found:
        return _version_warning(space, found[space.library])
    uses_mpi = space.library in MPI_LIBRARIES.values() and backend != Backend.XCCL
    fitting = [_SPACES[library] for library in found]
    if not uses_mpi:
        raise CampaignError(
            f"space {space.name} is for {space.library}, which the backend {backend} does not "
            "use: its variables would have no effect",
            file=spec.file,
            line=spec.space_line,
            hint=_other_spaces(space, backend, fitting),
        )
    raise CampaignError(
        f"space {space.name} is for {space.library}, but the MPI found is "
        f"{mpi.flavour} {mpi.version} ({mpi.compiler})",
        file=spec.file,
        line=spec.space_line,
        hint=f"use 'space: {_PRESETS[mpi.flavour]}', or name another MPI with 'mpi:'",
    )


def library_words(backend: str, mpi: MpiInstallation) -> str:
    """The library that a backend communicates by: ``openmpi 4.1.6``, ``nccl 2.28.9``."""
    if backend == Backend.XCCL:
        ((name, version),) = libraries_of(backend, mpi).items()
        return f"{name} {version}"
    return f"{mpi.flavour} {mpi.version}"


def _other_spaces(space: Space, backend: str, fitting: Sequence[str]) -> str:
    if space.library in ("nccl", "rccl"):
        return f"write 'backend: xccl' under 'workload', or use the space {fitting[0]}"
    if backend == Backend.MPI_HOST:
        return "spaces for MPI over host memory: " + ", ".join(sorted(_PRESETS.values()))
    return f"use 'space: {fitting[0]}'"


def _version_warning(space: Space, version: str) -> str:
    if not version or is_version_in(version, space.versions):
        return ""
    return (
        f"note: space {space.name} was made for {space.library} {space.versions}, and this is "
        f"{version};\n  names that it does not know have no effect"
    )


def here(spec: CampaignSpec) -> CampaignSpec:
    """The campaign as it can be run in this environment, with what is to say of that.

    On Slurm nothing is cut: the variables of jobs are not those of the login node.

    Raises:
        CampaignError: it pins what this environment guards.
    """
    return guarded(spec, os.environ) if spec.slurm is None else spec


def is_version_in(version: str, versions: str) -> bool:
    """Whether a version is in a range such as ``>=5.0,<6``; yes where either can't be read."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion

    try:
        return SpecifierSet(versions).contains(version, prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return True


def build_for(
    mpi: MpiInstallation, toolchain: Toolchain | None, log: Path | None
) -> tuple[Path, dict[str, str]]:
    """The benchmark's executable, built if it wasn't, and its backends; see ``backends_of``."""
    executable = build(mpi, Folders.of_user().cache, toolchain=toolchain, log=log)
    return executable, backends_of(executable)


def _executable(mpi: MpiInstallation, backend: str) -> Path:
    """The benchmark's executable with a backend in it."""
    executable, built = build_for(mpi, toolchain_for(backend), None)
    require_backend(backend, built)
    return executable


def prepare_benchmark(
    mpi: MpiInstallation,
    space: Space | None,
    workload: Workload,
    folder: Path,
    guards: Sequence[str] = (),
) -> LocalBenchmark:
    """Builds the native benchmark against an MPI, and makes a port of it.

    Args:
        workload: its backend says what is built, its ranks what this machine must have.
        folder: where record files go.
        guards: variables that pass from our environment to every run.

    Raises:
        MissingComponent, UserError: this machine lacks what the backend needs.
    """
    pinned: Mapping[str, str] = space.pinned if space else {}
    return prepare_pinned(mpi, pinned, space.variables if space else (), workload, folder, guards)


def prepare_pinned(
    mpi: MpiInstallation,
    pinned: Mapping[str, str],
    watched: Sequence[str],
    workload: Workload,
    folder: Path,
    guards: Sequence[str] = (),
) -> LocalBenchmark:
    """The same from what a database knows of a space: its pins and its variables' names."""
    check_launch(workload, os.environ)
    on_gpu = Backend(workload.backend).uses_gpu
    safe = tuple(guards_of(tuple(guards), os.environ)) if on_gpu else ()
    return LocalBenchmark(
        mpi=mpi,
        program=_program(mpi, workload, shown_names(watched, workload, safe)),
        environment={**base_environment(os.environ, mpi, guards), **pinned},
        watched=watched,
        folder=folder,
        launcher=local(mpi, bound=not on_gpu, emulated_nodes=workload.emulated_nodes),
    )


def _program(mpi: MpiInstallation, workload: Workload, names: Sequence[str]) -> AnyProgram:
    """What measures a workload; the native benchmark is built if it wasn't."""
    other = other_program(workload, mpi, names)
    return other or NativeProgram(_executable(mpi, workload.backend), names)


def watching(benchmark: LocalBenchmark, names: Sequence[str]) -> LocalBenchmark:
    """The same benchmark, with other variables watched: for settings that no space declares."""
    program = benchmark.program
    if isinstance(program, AnyProgram):
        others = [name for name in program.env_names if name not in benchmark.watched]
        program = watching_program(program, tuple(dict.fromkeys([*names, *others])))
    return replace(benchmark, program=program, watched=tuple(names))


@contextmanager
def database(option: str | None) -> Iterator[Database]:
    """The database, opened and closed again."""
    opened = open_database(database_url(option))
    try:
        yield opened
    finally:
        opened.close()


def tune(
    spec: CampaignSpec,
    mpi: MpiInstallation,
    opened: Database,
    reporter: Reporter,
    *,
    take_over: bool,
) -> Report:
    """Runs a campaign, or goes on with it, and returns what it came to.

    Raises:
        CampaignChanged: the stored campaign of this name asks another question.
        CampaignLocked: another controller works on it.
    """
    plan = spec.plan
    for remark in (*spec.remarks, check_library(spec, mpi)):
        if remark:
            reporter.say(remark)
    if spec.slurm is not None:
        return _tune_on_slurm(spec, mpi, opened, reporter, take_over=take_over)
    machine = describe_machine()
    folder = runs_folder(plan.name)
    benchmark = prepare_benchmark(mpi, plan.space, plan.workload, folder, spec.guard_variables)
    record = record_of(spec, mpi, machine, folder)
    with _controlled(opened, record, reporter, take_over=take_over) as (store, campaign_id):
        return Campaign(plan, Runner(plan, campaign_id, benchmark, store), reporter).run()


def _tune_on_slurm(
    spec: CampaignSpec,
    mpi: MpiInstallation,
    opened: Database,
    reporter: Reporter,
    *,
    take_over: bool,
) -> Report:
    """The same on Slurm: inside of an allocation by steps, elsewhere by jobs."""
    plan, on = spec.plan, slurm_campaign(spec, mpi, reporter.say)
    record = slurm_record(on)
    if on.key:
        _check_stored(plan.name, opened)
    take_over = take_over or follows()
    with _controlled(opened, record, reporter, take_over=take_over) as (store, campaign_id):
        book = store.job_book(campaign_id)
        reporter.say(_whereabouts(on))
        if on.allocation is None:
            jobs = on.batches(book, alive=partial(store.touch, campaign_id))
            runner = Runner(plan, campaign_id, jobs, store, look_at=LOOK_AT)
            return Campaign(plan, runner, reporter).run()
        finish = partial(store.finish_campaign, campaign_id)
        with in_allocation(on, book, opened.whole_url, finish) as steps:
            left = on.left_s(book)
            runner = Runner(plan, campaign_id, steps, store, most_left_s=left, look_at=LOOK_AT)
            return Campaign(plan, runner, reporter).run()


def _check_stored(campaign: str, opened: Database) -> None:
    """A controller that ``submit`` started must find what that stored: else it's another database.

    Raises:
        EnvironmentFault: it doesn't; whatever it measured, nobody would find.
    """
    try:
        describe(opened.whole_url, campaign)
    except (UnknownName, NoAnswer) as error:
        raise EnvironmentFault(
            f"on this node, {shown_url(opened.whole_url)} is not the database that the job was "
            "submitted with: the campaign is not in it",
            hint="put it where login and compute nodes see it: --db FILE, or XDG_DATA_HOME; "
            "or take PostgreSQL",
        ) from error


def _whereabouts(on: OnSlurm) -> str:
    """Where the runs of a campaign on Slurm are made."""
    if on.allocation is None:
        return (
            f"on cluster {on.site.name}: each block is a job, up to {on.wish.jobs} in flight; "
            "'commtune status' lists them"
        )
    job, nodes = on.allocation.number, on.allocation.nodes
    named = ", ".join(nodes[:_NODES_SAID]) + (", ..." if len(nodes) > _NODES_SAID else "")
    return f"on cluster {on.site.name}: runs are steps of job {job}, on {named}"


def slurm_campaign(
    spec: CampaignSpec, mpi: MpiInstallation, say: Callable[[str], None]
) -> OnSlurm:
    """A campaign on Slurm, with its benchmark built; see ``slurm_wiring.on_slurm``."""
    program = _program(mpi, spec.plan.workload, spec.plan.space.variables)
    folder = runs_folder(spec.plan.name).parent
    return on_slurm(spec, mpi, program, folder, say)


def more_on_slurm(on: OnSlurm, store: Store, campaign_id: int) -> BlockJobs | Steps:
    """What makes further runs of a campaign: steps of the allocation that we are in, else jobs."""
    if on.allocation is not None:
        return on.steps(None)
    book = store.job_book(campaign_id)
    return on.batches(book, alive=partial(store.touch, campaign_id))


def steps_on_slurm(on: OnSlurm, watched: Sequence[str], folder: Path) -> Steps:
    """Runs as steps of the allocation that we are in, stored nowhere.

    Args:
        watched: names of all variables that configurations set.
        folder: for record files; the allocation's nodes must see it too.
    """
    program = watching_program(on.program, watched)
    return replace(on, program=program, folder=folder).steps(None)


def submit(on: OnSlurm, opened: Database) -> JobRecord:
    """Submits an allocation in which the campaign runs; returns its record, with its number.

    Raises:
        UserError: one is there already.
        CampaignChanged: the stored campaign of this name asks another question.
        CampaignLocked: a controller works on it, not in a job that ``submit`` made.
        EnvironmentFault: Slurm takes no job.
    """
    store = Store(opened, say=on.say)
    campaign_id = store.open_campaign(slurm_record(on)).id
    book = store.job_book(campaign_id)
    succession = on.succession(book, opened.whole_url)
    if there := succession.alive():
        raise UserError(
            f"campaign {on.spec.plan.name} is with Slurm already: job {there[0].job.number}",
            hint="'commtune status' shows it; 'commtune cancel' ends it",
        )
    dead = _dead_holder(store, campaign_id, book.all_jobs())
    return succession.submit(after=dead, is_over=True).job


def _dead_holder(store: Store, campaign_id: int, jobs: Sequence[JobRecord]) -> str:
    """Number of an allocation that is over and whose controller still holds the campaign's lock.

    It died on another machine, where nobody sees that. Empty where nobody holds the lock.

    Raises:
        CampaignLocked: somebody else holds it, and may live.
    """
    owner = LockOwner.current()
    try:
        store.lock(campaign_id, owner)
    except CampaignLocked:
        holder, since = store.holder(campaign_id) or (owner, 0.0)
        for job in reversed(jobs):
            ended = job.kind is JobKind.ALLOCATION and job.stage is JobStage.OVER and job.ended_at
            if ended and since <= ended + _CLOCKS_S and _is_on(holder.host, job.nodes):
                return job.number
        raise
    store.unlock(campaign_id, owner)
    return ""


def _is_on(host: str, nodes: str) -> bool:
    return host.partition(".")[0] in {node.partition(".")[0] for node in expand_hosts(nodes)}


def example_script(on: OnSlurm, db: str | None, *, block: bool) -> str:
    """The script that would be submitted: of an allocation, or of the job of one block."""
    return on.example_block() if block else on.allocation_script(database_url(db)).render("0" * 16)


def test_script(on: OnSlurm, script: str) -> str:
    """What ``sbatch --test-only`` says of a script.

    Raises:
        SlurmFault: Slurm would not take it.
    """
    with tempfile.TemporaryDirectory(prefix="commtune-") as folder:
        file = Path(folder) / "script.sh"
        file.write_bytes(script.encode("ascii"))
        return on.submission.test_only(file, folder=Path(folder))


def cancel(campaign_id: int, opened: Database) -> Cancelled:
    """Ends what of a campaign is with Slurm.

    Raises:
        SlurmFault: Slurm gives no answer.
    """
    outside = clean_environment(os.environ)
    book = Store(opened).job_book(campaign_id)
    return cancel_all(book, Queue(outside), Submission(outside))


def jobs_now(jobs: Collection[JobRecord]) -> dict[str, JobRecord]:
    """Jobs as Slurm describes them now, by their keys; nothing where it can't be asked."""
    return glance.jobs_now(jobs, Queue(clean_environment(os.environ), timeout_s=_ANSWER_S))


def replay(
    spec: CampaignSpec, grid: Grid, opened: Database, reporter: Reporter, *, take_over: bool
) -> Report:
    """Runs a campaign on a recording, marked as such, or goes on with it.

    Budgets are recorded seconds; in truth it takes far less.

    Raises:
        CampaignError: the recording lacks something that the campaign could ask for.
        CampaignChanged, CampaignLocked: as for ``tune``.
    """
    plan = spec.plan
    check_plan(grid, plan)
    benchmark = ReplayBenchmark(grid, plan.seed)
    record = replayed_record(spec, grid)
    with _controlled(opened, record, reporter, take_over=take_over) as (store, campaign_id):
        # The recording's time goes on where an earlier session left it.
        benchmark.clock.now = fsum(run.wall_s for run in store.runs(campaign_id))
        runner = Runner(plan, campaign_id, benchmark, store, clock=benchmark.clock)
        return Campaign(plan, runner, reporter, replayed=benchmark.replayed).run()


@contextmanager
def _controlled(
    opened: Database, record: CampaignRecord, reporter: Reporter, *, take_over: bool
) -> Iterator[tuple[Store, int]]:
    """The store and the campaign's number in it, while we are its one controller."""
    store = Store(opened, say=reporter.say)
    owner = LockOwner.current()
    handle, before = store.begin(record, owner, take_over=take_over)
    if before:
        reporter.say(f"note: going on where another controller stopped ({before})")
    try:
        yield store, handle.id
        store.finish_campaign(handle.id)
    finally:
        # Not said a second time: without us, the next controller sees that the lock is dead.
        with suppress(DatabaseFault):
            store.unlock(handle.id, owner)


@contextmanager
def held(
    opened: Database, record: CampaignRecord, reporter: Reporter, *, take_over: bool
) -> Iterator[tuple[Store, int]]:
    """As ``_controlled``, for more runs only: settings and state of the campaign stay."""
    store = Store(opened, say=reporter.say)
    owner = LockOwner.current()
    campaign_id = store.open_campaign(record).id
    store.lock(campaign_id, owner, take_over=take_over)
    try:
        yield store, campaign_id
    finally:
        with suppress(DatabaseFault):
            store.unlock(campaign_id, owner)


def bench(benchmark: LocalBenchmark, request: RunRequest, time_limit_s: float) -> RunResult:
    """One run of the benchmark, not stored."""
    return benchmark.measure(request, time_limit_s)


def find(named: str) -> MpiInstallation:
    """Finds an MPI; see ``cluster.mpi.find_mpi``."""
    return find_mpi(named)
