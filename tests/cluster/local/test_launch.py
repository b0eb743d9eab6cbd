"""Command lines and environments of launchers."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from components import require_component
from made_files import write_script
from waiting import PATIENCE_S

from commtune import process
from commtune.cluster.local.launch import base_environment, local_launcher
from commtune.cluster.mpi.discovery import find_mpi
from commtune.errors import CommtuneError
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
    command = local_launcher(installation(flavour)).command(4, ["/bench", "--op=allreduce"], 0.0)
    assert command == ["/opt/mpi/bin/mpiexec", *options, "/bench", "--op=allreduce"]


@pytest.mark.parametrize(
    ("flavour", "options"),
    [
        (MpiFlavour.MPICH, ["-launcher", "fork", "-n", "4"]),
        (MpiFlavour.INTEL, ["-launcher", "fork", "-genv", "I_MPI_PIN", "0", "-n", "4"]),
        (MpiFlavour.OPENMPI, ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none", "-n", "4"]),
    ],
)
def test_ranks_that_bind_themselves_are_left_unbound(
    flavour: MpiFlavour, options: list[str]
) -> None:
    command = local_launcher(installation(flavour), bound=False).command(4, ["/bench"], 0.0)
    assert command == ["/opt/mpi/bin/mpiexec", *options, "/bench"]


def test_emulated_nodes_are_groups_of_ranks() -> None:
    command = local_launcher(installation(MpiFlavour.MPICH), emulated_nodes=2).command(
        4, ["/bench", "--a"], 0.0
    )
    first = ["-n", "2", "env", "NCCL_HOSTID=commtune-0", "/bench", "--a"]
    second = ["-n", "2", "env", "NCCL_HOSTID=commtune-1", "/bench", "--a"]
    assert command == ["/opt/mpi/bin/mpiexec", "-launcher", "fork", *first, ":", *second]


@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_ranks_of_emulated_nodes_are_one_world(name: str, tmp_path: Path) -> None:
    """A real launcher: ranks in order, each group with its own name for its node."""
    mpi = installed(name)
    ranks = "${PMI_RANK:-$OMPI_COMM_WORLD_RANK} of ${PMI_SIZE:-$OMPI_COMM_WORLD_SIZE}"
    script = write_script(tmp_path / "rank.sh", f'echo "{ranks}: $NCCL_HOSTID"')
    done = process.run_process(
        local_launcher(mpi, bound=False, emulated_nodes=2).command(4, [str(script)], 0.0),
        environment=base_environment(os.environ, mpi),
        timeout_s=PATIENCE_S,
    )
    assert done.ok, done.output
    assert sorted(done.output.split("\n"))[1:] == [
        "0 of 4: commtune-0",
        "1 of 4: commtune-0",
        "2 of 4: commtune-1",
        "3 of 4: commtune-1",
    ]


def installed(name: str) -> MpiInstallation:
    try:
        return find_mpi(f"wheel:{name}")
    except CommtuneError:
        require_component(f"the {name} wheel", found=False)
        raise


def test_the_environment_is_built_and_not_inherited() -> None:
    inherited = {
        "HOME": "/home/user",
        "PATH": "/usr/bin",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "MPIR_CVAR_NOLOCAL": "1",
        "NCCL_NVLS_ENABLE": "0",
        "NCCL_ALGO": "Ring",
        "LD_LIBRARY_PATH": "/opt/ucx/lib",
        "CUDA_VISIBLE_DEVICES": "2,3",
        "UCX_NET_DEVICES": "mlx5_0:1",
        "LD_PRELOAD": "/evil.so",
        "OMPI_MCA_plm": "isolated",
        "OMPI_MCA_coll": "^tuned",
    }
    made = base_environment(inherited, installation(MpiFlavour.MPICH), ["UCX_NET_DEVICES", "GONE"])
    assert made == {
        "HOME": "/home/user",
        "PATH": "/opt/mpi/bin:/usr/bin",
        "NCCL_NVLS_ENABLE": "0",
        "LD_LIBRARY_PATH": "/opt/ucx/lib",
        "CUDA_VISIBLE_DEVICES": "2,3",
        "UCX_NET_DEVICES": "mlx5_0:1",
        "OMPI_MCA_plm": "isolated",
        "I_MPI_ROOT": "/r",
    }


def test_without_a_path_the_launchers_folder_and_the_systems_default_serve() -> None:
    made = base_environment({}, installation(MpiFlavour.MPICH))
    assert made["PATH"] == "/opt/mpi/bin:/bin:/usr/bin"
    empty = base_environment({"PATH": ""}, installation(MpiFlavour.MPICH))
    assert empty["PATH"] == "/opt/mpi/bin"


def test_open_mpi_4_starts_ranks_where_there_is_no_ssh(tmp_path: Path) -> None:
    """Its launcher gives up otherwise: as in containers that hold an MPI and nothing to log in."""
    compiler = Path("/usr/bin/mpicxx.openmpi")
    require_component("Debian's Open MPI", found=compiler.exists())
    found = find_mpi(str(compiler))
    launcher = tmp_path / "mpiexec"
    launcher.symlink_to(found.launcher)
    mpi = replace(found, launcher=launcher)
    environment = base_environment({"HOME": "/root", "PATH": str(tmp_path)}, mpi)

    done = process.run_process(
        local_launcher(mpi).command(2, ["/bin/echo", "here"], 0.0),
        environment=environment,
        timeout_s=PATIENCE_S,
    )

    assert found.version.startswith("4.")
    assert done.ok, done.output
    assert done.output.split() == ["here", "here"]
    assert "OMPI_MCA_plm" not in base_environment(
        {"PATH": str(tmp_path)}, replace(mpi, version="5")
    )
