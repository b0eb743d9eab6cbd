"""Command lines and environments of launchers."""

from __future__ import annotations

from pathlib import Path

import pytest

from commtune.cluster.launch import base_environment, mpi_command
from commtune.model import MpiFlavour, MpiInstallation


def installation(flavour: MpiFlavour) -> MpiInstallation:
    prefix = Path("/opt/mpi")
    return MpiInstallation(
        flavour, "1", prefix, prefix / "bin/mpicxx", prefix / "bin/mpiexec", {"I_MPI_ROOT": "/r"}
    )


@pytest.mark.parametrize(
    ("flavour", "options"),
    [
        (MpiFlavour.MPICH, ["-launcher", "fork", "-n", "4"]),
        (MpiFlavour.INTEL, ["-launcher", "fork", "-n", "4"]),
        (MpiFlavour.OPENMPI, ["--map-by", ":OVERSUBSCRIBE", "-n", "4"]),
    ],
)
def test_each_launcher_has_its_own_options(flavour: MpiFlavour, options: list[str]) -> None:
    command = mpi_command(installation(flavour), 4, ["/bench", "--op=allreduce"])
    assert command == ["/opt/mpi/bin/mpiexec", *options, "/bench", "--op=allreduce"]


def test_the_environment_is_built_and_not_inherited() -> None:
    inherited = {
        "HOME": "/home/user",
        "PATH": "/usr/bin",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "MPIR_CVAR_NOLOCAL": "1",
        "NCCL_NVLS_ENABLE": "0",
        "UCX_NET_DEVICES": "mlx5_0:1",
        "LD_PRELOAD": "/evil.so",
    }
    made = base_environment(inherited, installation(MpiFlavour.MPICH), ["UCX_NET_DEVICES", "GONE"])
    assert made == {
        "HOME": "/home/user",
        "PATH": "/opt/mpi/bin:/usr/bin",
        "NCCL_NVLS_ENABLE": "0",
        "UCX_NET_DEVICES": "mlx5_0:1",
        "I_MPI_ROOT": "/r",
    }


def test_without_a_path_the_launchers_folder_and_the_systems_default_serve() -> None:
    made = base_environment({}, installation(MpiFlavour.MPICH))
    assert made["PATH"] == "/opt/mpi/bin:/bin:/usr/bin"
    empty = base_environment({"PATH": ""}, installation(MpiFlavour.MPICH))
    assert empty["PATH"] == "/opt/mpi/bin"
