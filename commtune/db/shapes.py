"""The types of all columns and JSON documents, against which readers check values.

Any key of a document's typed dictionary may be missing: a campaign stores what it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypedDict

from commtune.db.checked_values import Level, Moment, Seconds, Time
from commtune.model import (
    Aggressor,
    Conditions,
    Followed,
    JobKind,
    JobStage,
    Operation,
    Outcome,
    Phase,
    Tail,
    Timing,
    Verdict,
    VerificationVerdict,
    Workload,
)
from commtune.systems.nominal.fabric import Fabric


class RunState(StrEnum):
    """Values of ``runs.state``."""

    RUNNING = "running"
    STORED = "stored"


class _NamedSpace(TypedDict):
    name: str
    content: str


class _What(TypedDict):
    """Documents in ``campaigns.what``."""

    workload: Workload
    timing: Timing
    space: _NamedSpace
    machine: dict[str, Any]
    mpi: dict[str, Any]
    guards: dict[str, str | None]
    aggressor: Aggressor


class _Slurm(TypedDict):
    exclude: list[str]
    file: str


class _Learned(TypedDict):
    campaign: str
    tried: dict[str, str]


class _TimingChoice(TypedDict):
    said: str
    spent_s: float


class _Settings(TypedDict):
    """Documents in ``campaigns.settings``."""

    budget: dict[str, float | None]
    level: Level
    minimum_gain: float
    tolerance: float
    mpi: str
    time_limit_s: float
    node_hours: float
    messages: dict[str, float]
    emulated_nodes: int
    shape: dict[str, Any]
    window: int
    flows: list[list[float]]
    slurm: _Slurm
    fabric: Fabric
    described: str
    learned: list[_Learned]
    timing_choice: _TimingChoice
    replayed: str
    verifies: str


class _Space(TypedDict):
    """Documents in ``campaigns.space``."""

    name: str
    library: str
    pinned: dict[str, str]
    variables: list[str] | dict[str, Any]
    parameters: dict[str, list[Any]]
    cut_to: dict[str, str]


class _Concluded(TypedDict):
    """The part of ``conclusions.conclusion`` that is read without the rest."""

    detectable: dict[str, float | None]


class _Header(TypedDict):
    """The part of ``runs.header`` that is read again."""

    init_s: float
    library: dict[str, Any] | str
    rank_info: list[dict[str, Any]]
    shape: dict[str, Any]
    beside: dict[str, Any]


class _Footer(TypedDict):
    """The part of ``runs.footer`` that is read again."""

    elapsed_s: float
    measure_s: float
    parts: list[dict[str, Any]]


class _Details(TypedDict):
    """Documents in ``profiles.details``.

    Items of the first two are checked when they become objects.
    """

    contributions: list[dict[str, Any]]
    boundaries: list[dict[str, Any]]
    tails: list[Tail]


#: Names of columns in tables, views and queries, by the type of their values.
_NAMES: Mapping[Any, str] = {
    int: """
        above below bytes_high bytes_low campaign_id campaigns configuration_id days first_block id
        last_block n_samples node_count number pairs pid pid_namespace pid_start place position
        profile_id runs runs_ok seed sessions stack_id system_id trial trial_id verifications""",
    int | None: "batch block bytes exit_code nodes ranks samples wrong wrong_elements",
    bool: "is_damaged is_guard oversubscribed simulated",
    float: "algbw busbw high low minimum_gain node_hours ratio session_spread share",
    float | None: "algbw_bytes_per_s busbw_bytes_per_s other_load",
    Level: "level",
    Moment: "created heartbeat last_run prepared_at since",
    Moment | None: "ended_at finished last_verified started_at",
    Seconds | None: "canary_after_s canary_s end_s first_call_s wall_s",
    Time | None: "default_s max_s mean_s median_s min_s p95_s shortest_s tuned_s",
    str: """
        boot_id campaign content_key detail fingerprint folder host key name note origin
        output_tail profile reason run run_id session site space_key speed stack stack_fingerprint
        system system_fingerprint text why word words""",
    str | None: "backend became distance dtype node_names started",
    Conditions: "conditions",
    Followed: "followed",
    JobKind: "kind",
    JobStage: "stage",
    Operation: "operation",
    Outcome | None: "outcome",
    Phase: "phase",
    RunState: "state",
    Timing: "timing",
    Verdict: "verdict",
    VerificationVerdict: "finding",
    VerificationVerdict | None: "last_finding",
    Workload: "workload",
    _Concluded: "conclusion",
    _Details: "details",
    _Footer | None: "footer",
    _Header | None: "header",
    _Settings: "settings",
    _Space: "space",
    _What: "what",
    dict[str, Any]: "decision description stack_description system_description",
    dict[str, str]: "environment fingerprints",
    list[str]: "said",
    list[dict[str, str]]: "configurations",
    # Many rows of results have the same one, so ``Results`` checks each only once.
    Any: "configuration",
}
_KINDS = {name: kind for kind, names in _NAMES.items() for name in names.split()} | {
    "jobs.nodes": str,
    "jobs.number": str,
    "measurements.run_id": int,
    "measurements.samples": bytes,
    "runs.nodes": str | None,
}


def kind_of(table: str, column: str) -> Any:
    """Returns the type of a column's values, as for ``check_of``."""
    return _KINDS.get(f"{table}.{column}") or _KINDS[column]
