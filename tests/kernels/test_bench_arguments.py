"""The benchmark's command line for a request."""

from __future__ import annotations

from pathlib import Path

from commtune.kernels.bench import arguments
from commtune.model import DEFAULT, Backend, Operation, RunRequest, Timing, Workload


def words(workload: Workload, timing: Timing | None = None) -> list[str]:
    request = RunRequest("r", DEFAULT, workload, timing or Timing())
    return arguments(Path("/bench"), request, Path("/records"), [])


def test_host_memory_asks_for_no_gpu() -> None:
    given = words(Workload(Operation.ALLREDUCE, (8,)))
    assert not [w for w in given if w.startswith(("--backend", "--bind", "--timing", "--window"))]


def test_a_gpu_backend_binds_its_ranks() -> None:
    given = words(Workload(Operation.ALLREDUCE, (8,), backend=Backend.XCCL))
    assert "--backend=xccl" in given
    assert "--bind=gpu" in given


def test_timing_in_batches_on_the_device() -> None:
    timing = Timing(mode="batched", operations=7, timer="device")
    given = words(Workload(Operation.ALLREDUCE, (8,), backend=Backend.XCCL), timing)
    assert {"--timing=batched", "--operations=7", "--timer=device"} <= set(given)


def test_guard_operations_have_no_window() -> None:
    stream = Workload(Operation.STREAM, (8,), window=4)
    assert "--window=4" in words(stream)
    guard = Workload(Operation.ALLREDUCE, (8,), window=4)
    assert not [word for word in words(guard) if word.startswith("--window")]
