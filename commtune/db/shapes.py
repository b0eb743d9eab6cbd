"""What rows and documents hold, column by column and key by key: what the readers check.

A typed dictionary with all keys: versions before stored less.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypedDict

from commtune.db.checked_values import Moment, Time
from commtune.model import Aggressor, Conditions, Operation, Timing, Verdict, Workload
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


class Campaign(TypedDict):
    """A campaign with its system and stack, as queries name these columns."""

    id: int
    name: str
    what: What
    settings: Settings
    space: Space
    seed: int
    simulated: bool
    created: Moment
    finished: Moment | None
    system: str
    system_fingerprint: str
    system_description: dict[str, Any]
    stack: str
    stack_fingerprint: str
    stack_description: dict[str, Any]


class Conclusion(TypedDict):
    """A row of ``conclusions``, for who needs one key of it."""

    id: int
    conclusion: Concluded


class Begun(TypedDict):
    """A run as its benchmark began it."""

    id: int
    header: Header
