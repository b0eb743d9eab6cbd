"""The command by which a person makes a run of their own benchmark has what runs have."""

from __future__ import annotations

from pathlib import Path

import pytest

from commtune.campaign.loading import parse_campaign
from commtune.model import MpiFlavour, MpiInstallation
from commtune.wiring.benchmark_setup import command_by_hand, prepare_benchmark

_ROOT = "OMPI_ALLOW_RUN_AS_ROOT"


def test_pins_and_what_the_mpi_needs_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Open MPI starts nothing for root, as in most containers, unless it is told to.
    at = Path("/opt/openmpi")
    mpi = MpiInstallation(
        MpiFlavour.OPENMPI, "5.0.11", at, at / "mpicxx", at / "mpiexec", environment={_ROOT: "1"}
    )
    plan = parse_campaign(
        "campaign: 1\nname: x\nspace: openmpi-host\n"
        "benchmark: {command: [sh, osu.sh], output: osu}\n",
        tmp_path,
    ).plan
    monkeypatch.delenv(_ROOT, raising=False)

    def said() -> str:
        benchmark = prepare_benchmark(mpi, {"UCX_TLS": "sm,self"}, (), plan.workload, tmp_path)
        return command_by_hand(benchmark, plan)

    start = f"run it by hand: cd {tmp_path} && "
    library = "MPI4PY_LIBMPI=libmpi.so.40"
    assert said().startswith(
        f"{start}env {_ROOT}=1 UCX_TLS=sm,self {library} /opt/openmpi/mpiexec "
    )
    monkeypatch.setenv(_ROOT, "1")
    assert said().startswith(f"{start}env UCX_TLS=sm,self {library} /opt/openmpi/mpiexec ")
