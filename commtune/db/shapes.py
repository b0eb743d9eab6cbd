"""What rows and documents hold, column by column and key by key: what the readers check.

A typed dictionary with all keys: versions before stored less.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypedDict

from commtune.db.checked_values import Moment, Seconds, Time
from commtune.model import (
    Aggressor,
    Conditions,
    JobKind,
    JobStage,
    Operation,
    Outcome,
    Phase,
    Timing,
    Verdict,
    Workload,
)
from commtune.systems.nominal.fabric import Fabric


class RunState(StrEnum):
    """``runs.state``."""

    RUNNING = "running"
    STORED = "stored"


class _NamedSpace(TypedDict):
    name: str
    content: str


class What(TypedDict):
    """``campaigns.what``."""

    workload: Workload
    timing: Timing
    space: _NamedSpace
    machine: dict[str, Any]
    mpi: dict[str, Any]
    guards: dict[str, str | None]
    aggressor: Aggressor


class _Slurm(TypedDict):
    exclude: list[str] | str
    file: str


class Settings(TypedDict):
    """``campaigns.settings``."""

    budget: dict[str, float | None]
    level: float
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
    excluded_nodes: list[str] | str
    fabric: Fabric
    described: str
    replayed: str


class Space(TypedDict):
    """``campaigns.space``."""

    name: str
    library: str
    pinned: dict[str, str]
    variables: list[str] | dict[str, Any]
    parameters: dict[str, list[Any]]
    cut_to: dict[str, str]


class Concluded(TypedDict):
    """Of ``conclusions.conclusion`` what is read without all of it."""

    detectable: dict[str, float | None]


class Header(TypedDict):
    """``runs.header``, of which only this is read again."""

    init_s: float
    library: dict[str, Any] | str
    rank_info: list[dict[str, Any]]
    shape: dict[str, Any]
    beside: dict[str, Any]


class Footer(TypedDict):
    """``runs.footer``, of which only this is read again."""

    elapsed_s: float
    measure_s: float
    parts: list[dict[str, Any]]


class Details(TypedDict):
    """``profiles.details``: its parts are checked where they are made into objects."""

    contributions: list[dict[str, Any]]
    boundaries: list[dict[str, Any]]


class Profile(TypedDict):
    """A profile with where it comes from, as queries name these columns."""

    id: int
    name: str
    operation: Operation
    backend: str
    ranks: int
    nodes: int
    bytes_low: int
    bytes_high: int
    verdict: Verdict
    level: float
    minimum_gain: float
    note: str
    conditions: Conditions
    simulated: bool
    created: Moment
    environment: dict[str, str]
    campaign_id: int
    campaign: str
    site: str
    system: str
    system_fingerprint: str
    stack: str
    stack_fingerprint: str
    details: Details
    system_description: dict[str, Any]
    stack_description: dict[str, Any]
    space: Space
    settings: Settings


class Point(TypedDict):
    """A row of ``profile_points``."""

    profile_id: int
    place: int
    is_guard: bool
    operation: Operation
    bytes: int
    speed: str
    default_s: Time
    tuned_s: Time
    ratio: float
    low: float
    high: float
    pairs: int
    verdict: Verdict
    share: float


class Candidate(TypedDict):
    """A profile for a question, before it is read whole."""

    id: int
    created: Moment
    backend: str
    ranks: int
    nodes: int
    system_id: int
    stack_id: int


class Gap(TypedDict):
    """Ends of a campaign's ranges around a size, bytes."""

    campaign_id: int
    below: int
    above: int


class Campaign(TypedDict):
    """A campaign with its system and stack, as queries name these columns."""

    id: int
    name: str
    what: What
    settings: Settings
    space: Space
    seed: int
    simulated: bool
    folder: str
    site: str
    created: Moment
    finished: Moment | None
    system: str
    system_fingerprint: str
    system_description: dict[str, Any]
    stack: str
    stack_fingerprint: str
    stack_description: dict[str, Any]


class _WhatMeasured(TypedDict):
    workload: Workload
    timing: Timing


class _SpaceMeasured(TypedDict):
    name: str
    pinned: dict[str, str]


class Measured(TypedDict):
    """A campaign, for who needs no more of it than this: answers are full of them."""

    id: int
    what: _WhatMeasured
    space: _SpaceMeasured


class Conclusion(TypedDict):
    """A row of ``conclusions``, for who needs one key of it."""

    id: int
    conclusion: Concluded


class Begun(TypedDict):
    """A run as its benchmark began it."""

    id: int
    header: Header


class RunLine(TypedDict):
    """A run as lists of runs have it."""

    id: int
    run_id: str
    trial: int
    phase: Phase
    block: int
    position: int
    operation: Operation
    state: RunState
    outcome: Outcome | None
    started_at: Moment
    wall_s: Seconds | None
    exit_code: int | None
    detail: str
    nodes: str | None
    environment: dict[str, str]
    output_tail: str


class Canary(TypedDict):
    """A core-to-core round trip before a size of a run."""

    run_id: int
    canary_s: Seconds


class TrialLine(TypedDict):
    """A configuration as lists of trials have it."""

    number: int
    origin: str
    label: str
    created: Moment
    environment: dict[str, str]
    runs: int
    runs_ok: int


class Totals(TypedDict):
    """Runs added up, and the shortest ones, as queries name these columns."""

    campaign_id: int
    phase: Phase
    outcome: Outcome
    runs: int
    wall_s: Seconds | None
    bytes: int
    default_s: Time | None
    shortest_s: Time | None


class RunTotals(TypedDict):
    """Runs of a campaign, state and outcome, counted."""

    campaign_id: int
    state: RunState
    outcome: Outcome | None
    id: int
    runs: int
    wall_s: Seconds | None
    last_run: Moment
    is_timed: bool
    has_started: bool


class Lock(TypedDict):
    """A row of ``locks``."""

    campaign_id: int
    host: str
    boot_id: str
    pid: int
    pid_start: int
    pid_namespace: int
    since: Moment
    heartbeat: Moment


class Job(TypedDict):
    """A row of ``jobs``."""

    key: str
    campaign_id: int
    kind: JobKind
    stage: JobStage
    block: int | None
    number: str
    folder: str
    word: str
    reason: str
    nodes: str
    node_count: int
    prepared_at: Moment
    started_at: Moment | None
    ended_at: Moment | None
    node_hours: float
    detail: str


class Gain(Point):
    """A point of a profile, with where it was measured."""

    campaign_id: int
    profile: str
    backend: str
    ranks: int
    nodes: int


class Described(TypedDict):
    """A system or a stack with its number of campaigns."""

    id: int
    fingerprint: str
    words: str
    description: dict[str, Any]
    campaigns: int


class Result(TypedDict):
    """A row of the view ``results``; what was not measured is empty."""

    campaign: str
    simulated: bool
    site: str
    system: str
    stack: str
    run: str
    started: str | None
    phase: Phase
    block: int
    position: int
    trial: int
    origin: str
    outcome: Outcome
    detail: str
    exit_code: int | None
    wall_s: Seconds | None
    oversubscribed: bool
    other_load: float | None
    node_names: str | None
    distance: str | None
    backend: str | None
    ranks: int | None
    nodes: int | None
    dtype: str | None
    operation: Operation
    bytes: int | None
    median_s: Time | None
    min_s: Time | None
    mean_s: Time | None
    p95_s: Time | None
    max_s: Time | None
    first_call_s: Seconds | None
    algbw_bytes_per_s: float | None
    busbw_bytes_per_s: float | None
    samples: int | None
    batch: int | None
    wrong_elements: int | None
    canary_s: Seconds | None
    canary_after_s: Seconds | None
    #: Many rows have the same one, which is checked once.
    configuration: Any
