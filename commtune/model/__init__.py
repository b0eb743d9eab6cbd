"""The frozen vocabulary: what every layer speaks.

Nothing here does I/O. Times are seconds, sizes are bytes, bandwidths bytes per second, unless a
name says otherwise.
"""

from commtune.model.aggressors import Aggressor, AggressorPattern
from commtune.model.configuration import DEFAULT, Configuration, content_key
from commtune.model.evidence import Conditions, Interval, PointEvidence, Profile, Verdict
from commtune.model.jobs import JobKind, JobRecord, JobStage
from commtune.model.mpi_libraries import MpiFlavour, MpiInstallation
from commtune.model.operations import Backend, GpuKind, Operation
from commtune.model.patterns import Direction, Flow, Matrix, PatternParameters
from commtune.model.protected_variables import PROTECTED_NAMES
from commtune.model.runs import (
    BlockPlan,
    Execution,
    Followed,
    Measurement,
    Outcome,
    Phase,
    Run,
    RunRequest,
    RunResult,
    SubMeasurement,
    Trial,
)
from commtune.model.workload import BATCHED, BLOCKING, DEVICE, WALL, OwnBenchmark, Timing, Workload

__all__ = [
    "BATCHED",
    "BLOCKING",
    "DEFAULT",
    "DEVICE",
    "PROTECTED_NAMES",
    "WALL",
    "Aggressor",
    "AggressorPattern",
    "Backend",
    "BlockPlan",
    "Conditions",
    "Configuration",
    "Direction",
    "Execution",
    "Flow",
    "Followed",
    "GpuKind",
    "Interval",
    "JobKind",
    "JobRecord",
    "JobStage",
    "Matrix",
    "Measurement",
    "MpiFlavour",
    "MpiInstallation",
    "Operation",
    "Outcome",
    "OwnBenchmark",
    "PatternParameters",
    "Phase",
    "PointEvidence",
    "Profile",
    "Run",
    "RunRequest",
    "RunResult",
    "SubMeasurement",
    "Timing",
    "Trial",
    "Verdict",
    "Workload",
    "content_key",
]
