"""What NCCL made of a configuration, by the log of a run under it."""

from __future__ import annotations

from commtune.cluster.tracing.library import TraceEvidence, judge_settings
from commtune.cluster.tracing.nccl import NCCL
from commtune.model import Configuration, Execution, Operation
from commtune.tuner.effective.settings import judge_execution


def trace_log(configuration: Configuration, operation: Operation, log: str) -> Execution:
    """As a traced run is judged."""
    evidence = TraceEvidence(configuration, operation, tuple(sorted(configuration)), output=log)
    settings, verdict = judge_settings(NCCL, evidence)
    return judge_execution(
        configuration, str(operation), settings, did=verdict.did, notes=verdict.notes
    )
