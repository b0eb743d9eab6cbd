"""The tables of the database.

Points in time are seconds since 1970 (UTC), durations are in seconds, sizes in bytes. A new
database is created from this module and ``views``; migrations change older ones.
"""

from __future__ import annotations

from functools import partial

import sqlalchemy as sa

from commtune.db.checked_columns import check_columns

#: Constraints have names, so that migrations can refer to them.
METADATA = sa.MetaData(
    naming_convention={
        "ix": "ix_%(column_0_N_label)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

#: SQLite assigns row numbers only in a column declared INTEGER.
_Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_JSON = sa.JSON(none_as_null=True)
#: A column that is not nullable.
_column = partial(sa.Column, nullable=False)
#: A part of a primary key that the database doesn't assign.
_key = partial(_column, primary_key=True, autoincrement=False)


def _described_table(name: str, words: str) -> sa.Table:
    """Returns a table of what campaigns share; ``words`` names it for people."""
    return sa.Table(
        name,
        METADATA,
        _column("id", _Id, primary_key=True),
        _column("fingerprint", sa.String(128), unique=True),
        _column(words, sa.Text),
        _column("description", _JSON),
        _column("created", sa.Double()),
    )


#: A machine, with the data of its fingerprint.
SYSTEMS = _described_table("systems", "name")
#: The software that moved the data: library text, version, loaded libraries.
STACKS = _described_table("stacks", "text")

#: A tuning campaign on one machine: ``what`` never changes, ``settings`` may. ``site`` is empty
#: for campaigns of this site, else the name of the site that shared it.
CAMPAIGNS = sa.Table(
    "campaigns",
    METADATA,
    _column("id", _Id, primary_key=True),
    _column("name", sa.String(255), unique=True),
    _column("content_key", sa.String(64)),
    _column("what", _JSON),
    _column("settings", _JSON),
    _column("space", _JSON),
    _column("space_key", sa.String(64)),
    _column("seed", sa.BigInteger),
    _column("system_id", sa.ForeignKey("systems.id")),
    _column("stack_id", sa.ForeignKey("stacks.id")),
    _column("simulated", sa.Boolean()),
    _column("folder", sa.Text),
    _column("created", sa.Double()),
    sa.Column("finished", sa.Double()),
    _column("site", sa.Text),
)

#: The process that works on a campaign now; no row if there is none.
LOCKS = sa.Table(
    "locks",
    METADATA,
    _key("campaign_id", _Id, sa.ForeignKey("campaigns.id")),
    _column("host", sa.Text),
    _column("boot_id", sa.Text),
    _column("pid", sa.BigInteger),
    _column("pid_start", sa.BigInteger),
    _column("pid_namespace", sa.BigInteger),
    _column("since", sa.Double()),
    _column("heartbeat", sa.Double()),
)


def _course_table(name: str, document: str) -> sa.Table:
    """Returns a table of JSON documents, of which a campaign's newest row is valid."""
    return sa.Table(
        name,
        METADATA,
        _column("id", _Id, primary_key=True),
        _column("campaign_id", sa.ForeignKey("campaigns.id")),
        _column(document, _JSON),
        _column("created", sa.Double()),
        sa.Index(f"ix_{name}_campaign", "campaign_id", "id"),
    )


#: The configurations that a campaign decided to confirm, stored before their confirmation.
DECISIONS = _course_table("decisions", "decision")
#: The conclusions of a campaign.
CONCLUSIONS = _course_table("conclusions", "conclusion")

#: An assignment of environment variables, shared by campaigns.
CONFIGURATIONS = sa.Table(
    "configurations",
    METADATA,
    _column("id", _Id, primary_key=True),
    _column("key", sa.String(64), unique=True),
    _column("environment", _JSON),
)

#: A configuration in a campaign; number 0 is the baseline.
TRIALS = sa.Table(
    "trials",
    METADATA,
    _column("id", _Id, primary_key=True),
    _column("campaign_id", sa.ForeignKey("campaigns.id")),
    _column("number", sa.Integer()),
    _column("configuration_id", sa.ForeignKey("configurations.id")),
    _column("origin", sa.String(32)),
    _column("created", sa.Double()),
    sa.UniqueConstraint("campaign_id", "number"),
)

#: A group of runs planned to be close in time; ``runs.block`` is its number.
#: ``configurations`` are environments in the order of the runs; the empty one is the default.
BLOCKS = sa.Table(
    "blocks",
    METADATA,
    _key("campaign_id", _Id, sa.ForeignKey("campaigns.id")),
    _key("number", sa.Integer()),
    _column("phase", sa.String(32)),
    _column("operation", sa.String(64)),
    _column("configurations", _JSON),
    _column("created", sa.Double()),
)

#: The library's behaviour under a configuration, from the latest untimed run.
#: ``fingerprints`` is by size (bytes, as text), ``said`` a list of output lines.
EXECUTIONS = sa.Table(
    "executions",
    METADATA,
    _key("campaign_id", _Id, sa.ForeignKey("campaigns.id")),
    _key("configuration_id", _Id, sa.ForeignKey("configurations.id")),
    _column("operation", sa.String(64), primary_key=True),
    _column("followed", sa.String(32)),
    _column("fingerprints", _JSON),
    _column("said", _JSON),
    _column("why", sa.Text),
    sa.Column("became", sa.String(64)),
    _column("created", sa.Double()),
)

#: A job of a scheduler; the order of ``stage`` is prepared, submitted, over.
JOBS = sa.Table(
    "jobs",
    METADATA,
    _column("key", sa.String(255), primary_key=True),
    _column("campaign_id", sa.ForeignKey("campaigns.id")),
    _column("kind", sa.String(32)),
    _column("stage", sa.String(16)),
    sa.Column("block", sa.Integer()),
    _column("number", sa.String(64)),
    _column("folder", sa.Text),
    _column("word", sa.Text),
    _column("reason", sa.Text),
    _column("nodes", sa.Text),
    _column("node_count", sa.Integer()),
    _column("prepared_at", sa.Double()),
    sa.Column("started_at", sa.Double()),
    sa.Column("ended_at", sa.Double()),
    _column("node_hours", sa.Double()),
    _column("detail", sa.Text),
    # A covering index for the sum of node-hours.
    sa.Index("ix_jobs_campaign", "campaign_id", "node_hours"),
)
#: A partial index of the jobs that are not over, which are few. It is text, because an ``Index``
#: with conditions would import PostgreSQL's dialect also for users of SQLite.
sa.event.listen(
    JOBS,
    "after_create",
    sa.DDL(  # type: ignore[no-untyped-call]  # SQLAlchemy has no types for it
        "CREATE INDEX ix_jobs_open ON jobs (campaign_id, prepared_at) WHERE stage <> 'over'"
    ),
)

#: A launch of the benchmark; ``state`` is first running, then stored. ``nodes`` is a
#: comma-separated list of names; null without a scheduler.
RUNS = sa.Table(
    "runs",
    METADATA,
    _column("id", _Id, primary_key=True),
    _column("run_id", sa.String(255), unique=True),
    _column("campaign_id", sa.ForeignKey("campaigns.id")),
    _column("trial_id", sa.ForeignKey("trials.id")),
    _column("configuration_id", sa.ForeignKey("configurations.id")),
    _column("phase", sa.String(32)),
    _column("block", sa.Integer()),
    _column("position", sa.Integer()),
    _column("session", sa.Text),
    _column("operation", sa.String(64)),
    _column("workload", _JSON),
    _column("timing", _JSON),
    _column("state", sa.String(16)),
    sa.Column("outcome", sa.String(32)),
    _column("started_at", sa.Double()),
    sa.Column("wall_s", sa.Double()),
    sa.Column("exit_code", sa.Integer()),
    _column("detail", sa.Text),
    _column("output_tail", sa.Text),
    _column("oversubscribed", sa.Boolean()),
    sa.Column("other_load", sa.Double()),
    sa.Column("header", _JSON),
    sa.Column("footer", _JSON),
    sa.Column("nodes", sa.Text),
    sa.Column("distance", sa.Text),
    sa.Column("end_s", sa.Double()),
    sa.Index("ix_runs_campaign", "campaign_id", "id"),
    # For the runs behind a profile, and those of each of its verifications.
    sa.Index("ix_runs_configuration", "campaign_id", "configuration_id", "phase", "block"),
    # A covering index for the counts of runs and sums of their times.
    sa.Index(
        "ix_runs_campaign_state", "campaign_id", "state", "outcome", "wall_s", "started_at", "id"
    ),
)

#: A size of a run. ``place`` is its rank in the order in which the benchmark finished sizes.
#: ``samples`` is zlib over ``n_samples`` little-endian 32-bit IEEE floats, seconds, in the order
#: of measurement; empty if pruned. It is last, because SQLite reads a row only as far as needed.
MEASUREMENTS = sa.Table(
    "measurements",
    METADATA,
    _key("run_id", _Id, sa.ForeignKey("runs.id")),
    _key("place", sa.Integer()),
    _column("operation", sa.String(64)),
    _column("bytes", sa.BigInteger),
    _column("median_s", sa.Double()),
    _column("min_s", sa.Double()),
    _column("mean_s", sa.Double()),
    _column("p95_s", sa.Double()),
    _column("max_s", sa.Double()),
    _column("algbw", sa.Double()),
    _column("busbw", sa.Double()),
    _column("batch", sa.Integer()),
    sa.Column("first_call_s", sa.Double()),
    sa.Column("canary_s", sa.Double()),
    sa.Column("canary_after_s", sa.Double()),
    _column("wrong", sa.BigInteger),
    _column("n_samples", sa.Integer()),
    _column("samples", sa.LargeBinary()),
)

#: The result of a campaign for a range of sizes.
PROFILES = sa.Table(
    "profiles",
    METADATA,
    _column("id", _Id, primary_key=True),
    _column("campaign_id", sa.ForeignKey("campaigns.id")),
    _column("name", sa.String(255)),
    _column("operation", sa.String(64)),
    _column("backend", sa.String(64)),
    _column("ranks", sa.Integer()),
    _column("nodes", sa.Integer()),
    _column("bytes_low", sa.BigInteger),
    _column("bytes_high", sa.BigInteger),
    _column("configuration_id", sa.ForeignKey("configurations.id")),
    _column("verdict", sa.String(32)),
    _column("level", sa.Double()),
    _column("minimum_gain", sa.Double()),
    _column("note", sa.Text),
    _column("simulated", sa.Boolean()),
    _column("created", sa.Double()),
    _column("details", _JSON),
    _column("conditions", _JSON),
    sa.UniqueConstraint("campaign_id", "name"),
    # A covering index for a search by size, newest profiles first.
    sa.Index("ix_profiles_best", "operation", "created", "id", "bytes_low", "bytes_high"),
    # A covering index for the search for gaps between the ranges of a campaign.
    sa.Index(
        "ix_profiles_ranges", "operation", "campaign_id", "bytes_low", "bytes_high", "verdict"
    ),
    # Row numbers are not reused, so that a printed number never names another profile.
    sqlite_autoincrement=True,
)

#: Evidence of a profile at one size and machine state; guards are other operations.
PROFILE_POINTS = sa.Table(
    "profile_points",
    METADATA,
    _key("profile_id", _Id, sa.ForeignKey("profiles.id")),
    _key("place", sa.Integer()),
    _column("is_guard", sa.Boolean()),
    _column("operation", sa.String(64)),
    _column("bytes", sa.BigInteger),
    _column("speed", sa.String(32)),
    _column("default_s", sa.Double()),
    _column("tuned_s", sa.Double()),
    _column("ratio", sa.Double()),
    _column("low", sa.Double()),
    _column("high", sa.Double()),
    _column("pairs", sa.Integer()),
    _column("verdict", sa.String(32)),
    _column("share", sa.Double()),
)

#: A verification of the profile with this name and configuration: of the same campaign, or of the
#: one that the campaign's settings name. The blocks are its runs, of which it had the finding.
VERIFICATIONS = sa.Table(
    "verifications",
    METADATA,
    _column("id", _Id, primary_key=True),
    _column("campaign_id", sa.ForeignKey("campaigns.id")),
    _column("configuration_id", sa.ForeignKey("configurations.id")),
    _column("profile", sa.String(255)),
    _column("finding", sa.String(32)),
    _column("first_block", sa.Integer()),
    _column("last_block", sa.Integer()),
    _column("share", sa.Double()),
    _column("session_spread", sa.Double()),
    _column("ended_at", sa.Double()),
    # A covering index for the last finding of each profile.
    sa.Index(
        "ix_verifications_profile", "campaign_id", "configuration_id", "profile", "id", "finding"
    ),
)

#: Names of the tables whose rows belong to a campaign and have a configuration.
CONFIGURED = tuple(t.name for t in METADATA.sorted_tables if "configuration_id" in t.c)
#: Names of the tables whose rows campaigns share.
SHARED = ("systems", "stacks", "configurations")


def rows_of_campaign(table: str, campaign: str = ":campaign") -> str:
    """Returns the SQL condition for the rows of a table that are a campaign's, or that it uses.

    Args:
        campaign: SQL for its number.
    """
    mine = f"campaign_id = {campaign}"
    used = (f"SELECT configuration_id FROM {name} WHERE {mine}" for name in CONFIGURED)
    return {
        "systems": f"id IN (SELECT system_id FROM campaigns WHERE id = {campaign})",
        "stacks": f"id IN (SELECT stack_id FROM campaigns WHERE id = {campaign})",
        "configurations": f"id IN ({' UNION '.join(used)})",
        "campaigns": f"id = {campaign}",
        "measurements": f"run_id IN (SELECT id FROM runs WHERE {mine})",
        "profile_points": f"profile_id IN (SELECT id FROM profiles WHERE {mine})",
    }.get(table, mine)


check_columns(METADATA)
