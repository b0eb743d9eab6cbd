"""The first schema."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "r0001"
down_revision = None

# Constraints get their names from the convention of ``Base.metadata`` (``env.py`` hands it over).
#: SQLite numbers rows by itself only in a column declared INTEGER.
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _required(kind: type[sa.types.TypeEngine[Any]], *names: str) -> list[sa.Column[Any]]:
    """Columns of one type that are never empty."""
    return [sa.Column(name, kind(), nullable=False) for name in names]


def upgrade() -> None:
    """Goes to this schema."""
    _described("systems", "name")
    _described("stacks", "text")
    _campaigns()
    _locks()
    _decisions()
    _configurations()
    _trials()
    _runs()
    _measurements()
    _profiles()
    _profile_points()


def downgrade() -> None:
    """Goes back to an empty database."""
    for table in (
        "profile_points",
        "profiles",
        "measurements",
        "runs",
        "trials",
        "configurations",
        "decisions",
        "locks",
        "campaigns",
        "stacks",
        "systems",
    ):
        op.drop_table(table)


def _described(table: str, words: str) -> None:
    """Systems, or software stacks: a fingerprint, and ``words`` for people."""
    op.create_table(
        table,
        sa.Column("id", _ID, primary_key=True),
        sa.Column("fingerprint", sa.String(length=128), unique=True, nullable=False),
        sa.Column(words, sa.Text(), nullable=False),
        sa.Column("description", sa.JSON(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
    )


def _campaigns() -> None:
    op.create_table(
        "campaigns",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("content_key", sa.String(length=64), nullable=False),
        *_required(sa.JSON, "what", "settings", "space"),
        sa.Column("space_key", sa.String(length=64), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("system_id", _ID, nullable=False),
        sa.Column("stack_id", _ID, nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("finished", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["stack_id"], ["stacks.id"]),
        sa.ForeignKeyConstraint(["system_id"], ["systems.id"]),
        sa.UniqueConstraint("name"),
    )


def _locks() -> None:
    op.create_table(
        "locks",
        sa.Column("campaign_id", _ID, primary_key=True, autoincrement=False),
        *_required(sa.Text, "host", "boot_id"),
        *_required(sa.BigInteger, "pid", "pid_start", "pid_namespace"),
        *_required(sa.Double, "since", "heartbeat"),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaigns.id"]),
    )


def _decisions() -> None:
    op.create_table(
        "decisions",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("campaign_id", _ID, sa.ForeignKey("campaigns.id"), nullable=False),
        sa.Column("decision", sa.JSON(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
    )
    op.create_index("ix_decisions_campaign", "decisions", ["campaign_id", "id"])


def _configurations() -> None:
    op.create_table(
        "configurations",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("key", sa.String(length=64), unique=True, nullable=False),
        sa.Column("environment", sa.JSON(), nullable=False),
    )


def _trials() -> None:
    op.create_table(
        "trials",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("campaign_id", _ID, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("configuration_id", _ID, nullable=False),
        sa.Column("origin", sa.String(length=32), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaigns.id"]),
        sa.ForeignKeyConstraint(["configuration_id"], ["configurations.id"]),
        sa.UniqueConstraint("campaign_id", "number"),
    )


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("run_id", sa.String(length=255), nullable=False),
        sa.Column("campaign_id", _ID, nullable=False),
        sa.Column("trial_id", _ID, nullable=False),
        sa.Column("configuration_id", _ID, nullable=False),
        sa.Column("phase", sa.String(length=32), nullable=False),
        *_required(sa.Integer, "block", "position"),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("operation", sa.String(length=64), nullable=False),
        *_required(sa.JSON, "workload", "timing"),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=True),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("wall_s", sa.Double(), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        *_required(sa.Text, "detail", "output_tail"),
        sa.Column("oversubscribed", sa.Boolean(), nullable=False),
        sa.Column("header", sa.JSON(), nullable=True),
        sa.Column("footer", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaigns.id"]),
        sa.ForeignKeyConstraint(["configuration_id"], ["configurations.id"]),
        sa.ForeignKeyConstraint(["trial_id"], ["trials.id"]),
        sa.UniqueConstraint("run_id"),
    )
    op.create_index("ix_runs_campaign", "runs", ["campaign_id", "id"])
    op.create_index("ix_runs_campaign_state", "runs", ["campaign_id", "state", "outcome"])


def _measurements() -> None:
    op.create_table(
        "measurements",
        sa.Column("run_id", _ID, primary_key=True, autoincrement=False),
        sa.Column("place", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("operation", sa.String(length=64), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        *_required(sa.Double, "median_s", "min_s", "mean_s", "p95_s", "max_s", "algbw", "busbw"),
        sa.Column("batch", sa.Integer(), nullable=False),
        sa.Column("canary_s", sa.Double(), nullable=True),
        sa.Column("canary_after_s", sa.Double(), nullable=True),
        sa.Column("wrong", sa.BigInteger(), nullable=False),
        sa.Column("n_samples", sa.Integer(), nullable=False),
        sa.Column("samples", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"]),
    )


def _profiles() -> None:
    op.create_table(
        "profiles",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("campaign_id", _ID, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("operation", sa.String(length=64), nullable=False),
        sa.Column("backend", sa.String(length=64), nullable=False),
        *_required(sa.Integer, "ranks", "nodes"),
        *_required(sa.BigInteger, "bytes_low", "bytes_high"),
        sa.Column("configuration_id", _ID, nullable=False),
        sa.Column("verdict", sa.String(length=32), nullable=False),
        *_required(sa.Double, "level", "minimum_gain"),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["campaign_id"], ["campaigns.id"]),
        sa.ForeignKeyConstraint(["configuration_id"], ["configurations.id"]),
        sa.UniqueConstraint("campaign_id", "name"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_profiles_best", "profiles", ["operation", "created", "id", "bytes_low", "bytes_high"]
    )


def _profile_points() -> None:
    op.create_table(
        "profile_points",
        sa.Column("profile_id", _ID, primary_key=True, autoincrement=False),
        sa.Column("place", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("is_guard", sa.Boolean(), nullable=False),
        sa.Column("operation", sa.String(length=64), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("speed", sa.String(length=32), nullable=False),
        *_required(sa.Double, "default_s", "tuned_s", "ratio", "low", "high"),
        sa.Column("pairs", sa.Integer(), nullable=False),
        sa.Column("verdict", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["profile_id"], ["profiles.id"]),
    )
