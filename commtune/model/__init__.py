"""The frozen data types that all layers share.

Nothing here does I/O. Times are seconds, sizes are bytes, bandwidths bytes per second, unless a
name says otherwise.
"""

# What is imported here is meant to be imported from here (pyproject.toml says so to the checkers).
from commtune.model.configuration import DEFAULT, PROTECTED_NAMES, Configuration, content_key
from commtune.model.evidence import (
    FEW_PAIRS,
    FEWEST_BLOCKS,
    FEWEST_PAIRS,
    LEVEL,
    SESSION_APART_S,
    SESSION_SPREAD,
    Estimand,
    Interval,
    PointEvidence,
    Tail,
    Verdict,
)
from commtune.model.jobs import JobKind, JobRecord, JobScheduler, JobStage
from commtune.model.operations import (
    PYTHON_BACKENDS,
    Backend,
    Direction,
    Flow,
    GpuKind,
    Matrix,
    MpiFlavour,
    MpiInstallation,
    Operation,
    PatternParameters,
)
from commtune.model.profile import (
    Conditions,
    Profile,
    Strength,
    VerificationRecord,
    VerificationVerdict,
)
from commtune.model.runs import (
    BlockPlan,
    Execution,
    Followed,
    Measurement,
    Origin,
    Outcome,
    Phase,
    Run,
    RunRequest,
    RunResult,
    SizeTime,
    SubMeasurement,
    Trial,
    is_searched,
)
from commtune.model.size_times import SizeTimes
from commtune.model.workload import (
    BATCHED,
    DEVICE,
    ELEMENT_BYTES,
    FEWEST_TAIL_SAMPLES,
    WALL,
    Aggressor,
    AggressorPattern,
    OwnBenchmark,
    Timing,
    Workload,
)
