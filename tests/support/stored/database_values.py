"""Values that the database tests store, and how many rows they make."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text
from stores import opened_store

from commtune.db.codec import unpack_samples
from commtune.db.connection.engine import _as_rows
from commtune.db.queries import profiles
from commtune.db.queries.summaries import list_summaries
from commtune.db.records import (
    CampaignRecord,
    CampaignSummary,
    StackRecord,
    StoredProfile,
    SystemRecord,
)
from commtune.db.storage.store import Store
from commtune.model import (
    DEFAULT,
    BlockPlan,
    Configuration,
    Execution,
    Followed,
    Interval,
    JobKind,
    JobRecord,
    Measurement,
    Operation,
    Outcome,
    Phase,
    PointEvidence,
    Profile,
    RunRequest,
    RunResult,
    Tail,
    Timing,
    Verdict,
    VerificationRecord,
    VerificationVerdict,
    Workload,
)
from commtune.tuner import ports

TUNED = Configuration({"MPIR_CVAR_CH4_SHM_EAGER": "65536", "MPIR_CVAR_X": ""})
SIZES = (8, 1024, 1 << 20)
_STORED = (
    "bytes", "median_s", "min_s", "mean_s", "p95_s", "max_s", "algbw", "busbw", "batch",
    "canary_s", "canary_after_s", "wrong", "first_call_s",
)  # fmt: skip


def count(store: Store, table: str) -> int:
    """Rows in a table."""
    with store.database.read() as connection:
        return int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())


def summaries_of(store: Store) -> list[CampaignSummary]:
    """All campaigns of its database, newest first."""
    return list_summaries(store.database.whole_url)


def profiles_of(store: Store, campaign: str | None = None) -> list[StoredProfile]:
    """The profiles of a store, by its own connection."""
    with store.database.read() as connection:
        return profiles._list_profiles(_as_rows(connection), campaign)


def check_measurements(store: Store, run_id: str, wanted: Sequence[Measurement]) -> None:
    """Holds all that is stored of a run's own operation against what was passed in."""
    asked = (
        "SELECT m.* FROM measurements m JOIN runs r ON r.id = m.run_id"
        " WHERE r.run_id = :run AND m.operation = r.operation ORDER BY m.place"
    )
    with store.database.read() as connection:
        rows = connection.execute(text(asked), {"run": run_id}).all()
    for row, measured in zip(rows, wanted, strict=True):
        for name in _STORED:
            assert getattr(row, name) == getattr(measured, name), name
        samples = unpack_samples(row.samples)
        assert (len(samples), row.n_samples) == (len(measured.samples_s),) * 2
        assert samples == pytest.approx(measured.samples_s, rel=1e-6)


def samples_of(store: Store, run_id: str, size: int) -> tuple[float, ...]:
    """The samples of a run at a size of its own operation, seconds."""
    asked = (
        "SELECT m.samples FROM measurements m JOIN runs r ON r.id = m.run_id"
        " WHERE r.run_id = :run AND m.bytes = :size AND m.operation = r.operation"
    )
    with store.database.read() as connection:
        found = connection.execute(text(asked), {"run": run_id, "size": size})
        return unpack_samples(found.scalar_one())


def campaign(name: str = "shm", **changes: Any) -> CampaignRecord:
    """A campaign over MPICH's shared memory."""
    record = CampaignRecord(
        name=name,
        what={"operation": "allreduce", "sizes": SIZES, "timing": {"warmup": 5}},
        settings={"budget": {"wall_s": 60}},
        space={"version": 1, "variables": {"MPIR_CVAR_X": {"kind": "bool"}}},
        space_key="0123456789abcdef",
        seed=7,
        system=SystemRecord("sys-1", "laptop", {"cpu": {"model": "Xeon", "cores": 2}}),
        stack=StackRecord("stack-1", "MPICH 4.3.0", {"version": "4.3.0", "libraries": ["libmpi"]}),
        folder="/home/ann/campaigns/shm",
    )
    return replace(record, **changes)


def request(run_id: str = "r1", **changes: Any) -> RunRequest:
    """A search run of the tuned configuration in trial 1."""
    return replace(
        RunRequest(
            run_id=run_id,
            configuration=TUNED,
            workload=Workload(Operation.ALLREDUCE, SIZES, ranks=2),
            timing=Timing(warmup=3, time_cap_s=0.125),
            phase=Phase.SEARCH,
            trial=1,
            block=4,
            position=2,
        ),
        **changes,
    )


def measurement(bytes: int, median_s: float = 1.25e-6) -> Measurement:
    """A size whose samples lie around the median."""
    samples = tuple(median_s * (1 + 0.01 * step) for step in range(-5, 6))
    return Measurement(
        bytes=bytes,
        median_s=median_s,
        min_s=samples[0],
        mean_s=median_s,
        p95_s=samples[-2],
        max_s=samples[-1],
        algbw=bytes / median_s,
        busbw=bytes / median_s,
        samples_s=samples,
        batch=16,
        canary_s=6e-8,
        first_call_s=4e-4,
    )


def result(run_id: str = "r1", **changes: Any) -> RunResult:
    """What a good run of ``request`` says."""
    return replace(
        RunResult(
            run_id=run_id,
            outcome=Outcome.OK,
            started_at=1_700_000_000.5,
            wall_s=0.75,
            measurements=tuple(measurement(size, 1e-6 + size * 1e-9) for size in SIZES),
            header={"library": "MPICH 4.3.0", "ranks": [{"rank": 0, "cores": [0]}]},
            footer={"sizes": 3},
            exit_code=0,
        ),
        **changes,
    )


def block(number: int = 4, **changes: Any) -> BlockPlan:
    """A confirmation of the tuned configuration."""
    order = (Configuration({"OTHER": "1"}), DEFAULT, TUNED)
    return replace(BlockPlan(number, Phase.CONFIRM, Operation.ALLREDUCE, order), **changes)


def job(key: str = "shm-0004", **changes: Any) -> JobRecord:
    """A job for block 4 that was written down and not handed in yet."""
    folder = f"/home/ann/campaigns/shm/jobs/{key}"
    return replace(JobRecord(key, JobKind.BLOCK, folder, 1_700_000_000.25, 2, block=4), **changes)


def execution(configuration: Configuration = TUNED, **changes: Any) -> Execution:
    """A library that did as it was told."""
    digests = {8: "aa01", 1 << 20: "bb02"}
    said = ("algorithm: ring", "")
    return replace(
        Execution(configuration, "allreduce", Followed.EXECUTED, digests, said), **changes
    )


def point(
    bytes: int, speed: str = "fast", low: float = 1.3, operation: str = "allreduce"
) -> PointEvidence:
    """Evidence that the tuned configuration is faster."""
    gain = Interval(ratio=low + 0.1, low=low, high=low + 0.2, pairs=7)
    return PointEvidence(operation, bytes, speed, 2e-5, 1.5e-5, gain, Verdict.FASTER)


def tail(bytes: int) -> Tail:
    """A slow run of the tuned configuration, and none of the default."""
    return Tail(
        bytes=bytes,
        pairs=15,
        slow_runs=1,
        default_slow_runs=0,
        mean_ratio=1.25,
        mean_low=1.125,
        mean_high=1.375,
        p95_ratio=0.875,
    )


def profile(name: str = "allreduce-large", **changes: Any) -> Profile:
    """A confirmed profile from 1 KiB to 1 MiB with two speeds and a guard."""
    return replace(
        Profile(
            name=name,
            operation="allreduce",
            backend="mpi-host",
            ranks=2,
            nodes=1,
            bytes_low=1024,
            bytes_high=1 << 20,
            configuration=TUNED,
            verdict=Verdict.FASTER,
            points=(point(1024, "fast"), point(1 << 20, "fast", 1.6), point(1 << 20, "slow", 1.2)),
            guards=(point(8, "all", 1.0, "broadcast"),),
            note="steady",
        ),
        **changes,
    )


def verification(**changes: Any) -> VerificationRecord:
    """A verification of ``profile`` that holds, after it was made."""
    made = VerificationRecord(
        profile="allreduce-large",
        configuration=TUNED,
        finding=VerificationVerdict.HOLDS,
        first_block=4,
        last_block=9,
        share=0.15,
        session_spread=0.2,
        ended_at=time.time() + 1,
    )
    return replace(made, **changes)


def begin(store: Store, record: CampaignRecord | None = None) -> int:
    """Opens a campaign with the trial of ``request``; returns its number."""
    number = store.open_campaign(record or campaign()).id
    store.add_trial(number, 1, TUNED, "user")
    return number


def add_run(
    store: ports.Store, number: int, run: RunRequest | str = "r1", session: str = "s1", **said: Any
) -> None:
    """Stores a run that ended: ``request`` of this identifier, or another one.

    Args:
        said: of ``result``, what is different.
    """
    asked = request(run) if isinstance(run, str) else run
    store.start_runs(number, [asked], session)
    store.finish_run(number, result(asked.run_id, **said), "allreduce")


def fill_database(url: str) -> None:
    """Makes a database with a campaign of one trial and one profile."""
    with opened_store(url) as store:
        store.save_profiles(begin(store), [profile()])
