"""The tables. Times of day are seconds since 1970 (UTC), durations seconds, sizes bytes.

What a column holds is said by its name, in ``shapes``. A new database is made from this file, and
from ``views``; migrations change older ones.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from commtune.db.checked_columns import checked_type

#: Constraints get names, so that migrations can refer to them.
METADATA = sa.MetaData(
    naming_convention={
        "ix": "ix_%(column_0_N_label)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

#: SQLite numbers rows by itself only in a column declared INTEGER.
_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
#: What a column with the number of another table's row refers to.
_OTHERS = {
    "campaign_id": "campaigns.id",
    "configuration_id": "configurations.id",
    "profile_id": "profiles.id",
    "stack_id": "stacks.id",
    "system_id": "systems.id",
    "trial_id": "trials.id",
}


def _table(
    name: str,
    columns: str,
    *constraints: sa.UniqueConstraint | sa.Index,
    key: str = "id",
    empty: str = "",
    **options: Any,
) -> sa.Table:
    """A table.

    Args:
        columns: their names, with blanks between, as are those of ``key`` and ``empty``.
        key: columns that name a row; the database numbers rows where it is ``id``.
        empty: columns that may be.
    """
    made = [
        _column(name, column, is_key=column in key.split(), may_be_empty=column in empty.split())
        for column in columns.split()
    ]
    return sa.Table(name, METADATA, *made, *constraints, **options)


def _column(table: str, name: str, *, is_key: bool, may_be_empty: bool) -> sa.Column[Any]:
    if name == "id":
        # SQLite numbers rows by itself only in a column declared INTEGER.
        return sa.Column(
            name, sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True
        )
    other = "runs.id" if (table, name) == ("measurements", "run_id") else _OTHERS.get(name)
    return sa.Column(
        name,
        checked_type(table, name),
        *([sa.ForeignKey(other)] if other else ()),
        primary_key=is_key,
        autoincrement=False,
        nullable=may_be_empty,
    )


#: A machine: what its fingerprint was made of.
SYSTEMS = _table(
    "systems",
    "id fingerprint name description created",
    sa.UniqueConstraint("fingerprint"),
)

#: The software that moved the data: library text, version, loaded libraries.
STACKS = _table(
    "stacks",
    "id fingerprint text description created",
    sa.UniqueConstraint("fingerprint"),
)

#: One question to one machine: ``what`` must not change, ``settings`` may. ``site`` is empty
#: where it was measured here, else the name of the site that shared it.
CAMPAIGNS = _table(
    "campaigns",
    """id name content_key what settings space space_key seed system_id stack_id simulated folder
    created finished site""",
    sa.UniqueConstraint("name"),
    empty="finished",
)

#: Who works on a campaign now; no row where nobody does.
LOCKS = _table(
    "locks",
    "campaign_id host boot_id pid pid_start pid_namespace since heartbeat",
    key="campaign_id",
)

#: What a campaign decided to confirm, stored before it did; the newest row holds.
DECISIONS = _table(
    "decisions",
    "id campaign_id decision created",
    sa.Index("ix_decisions_campaign", "campaign_id", "id"),
)

#: What a campaign came to, as plain data; the newest row holds.
CONCLUSIONS = _table(
    "conclusions",
    "id campaign_id conclusion created",
    sa.Index("ix_conclusions_campaign", "campaign_id", "id"),
)

#: One assignment of environment variables; shared by campaigns.
CONFIGURATIONS = _table(
    "configurations",
    "id key environment",
    sa.UniqueConstraint("key"),
)

#: One configuration in one campaign; number 0 is the baseline.
TRIALS = _table(
    "trials",
    "id campaign_id number configuration_id origin label created",
    sa.UniqueConstraint("campaign_id", "number"),
)

#: Runs that were planned to be made close together; ``runs.block`` is its number.
#: ``configurations`` are environments in the order of the runs; the empty one is the default.
BLOCKS = _table(
    "blocks",
    "campaign_id number phase operation configurations created",
    key="campaign_id number",
)

#: What the library did under a configuration, from an untimed run; the latest one holds.
#: ``fingerprints`` is by size (bytes, as text), ``said`` a list of lines.
EXECUTIONS = _table(
    "executions",
    "campaign_id configuration_id operation followed fingerprints said why became created",
    key="campaign_id configuration_id operation",
    empty="became",
)

#: A job of a scheduler; ``stage`` goes prepared, submitted, over.
JOBS = _table(
    "jobs",
    """key campaign_id kind stage block number folder word reason nodes node_count prepared_at
    started_at ended_at node_hours detail""",
    # Node-hours are added up without reading a row.
    sa.Index("ix_jobs_campaign", "campaign_id", "node_hours"),
    key="key",
    empty="block started_at ended_at",
)
#: For jobs that are not over: few, however many there were. As text: with an ``Index``, whoever
#: uses SQLite would wait for PostgreSQL's dialect.
sa.event.listen(
    JOBS,
    "after_create",
    sa.DDL(  # type: ignore[no-untyped-call]  # SQLAlchemy has no types for it
        "CREATE INDEX ix_jobs_open ON jobs (campaign_id, prepared_at) WHERE stage <> 'over'"
    ),
)

#: One launch of the benchmark; ``state`` goes planned, running, stored. ``nodes`` is a list of
#: names with commas between; empty where no scheduler gave them.
RUNS = _table(
    "runs",
    """id run_id campaign_id trial_id configuration_id phase block position session operation
    workload timing state outcome started_at wall_s exit_code detail output_tail oversubscribed
    other_load header footer nodes distance end_s""",
    sa.UniqueConstraint("run_id"),
    sa.Index("ix_runs_campaign", "campaign_id", "id"),
    sa.Index("ix_runs_campaign_state", "campaign_id", "state", "outcome"),
    empty="outcome wall_s exit_code other_load header footer nodes distance end_s",
)

#: One size of one run. ``place`` is its rank in the order the benchmark finished them.
#: ``samples`` is zlib over little-endian 32-bit IEEE floats, ``n_samples`` of them, seconds, in
#: the order taken; empty where they were pruned. It is last: SQLite reads no further than it must.
MEASUREMENTS = _table(
    "measurements",
    """run_id place operation bytes median_s min_s mean_s p95_s max_s algbw busbw batch
    first_call_s canary_s canary_after_s wrong n_samples samples""",
    key="run_id place",
    empty="first_call_s canary_s canary_after_s",
)

#: What came out of a campaign for a range of sizes.
PROFILES = _table(
    "profiles",
    """id campaign_id name operation backend ranks nodes bytes_low bytes_high configuration_id
    verdict level minimum_gain note simulated created details conditions""",
    sa.UniqueConstraint("campaign_id", "name"),
    # The newest answers first, found and filtered by size without touching the table.
    sa.Index("ix_profiles_best", "operation", "created", "id", "bytes_low", "bytes_high"),
    # A number once printed never names another profile.
    sqlite_autoincrement=True,
)

#: Evidence of a profile at one size and machine state; guards are other operations.
PROFILE_POINTS = _table(
    "profile_points",
    """profile_id place is_guard operation bytes speed default_s tuned_s ratio low high pairs
    verdict share""",
    key="profile_id place",
)
