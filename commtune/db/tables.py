"""The tables. Times of day are seconds since 1970 (UTC), durations seconds, sizes bytes.

Migrations make the tables, this file says what they are; a test holds the two together. Views for
people (``results`` and others) are in the migrations only.
"""

from __future__ import annotations

from typing import Annotated, Any

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from commtune.db.checked_columns import check_columns

#: SQLite numbers rows by itself only in a column declared INTEGER.
_Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_CampaignKey = Annotated[
    int, mapped_column(_Id, sa.ForeignKey("campaigns.id"), primary_key=True, autoincrement=False)
]


class Base(DeclarativeBase):
    """Base of all tables; constraints get names, so that migrations can refer to them."""

    metadata = sa.MetaData(
        naming_convention={
            "ix": "ix_%(column_0_N_label)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy's own protocol
        float: sa.Double(),
        bool: sa.Boolean(),
        bytes: sa.LargeBinary(),
        dict[str, Any]: sa.JSON(none_as_null=True),
        list[Any]: sa.JSON(none_as_null=True),
    }


class System(Base):
    """A machine: what its fingerprint was made of."""

    __tablename__ = "systems"

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    fingerprint: Mapped[str] = mapped_column(sa.String(128), unique=True)
    name: Mapped[str] = mapped_column(sa.Text)
    description: Mapped[dict[str, Any]]
    created: Mapped[float]


class Stack(Base):
    """The software that moved the data: library text, version, loaded libraries."""

    __tablename__ = "stacks"

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    fingerprint: Mapped[str] = mapped_column(sa.String(128), unique=True)
    text: Mapped[str] = mapped_column(sa.Text)
    description: Mapped[dict[str, Any]]
    created: Mapped[float]


class Campaign(Base):
    """One question to one machine: ``what`` must not change, ``settings`` may.

    ``site`` is empty where it was measured here, else the name of the site that shared it.
    """

    __tablename__ = "campaigns"

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(255), unique=True)
    content_key: Mapped[str] = mapped_column(sa.String(64))
    what: Mapped[dict[str, Any]]
    settings: Mapped[dict[str, Any]]
    space: Mapped[dict[str, Any]]
    space_key: Mapped[str] = mapped_column(sa.String(64))
    seed: Mapped[int] = mapped_column(sa.BigInteger)
    system_id: Mapped[int] = mapped_column(sa.ForeignKey("systems.id"))
    stack_id: Mapped[int] = mapped_column(sa.ForeignKey("stacks.id"))
    simulated: Mapped[bool]
    folder: Mapped[str] = mapped_column(sa.Text)
    created: Mapped[float]
    finished: Mapped[float | None]
    site: Mapped[str] = mapped_column(sa.Text, server_default=sa.text("''"))


class Lock(Base):
    """Who works on a campaign now; no row where nobody does."""

    __tablename__ = "locks"

    campaign_id: Mapped[_CampaignKey]
    host: Mapped[str] = mapped_column(sa.Text)
    boot_id: Mapped[str] = mapped_column(sa.Text)
    pid: Mapped[int] = mapped_column(sa.BigInteger)
    pid_start: Mapped[int] = mapped_column(sa.BigInteger)
    pid_namespace: Mapped[int] = mapped_column(sa.BigInteger)
    since: Mapped[float]
    heartbeat: Mapped[float]


class DecisionRow(Base):
    """What a campaign decided to confirm, stored before it did; the newest row holds."""

    __tablename__ = "decisions"
    __table_args__ = (sa.Index("ix_decisions_campaign", "campaign_id", "id"),)

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    campaign_id: Mapped[int] = mapped_column(sa.ForeignKey("campaigns.id"))
    decision: Mapped[dict[str, Any]]
    created: Mapped[float]


class ConclusionRow(Base):
    """What a campaign came to, as plain data; the newest row holds."""

    __tablename__ = "conclusions"
    __table_args__ = (sa.Index("ix_conclusions_campaign", "campaign_id", "id"),)

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    campaign_id: Mapped[int] = mapped_column(sa.ForeignKey("campaigns.id"))
    conclusion: Mapped[dict[str, Any]]
    created: Mapped[float]


class ConfigurationRow(Base):
    """One assignment of environment variables; shared by campaigns."""

    __tablename__ = "configurations"

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    key: Mapped[str] = mapped_column(sa.String(64), unique=True)
    environment: Mapped[dict[str, Any]]


class Trial(Base):
    """One configuration in one campaign; number 0 is the baseline."""

    __tablename__ = "trials"
    __table_args__ = (sa.UniqueConstraint("campaign_id", "number"),)

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    campaign_id: Mapped[int] = mapped_column(sa.ForeignKey("campaigns.id"))
    number: Mapped[int]
    configuration_id: Mapped[int] = mapped_column(sa.ForeignKey("configurations.id"))
    origin: Mapped[str] = mapped_column(sa.String(32))
    label: Mapped[str] = mapped_column(sa.Text)
    created: Mapped[float]


class Block(Base):
    """Runs that were planned to be made close together; ``runs.block`` is its number.

    ``configurations`` are environments in the order of the runs; the empty one is the default.
    """

    __tablename__ = "blocks"

    campaign_id: Mapped[_CampaignKey]
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    phase: Mapped[str] = mapped_column(sa.String(32))
    operation: Mapped[str] = mapped_column(sa.String(64))
    configurations: Mapped[list[Any]]
    created: Mapped[float]


class ExecutionRow(Base):
    """What the library did under a configuration, from an untimed run; the latest one holds.

    ``fingerprints`` is by size (bytes, as text), ``said`` a list of lines.
    """

    __tablename__ = "executions"

    campaign_id: Mapped[_CampaignKey]
    configuration_id: Mapped[int] = mapped_column(
        _Id, sa.ForeignKey("configurations.id"), primary_key=True, autoincrement=False
    )
    operation: Mapped[str] = mapped_column(sa.String(64), primary_key=True)
    followed: Mapped[str] = mapped_column(sa.String(32))
    fingerprints: Mapped[dict[str, Any]]
    said: Mapped[list[Any]]
    why: Mapped[str] = mapped_column(sa.Text)
    became: Mapped[str | None] = mapped_column(sa.String(64))
    created: Mapped[float]


_NOT_OVER = sa.text("stage <> 'over'")


class Job(Base):
    """A job of a scheduler; ``stage`` goes prepared, submitted, over."""

    __tablename__ = "jobs"
    __table_args__ = (
        # Node-hours are added up without reading a row.
        sa.Index("ix_jobs_campaign", "campaign_id", "node_hours"),
        # It holds only jobs that are not over: few, however many there were.
        sa.Index(
            "ix_jobs_open",
            "campaign_id",
            "prepared_at",
            sqlite_where=_NOT_OVER,
            postgresql_where=_NOT_OVER,
        ),
    )

    key: Mapped[str] = mapped_column(sa.String(255), primary_key=True)
    campaign_id: Mapped[int] = mapped_column(sa.ForeignKey("campaigns.id"))
    kind: Mapped[str] = mapped_column(sa.String(32))
    stage: Mapped[str] = mapped_column(sa.String(16))
    block: Mapped[int | None]
    number: Mapped[str] = mapped_column(sa.String(64))
    folder: Mapped[str] = mapped_column(sa.Text)
    word: Mapped[str] = mapped_column(sa.Text)
    reason: Mapped[str] = mapped_column(sa.Text)
    nodes: Mapped[str] = mapped_column(sa.Text)
    node_count: Mapped[int]
    prepared_at: Mapped[float]
    started_at: Mapped[float | None]
    ended_at: Mapped[float | None]
    node_hours: Mapped[float]
    detail: Mapped[str] = mapped_column(sa.Text)


class Run(Base):
    """One launch of the benchmark; ``state`` goes planned, running, stored.

    ``nodes`` is a list of names with commas between; empty where no scheduler gave them.
    """

    __tablename__ = "runs"
    __table_args__ = (
        sa.Index("ix_runs_campaign", "campaign_id", "id"),
        sa.Index("ix_runs_campaign_state", "campaign_id", "state", "outcome"),
    )

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    run_id: Mapped[str] = mapped_column(sa.String(255), unique=True)
    campaign_id: Mapped[int] = mapped_column(sa.ForeignKey("campaigns.id"))
    trial_id: Mapped[int] = mapped_column(sa.ForeignKey("trials.id"))
    configuration_id: Mapped[int] = mapped_column(sa.ForeignKey("configurations.id"))
    phase: Mapped[str] = mapped_column(sa.String(32))
    block: Mapped[int]
    position: Mapped[int]
    session: Mapped[str] = mapped_column(sa.Text)
    operation: Mapped[str] = mapped_column(sa.String(64))
    workload: Mapped[dict[str, Any]]
    timing: Mapped[dict[str, Any]]
    state: Mapped[str] = mapped_column(sa.String(16))
    outcome: Mapped[str | None] = mapped_column(sa.String(32))
    started_at: Mapped[float]
    wall_s: Mapped[float | None]
    exit_code: Mapped[int | None]
    detail: Mapped[str] = mapped_column(sa.Text)
    output_tail: Mapped[str] = mapped_column(sa.Text)
    oversubscribed: Mapped[bool]
    other_load: Mapped[float | None]
    header: Mapped[dict[str, Any] | None]
    footer: Mapped[dict[str, Any] | None]
    nodes: Mapped[str | None] = mapped_column(sa.Text)
    distance: Mapped[str | None] = mapped_column(sa.Text)
    end_s: Mapped[float | None]


class MeasurementRecord(Base):
    """One size of one run. ``place`` is its rank in the order the benchmark finished them.

    ``samples`` is zlib over little-endian 32-bit IEEE floats, ``n_samples`` of them, seconds, in
    the order taken. Reading the columns before it doesn't read it; ``first_call_s`` came later and
    stands behind it, so it is read by itself.
    """

    __tablename__ = "measurements"

    run_id: Mapped[int] = mapped_column(
        _Id, sa.ForeignKey("runs.id"), primary_key=True, autoincrement=False
    )
    place: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    operation: Mapped[str] = mapped_column(sa.String(64))
    # Not named bytes: that would hide the type from the columns below.
    size: Mapped[int] = mapped_column("bytes", sa.BigInteger)
    median_s: Mapped[float]
    min_s: Mapped[float]
    mean_s: Mapped[float]
    p95_s: Mapped[float]
    max_s: Mapped[float]
    algbw: Mapped[float]
    busbw: Mapped[float]
    batch: Mapped[int]
    canary_s: Mapped[float | None]
    canary_after_s: Mapped[float | None]
    wrong: Mapped[int] = mapped_column(sa.BigInteger)
    n_samples: Mapped[int]
    samples: Mapped[bytes]
    first_call_s: Mapped[float | None]


class ProfileRow(Base):
    """What came out of a campaign for a range of sizes."""

    __tablename__ = "profiles"
    __table_args__ = (
        sa.UniqueConstraint("campaign_id", "name"),
        # The newest answers first, found and filtered by size without touching the table.
        sa.Index("ix_profiles_best", "operation", "created", "id", "bytes_low", "bytes_high"),
        # A number once printed never names another profile.
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(_Id, primary_key=True)
    campaign_id: Mapped[int] = mapped_column(sa.ForeignKey("campaigns.id"))
    name: Mapped[str] = mapped_column(sa.String(255))
    operation: Mapped[str] = mapped_column(sa.String(64))
    backend: Mapped[str] = mapped_column(sa.String(64))
    ranks: Mapped[int]
    nodes: Mapped[int]
    bytes_low: Mapped[int] = mapped_column(sa.BigInteger)
    bytes_high: Mapped[int] = mapped_column(sa.BigInteger)
    configuration_id: Mapped[int] = mapped_column(sa.ForeignKey("configurations.id"))
    verdict: Mapped[str] = mapped_column(sa.String(32))
    level: Mapped[float]
    minimum_gain: Mapped[float]
    note: Mapped[str] = mapped_column(sa.Text)
    simulated: Mapped[bool]
    created: Mapped[float]
    details: Mapped[dict[str, Any]] = mapped_column(server_default=sa.text("'{}'"))
    conditions: Mapped[dict[str, Any]] = mapped_column(server_default=sa.text("'{}'"))


class ProfilePoint(Base):
    """Evidence of a profile at one size and machine state; guards are other operations."""

    __tablename__ = "profile_points"

    profile_id: Mapped[int] = mapped_column(
        _Id, sa.ForeignKey("profiles.id"), primary_key=True, autoincrement=False
    )
    place: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    is_guard: Mapped[bool]
    operation: Mapped[str] = mapped_column(sa.String(64))
    # Not named bytes: that would hide the type from the columns below.
    size: Mapped[int] = mapped_column("bytes", sa.BigInteger)
    speed: Mapped[str] = mapped_column(sa.String(32))
    default_s: Mapped[float]
    tuned_s: Mapped[float]
    ratio: Mapped[float]
    low: Mapped[float]
    high: Mapped[float]
    pairs: Mapped[int]
    verdict: Mapped[str] = mapped_column(sa.String(32))
    share: Mapped[float] = mapped_column(server_default=sa.text("1.0"))


check_columns(Base.metadata)
