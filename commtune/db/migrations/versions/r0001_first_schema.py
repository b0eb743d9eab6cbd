"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0001"
down_revision = None
branch_labels = None
depends_on = None

#: SQLite numbers rows by itself only in a column declared INTEGER.
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Goes to this schema."""
    _systems()
    _stacks()
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


def _systems() -> None:
    op.create_table(
        "systems",
        sa.Column("id", _ID, nullable=False),
        sa.Column("fingerprint", sa.String(length=128), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.JSON(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_systems")),
        sa.UniqueConstraint("fingerprint", name=op.f("uq_systems_fingerprint")),
    )


def _stacks() -> None:
    op.create_table(
        "stacks",
        sa.Column("id", _ID, nullable=False),
        sa.Column("fingerprint", sa.String(length=128), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("description", sa.JSON(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_stacks")),
        sa.UniqueConstraint("fingerprint", name=op.f("uq_stacks_fingerprint")),
    )


def _campaigns() -> None:
    op.create_table(
        "campaigns",
        sa.Column("id", _ID, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("content_key", sa.String(length=64), nullable=False),
        sa.Column("what", sa.JSON(), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("space", sa.JSON(), nullable=False),
        sa.Column("space_key", sa.String(length=64), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("system_id", _ID, nullable=False),
        sa.Column("stack_id", _ID, nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("finished", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(
            ["stack_id"], ["stacks.id"], name=op.f("fk_campaigns_stack_id_stacks")
        ),
        sa.ForeignKeyConstraint(
            ["system_id"], ["systems.id"], name=op.f("fk_campaigns_system_id_systems")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_campaigns")),
        sa.UniqueConstraint("name", name=op.f("uq_campaigns_name")),
    )


def _locks() -> None:
    op.create_table(
        "locks",
        sa.Column("campaign_id", _ID, autoincrement=False, nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=False),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("pid_start", sa.BigInteger(), nullable=False),
        sa.Column("pid_namespace", sa.BigInteger(), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("heartbeat", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("fk_locks_campaign_id_campaigns")
        ),
        sa.PrimaryKeyConstraint("campaign_id", name=op.f("pk_locks")),
    )


def _decisions() -> None:
    op.create_table(
        "decisions",
        sa.Column("id", _ID, nullable=False),
        sa.Column("campaign_id", _ID, nullable=False),
        sa.Column("decision", sa.JSON(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("fk_decisions_campaign_id_campaigns")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_decisions")),
    )
    op.create_index("ix_decisions_campaign", "decisions", ["campaign_id", "id"])


def _configurations() -> None:
    op.create_table(
        "configurations",
        sa.Column("id", _ID, nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("environment", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_configurations")),
        sa.UniqueConstraint("key", name=op.f("uq_configurations_key")),
    )


def _trials() -> None:
    op.create_table(
        "trials",
        sa.Column("id", _ID, nullable=False),
        sa.Column("campaign_id", _ID, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("configuration_id", _ID, nullable=False),
        sa.Column("origin", sa.String(length=32), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("fk_trials_campaign_id_campaigns")
        ),
        sa.ForeignKeyConstraint(
            ["configuration_id"],
            ["configurations.id"],
            name=op.f("fk_trials_configuration_id_configurations"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_trials")),
        sa.UniqueConstraint("campaign_id", "number", name=op.f("uq_trials_campaign_id_number")),
    )


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", _ID, nullable=False),
        sa.Column("run_id", sa.String(length=255), nullable=False),
        sa.Column("campaign_id", _ID, nullable=False),
        sa.Column("trial_id", _ID, nullable=False),
        sa.Column("configuration_id", _ID, nullable=False),
        sa.Column("phase", sa.String(length=32), nullable=False),
        sa.Column("block", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("operation", sa.String(length=64), nullable=False),
        sa.Column("workload", sa.JSON(), nullable=False),
        sa.Column("timing", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=True),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("wall_s", sa.Double(), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("output_tail", sa.Text(), nullable=False),
        sa.Column("oversubscribed", sa.Boolean(), nullable=False),
        sa.Column("header", sa.JSON(), nullable=True),
        sa.Column("footer", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("fk_runs_campaign_id_campaigns")
        ),
        sa.ForeignKeyConstraint(
            ["configuration_id"],
            ["configurations.id"],
            name=op.f("fk_runs_configuration_id_configurations"),
        ),
        sa.ForeignKeyConstraint(["trial_id"], ["trials.id"], name=op.f("fk_runs_trial_id_trials")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sa.UniqueConstraint("run_id", name=op.f("uq_runs_run_id")),
    )
    op.create_index("ix_runs_campaign", "runs", ["campaign_id", "id"])
    op.create_index("ix_runs_campaign_state", "runs", ["campaign_id", "state", "outcome"])


def _measurements() -> None:
    op.create_table(
        "measurements",
        sa.Column("run_id", _ID, autoincrement=False, nullable=False),
        sa.Column("place", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("operation", sa.String(length=64), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("median_s", sa.Double(), nullable=False),
        sa.Column("min_s", sa.Double(), nullable=False),
        sa.Column("mean_s", sa.Double(), nullable=False),
        sa.Column("p95_s", sa.Double(), nullable=False),
        sa.Column("max_s", sa.Double(), nullable=False),
        sa.Column("algbw", sa.Double(), nullable=False),
        sa.Column("busbw", sa.Double(), nullable=False),
        sa.Column("batch", sa.Integer(), nullable=False),
        sa.Column("canary_s", sa.Double(), nullable=True),
        sa.Column("canary_after_s", sa.Double(), nullable=True),
        sa.Column("wrong", sa.BigInteger(), nullable=False),
        sa.Column("n_samples", sa.Integer(), nullable=False),
        sa.Column("samples", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_measurements_run_id_runs")),
        sa.PrimaryKeyConstraint("run_id", "place", name=op.f("pk_measurements")),
    )


def _profiles() -> None:
    op.create_table(
        "profiles",
        sa.Column("id", _ID, nullable=False),
        sa.Column("campaign_id", _ID, nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("operation", sa.String(length=64), nullable=False),
        sa.Column("backend", sa.String(length=64), nullable=False),
        sa.Column("ranks", sa.Integer(), nullable=False),
        sa.Column("nodes", sa.Integer(), nullable=False),
        sa.Column("bytes_low", sa.BigInteger(), nullable=False),
        sa.Column("bytes_high", sa.BigInteger(), nullable=False),
        sa.Column("configuration_id", _ID, nullable=False),
        sa.Column("verdict", sa.String(length=32), nullable=False),
        sa.Column("level", sa.Double(), nullable=False),
        sa.Column("minimum_gain", sa.Double(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["campaign_id"], ["campaigns.id"], name=op.f("fk_profiles_campaign_id_campaigns")
        ),
        sa.ForeignKeyConstraint(
            ["configuration_id"],
            ["configurations.id"],
            name=op.f("fk_profiles_configuration_id_configurations"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_profiles")),
        sa.UniqueConstraint("campaign_id", "name", name=op.f("uq_profiles_campaign_id_name")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_profiles_best", "profiles", ["operation", "created", "id", "bytes_low", "bytes_high"]
    )


def _profile_points() -> None:
    op.create_table(
        "profile_points",
        sa.Column("profile_id", _ID, autoincrement=False, nullable=False),
        sa.Column("place", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("is_guard", sa.Boolean(), nullable=False),
        sa.Column("operation", sa.String(length=64), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("speed", sa.String(length=32), nullable=False),
        sa.Column("default_s", sa.Double(), nullable=False),
        sa.Column("tuned_s", sa.Double(), nullable=False),
        sa.Column("ratio", sa.Double(), nullable=False),
        sa.Column("low", sa.Double(), nullable=False),
        sa.Column("high", sa.Double(), nullable=False),
        sa.Column("pairs", sa.Integer(), nullable=False),
        sa.Column("verdict", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["profile_id"], ["profiles.id"], name=op.f("fk_profile_points_profile_id_profiles")
        ),
        sa.PrimaryKeyConstraint("profile_id", "place", name=op.f("pk_profile_points")),
    )
