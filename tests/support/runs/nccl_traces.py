"""What NCCL made of a configuration, by the log of a run under it."""

from __future__ import annotations

from collections.abc import Iterable

from commtune.cluster.tracing.nccl import _executed_by_size, _NcclLog, _setting
from commtune.model import Configuration, Execution, Operation
from commtune.tuner.effective.settings import judge_execution


def trace_log(
    configuration: Configuration, operation: Operation, log: _NcclLog, names: Iterable[str] = ()
) -> Execution:
    """As a traced run is judged; ``names`` are variables that the configuration leaves alone."""
    settings = [
        _setting(name, configuration.get(name), operation, log)
        for name in sorted({*names, *configuration})
    ]
    said = _executed_by_size(operation, log)
    return judge_execution(configuration, str(operation), settings, did=said, notes=log.warnings)
