"""Measures any two configurations against each other, without storing the runs."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from commtune.app.measure.benchmarking import list_settings_remarks
from commtune.app.measure.past_verifications import measure_session_spread
from commtune.app.measure.remeasuring import rebuild_scheduler_campaign
from commtune.campaign.patterns import choose_group_size
from commtune.campaign.workload import DEFAULT_SIZES, check_elements, check_emulated, rounded_words
from commtune.cluster.machine.description import describe_machine
from commtune.db.queries.description import load_own_profile
from commtune.db.records import CampaignDescription
from commtune.documents.files import read_file
from commtune.documents.nearest import quote_value
from commtune.errors import (
    CommtuneError,
    EnvironmentFault,
    InvalidKey,
    InvalidValue,
    NoAnswer,
    UserError,
)
from commtune.formatting import describe_estimand, format_ranks
from commtune.model import (
    DEFAULT,
    Backend,
    Configuration,
    Estimand,
    JobScheduler,
    MpiInstallation,
    Operation,
    Timing,
    Workload,
)
from commtune.private_files import make_private_folder
from commtune.systems import reference_settings
from commtune.tuner.ports import Benchmark, Reporter
from commtune.tuner.statistics.session_spread import SessionSpread
from commtune.tuner.verification.pairwise import Arm as Arm
from commtune.tuner.verification.pairwise import Difference as Difference
from commtune.tuner.verification.pairwise import PairwiseComparison
from commtune.tuner.verification.pairwise import PairwiseResult as PairwiseResult
from commtune.wiring import benchmark_setup, space_fitting
from commtune.wiring.campaign_records import system_of
from commtune.wiring.gpu_toolchains import libraries_of
from commtune.wiring.scheduler_campaign import SchedulerCampaign
from commtune.wording import format_outcomes

_FILE = "name a file with a NAME=VALUE on each line"


@dataclass(frozen=True)
class WorkloadChanges:
    """Changes to the workload of a profile's campaign; ``None`` keeps its value.

    Attributes:
        sizes: message sizes, bytes.
    """

    operation: Operation | None = None
    ranks: int | None = None
    sizes: tuple[int, ...] | None = None
    backend: Backend | None = None
    emulate_nodes: int | None = None


@dataclass(frozen=True)
class ComparisonResult:
    """The result of a comparison.

    Attributes:
        names: both sides as the user wrote them.
        library: the communication library, such as ``NCCL 2.28.9`` or ``MPICH 5.0.2``.
        spread: how much speedups on this system differ between sessions; it widens the intervals.
    """

    names: Mapping[Arm, str]
    configurations: Mapping[Arm, Configuration]
    workload: Workload
    mpi: MpiInstallation
    library: str
    spread: SessionSpread
    pairs: PairwiseResult

    def check_worked(self) -> None:
        """Checks that both sides had a successful run.

        Raises:
            EnvironmentFault: one had none; with the end of its output.
        """
        is_own = self.workload.own is not None
        alone = ", with these variables set" if is_own else ": commtune bench -x NAME=VALUE"
        for arm in Arm:
            failures = self.pairs.failures[arm]
            failed = sum(failures.values())
            if failed and failed == self.pairs.blocks:
                detail, tail = self.pairs.details[arm]
                raise EnvironmentFault(
                    f"{arm} ({self.names[arm]}) failed in all of {failed} runs: "
                    f"{format_outcomes(failures)}: {detail}",
                    hint=tail or f"try it by itself{alone}",
                )


@dataclass(frozen=True)
class _Operand:
    """A side of the comparison; for a profile with its campaign and pinned variables."""

    configuration: Configuration
    pins: Mapping[str, str] = field(default_factory=dict)
    stored: CampaignDescription | None = None
    reference: reference_settings.ReferenceSettings | None = None


def compare_configurations(
    a: str,
    b: str,
    *,
    changes: WorkloadChanges | None = None,
    mpi: str | None = None,
    time_s: float = 30.0,
    db: str | None = None,
    reporter: Reporter,
) -> ComparisonResult:
    """Measures two configurations against each other, in blocks of one run of each.

    Ctrl-C ends it early; the result then has the measurements until that moment.

    Args:
        a, b: ``default``, a profile, ``NAME=VALUE NAME=VALUE``, ``@FILE`` or ``reference:NAME``.
        changes: changes to the workload of the profile, or of an allreduce by two ranks.
        mpi: the MPI; that of the profile, or the one that is found, by default.
        time_s: wall time of the runs, seconds.

    Raises:
        UserError, UnknownName: a side is unknown, or can't be measured here.
        EnvironmentFault: the benchmark can't be started at all, or run after run was lost.
    """
    operands = {Arm.A: _read_operand(a, db), Arm.B: _read_operand(b, db)}
    stored = next((one.stored for one in operands.values() if one.stored), None)
    on = rebuild_scheduler_campaign(stored, mpi, reporter.say) if stored else None
    named = mpi or (stored.settings.get("mpi") if stored else None) or "auto"
    workload = _merge_workload(changes or WorkloadChanges(), stored)
    found_mpi = on.mpi if on else benchmark_setup.find_named_mpi(named, workload)
    if on:
        _refuse_outside(on, workload.ranks, ["commtune", "compare", a, b])
    for note in _list_notes(operands, workload, found_mpi):
        reporter.say(f"note: {note}")
    _require_one_estimand(operands)
    configurations = _add_pins(operands)
    timing = Timing(**stored.what["timing"]) if stored else Timing()
    estimand = stored.estimand if stored else Estimand.MEDIAN
    system = (
        stored.system if stored and on else system_of(describe_machine(), workload.emulated_nodes)
    )
    spread = _find_spread(system.fingerprint, db, reporter.say)
    with _prepare_benchmark(configurations, workload, found_mpi, on) as benchmark:
        pairs = PairwiseComparison(
            benchmark, configurations, workload, timing, time_s, reporter, estimand, spread.share
        ).run()
    return ComparisonResult(
        names={Arm.A: a, Arm.B: b},
        configurations=configurations,
        workload=workload,
        mpi=found_mpi,
        library=space_fitting.library_words(workload.backend, found_mpi),
        spread=spread,
        pairs=pairs,
    )


def _find_spread(system: str, db: str | None, say: Callable[[str], None]) -> SessionSpread:
    """Measures the spread between sessions; settings are compared without a database, too."""
    try:
        return measure_session_spread(system, db)
    except NoAnswer:
        pass  # nothing is stored yet
    except CommtuneError as error:
        say(f"note: no variation between sessions is known: {error.message}")
    return SessionSpread()


def _require_one_estimand(operands: Mapping[Arm, _Operand]) -> None:
    found = {one.stored.estimand for one in operands.values() if one.stored}
    if len(found) > 1:
        times = " and of ".join(describe_estimand(one) for one in sorted(found))
        raise UserError(
            f"the profiles are about different times: speedups are ratios of {times}",
            hint="write one side as its settings: NAME=VALUE ...",
        )


def _read_operand(written: str, db: str | None) -> _Operand:
    """Reads a side: ``default``, ``@FILE``, ``reference:NAME``, settings, or a profile."""
    if written == "default":
        return _Operand(DEFAULT)
    if written.startswith("@"):
        return _Operand(_from_file(Path(written[1:])))
    if written.startswith(reference_settings.REFERENCE):
        found = reference_settings.find_reference_settings(written)
        return _Operand(Configuration(found.settings), reference=found)
    if "=" in written:
        return _Operand(_from_words(written))
    answer, stored = load_own_profile(db, written)
    return _Operand(answer.profile.configuration, answer.pinned, stored)


def _from_words(written: str) -> Configuration:
    try:
        words = shlex.split(written)
    except ValueError as error:
        raise UserError(
            f"{written}: {error}", hint="write 'NAME=VALUE NAME=VALUE', values with blanks quoted"
        ) from error
    return Configuration(dict(_setting(word, written) for word in words))


def _from_file(path: Path) -> Configuration:
    try:
        lines = read_file(path).decode("utf-8").splitlines()
    except OSError as error:
        raise UserError(f"can't read {path}: {error.strerror}", hint=_FILE) from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not text", hint=_FILE) from error
    # Lines of 'commtune export --format sh' begin with "export".
    stripped = (line.strip().removeprefix("export ").strip() for line in lines)
    numbered = [(number, line) for number, line in enumerate(stripped, 1) if line]
    return Configuration(
        dict(_setting(line, f"{path}:{n}") for n, line in numbered if not line.startswith("#"))
    )


def _setting(word: str, where: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals or not name.isidentifier():
        raise UserError(f"{where}: {quote_value(word)} sets no variable", hint="write NAME=VALUE")
    return name, value


def _add_pins(operands: Mapping[Arm, _Operand]) -> dict[Arm, Configuration]:
    """Returns the settings of both sides, including the pinned variables of a profile."""
    # Pins belong to the default that a profile was measured against, so both sides get them. A
    # side's own settings take precedence.
    shared: dict[str, str] = {}
    for arm in reversed(Arm):
        shared |= operands[arm].pins
    return {
        arm: Configuration({**(one.pins or shared), **one.configuration})
        for arm, one in operands.items()
    }


def _list_notes(
    operands: Mapping[Arm, _Operand], workload: Workload, mpi: MpiInstallation
) -> Iterator[str]:
    """Yields notes for the user on rounded sizes, on settings and on reference settings."""
    if rounded := rounded_words(workload):
        yield rounded
    libraries = libraries_of(workload.backend, mpi)
    versions = {mpi.flavour.library: mpi.version}
    for one in operands.values():
        if one.reference is not None:
            yield from _reference_notes(one.reference, libraries)
        elif one.stored is None:
            yield from list_settings_remarks(one.configuration, versions)


def _reference_notes(
    one: reference_settings.ReferenceSettings, libraries: Collection[str]
) -> Iterator[str]:
    """Yields notes on reference settings; ``libraries`` are those that the runs use."""
    found, name = one.entry, f"{reference_settings.REFERENCE}{one.name}"
    if found.unfit:
        yield f"{name} can't be used as it stands: {found.unfit}"
    for variable, what in found.fill_in.items():
        yield f"{name} is measured without {variable}, which is yours to set: {what}"
    if found.launcher:
        yield f"{name} is meant for this launch: {found.launcher}"
    if libraries and set(found.libraries).isdisjoint(libraries):
        yield (
            f"{name} is for {', '.join(found.libraries)}, and these runs use "
            f"{', '.join(libraries)}: variables that they don't read have no effect"
        )


def _merge_workload(changes: WorkloadChanges, stored: CampaignDescription | None) -> Workload:
    """Returns the workload of both sides; ``stored`` is the campaign of a profile, if any."""
    workload = Workload(Operation.ALLREDUCE, DEFAULT_SIZES)
    if stored:
        workload = Workload.of_plain(stored.what["workload"])
    given = {name: value for name, value in asdict(changes).items() if value is not None}
    nodes = given.pop("emulate_nodes", None)
    before = workload.backend
    workload = replace(workload, **given)
    if nodes is None:
        # A profile's emulated nodes stay with its backend.
        nodes = workload.emulated_nodes if workload.backend == before else 0
    if nodes:
        check_emulated(nodes, workload.ranks, (workload.backend, *workload.shape.backends))
    workload = replace(workload, emulated_nodes=nodes)
    try:
        check_elements(workload.sizes, workload.dtype, Backend(workload.backend))
    except InvalidValue as error:
        raise InvalidKey("sizes", error.message, error.hint) from error
    _check_pattern(workload, stored)
    # A user's own program may be compared even with a single process.
    least = 2 if workload.own is None else 1
    if workload.ranks < least:
        raise InvalidKey("ranks", f"{workload.ranks} is out of range", f"from {least}")
    return workload


def _check_pattern(workload: Workload, stored: CampaignDescription | None) -> None:
    """Refuses a pattern without a description of its messages, or unfit for the ranks."""
    operation = workload.operation
    if not operation.is_pattern:
        return
    if stored is None or operation != stored.what["workload"]["operation"]:
        raise InvalidKey(
            "operation",
            f"only a profile of a campaign on {operation} says which messages it has",
            "name one of its profiles, or try both with 'commtune bench'",
        )
    ranks = stored.what["workload"]["ranks"]
    if operation is not Operation.MATRIX:
        nodes, size = workload.emulated_nodes or workload.nodes, workload.shape.group_size
        try:
            choose_group_size(operation, workload.ranks, nodes, size)
        except InvalidKey as refused:
            key = "emulate_nodes" if workload.ranks == ranks else "ranks"
            raise InvalidKey(key, refused.problem, "leave it out") from refused
    elif workload.ranks < ranks:
        raise InvalidKey("ranks", f"the matrix has more than {workload.ranks}", "leave it out")


def _refuse_outside(on: SchedulerCampaign, wanted: int, command: list[str]) -> None:
    """Refuses to measure a profile of a scheduler outside of an allocation like its own."""
    # Outside of an allocation, all ranks would start on this node.
    request = on.request
    ranks = request.nodes * request.ranks_per_node
    if wanted != ranks:
        raise InvalidKey(
            "ranks",
            f"{wanted}, and the campaign on {request.scheduler.label} is about "
            f"{format_ranks(ranks, request.nodes)}",
            "leave it out",
        )
    if on.allocation is None:
        scheduler = request.scheduler
        asked = [f"--nodes={request.nodes}", f"--ntasks-per-node={request.ranks_per_node}"]
        asked += [f"--account={request.account}"] if request.account else []
        asked += [f"--partition={request.partition}"] if request.partition else []
        raise UserError(
            f"the profile was measured on {scheduler.label}, and this is not an allocation: all "
            "ranks would start on this node",
            hint=f"compare inside one: {shlex.join(['salloc', *asked, *command])}"
            if scheduler is JobScheduler.SLURM
            else "'commtune verify' measures it again, by jobs",
        )


@contextmanager
def _prepare_benchmark(
    configurations: Mapping[Arm, Configuration],
    workload: Workload,
    mpi: MpiInstallation,
    on: SchedulerCampaign | None,
) -> Iterator[Benchmark]:
    """Yields the benchmark; the records of its runs are deleted at the end."""
    names = tuple(sorted({name for one in configurations.values() for name in one}))
    place = on.folder.parent if on else None  # which all nodes see
    if place:
        make_private_folder(place)
    # On NFS, ranks that are still being ended keep files in it.
    with tempfile.TemporaryDirectory(
        prefix="commtune-", dir=place, ignore_cleanup_errors=True
    ) as folder:
        if on is None:
            yield benchmark_setup.prepare_benchmark(mpi, {}, names, workload, Path(folder))
        else:
            yield on.unstored_steps(names, Path(folder))
