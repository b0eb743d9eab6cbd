"""The doctor: what it finds, and that the command it gives is one line that fits."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest
from made_files import write_script

from commtune.cluster.machine import doctor
from commtune.cluster.machine.description import Machine, describe_machine
from commtune.cluster.machine.doctor import (
    Check,
    Status,
    _check_database_file,
    _tuning_names,
    examine_machine,
)
from commtune.cluster.machine.gpus import Gpu
from commtune.filesystems import filesystem_type

# Lines of /proc/self/mountinfo: recorded ones, and an NFS and a Lustre one after proc(5).
MOUNTS = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
25 24 0:23 / /dev/shm rw,relatime - tmpfs tmpfs rw,size=131981020k
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard,resv_strict,resuid=65534,resgid=65534
29 27 254:16 / /usr/local/nvidia ro,nosuid shared:1 master:2 - squashfs /dev/vdb ro
40 27 0:50 / /home rw,relatime shared:9 - nfs4 server:/home rw,vers=4.2
41 40 0:51 / /home/my\\040scratch rw - lustre 10.0.0.1@o2ib:/lfs rw
42 27 254:0 / /over rw - ext4 /dev/vdc rw
43 42 0:60 / /over rw - nfs server:/over rw
"""


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/", "ext4"), ("/var/lib", "ext4"), ("/home/me", "nfs4"), ("/homework", "ext4"),
        ("/home/my scratch/db", "lustre"), ("/dev/shm/x", "tmpfs"), ("/over/x", "nfs"),
    ],
)  # fmt: skip
def test_the_file_system_of_a_path(path: str, wanted: str) -> None:
    assert filesystem_type(PurePosixPath(path), MOUNTS) == wanted


def test_a_mount_table_that_says_nothing(tmp_path: Path) -> None:
    assert "commtune.db: unknown, " in _check_database_file(tmp_path / "commtune.db", "").what


def test_settings_are_told_from_locations_and_guards() -> None:
    settings = {
        "NCCL_ALGO", "MPIR_CVAR_ENABLE_GPU", "MPICH_OFI_NIC_POLICY", "OMPI_MCA_btl",
        "I_MPI_FABRICS", "UCX_TLS", "FI_PROVIDER", "GLIBC_TUNABLES", "HSA_ENABLE_SDMA",
        "PRTE_MCA_x", "CCL_ATL_TRANSPORT", "MV2_USE_CUDA", "OFI_NCCL_PROTOCOL",
    }  # fmt: skip
    others = {"I_MPI_ROOT", "FI_PROVIDER_PATH", "NCCL_NVLS_ENABLE", "HOME", "FISH", "MY_NCCL_X",
              "CCL_ROOT", "NCCL_HOME", "RCCL_PATH", "OMPI_ALLOW_RUN_AS_ROOT",
              "COMMTUNE_DB"}  # fmt: skip
    assert set(_tuning_names(dict.fromkeys(settings | others, "1"))) == settings


def test_settings_in_the_shell_are_named_with_the_command_that_removes_them() -> None:
    finding = doctor._check_environment_settings(
        {"NCCL_ALGO": "Ring", "UCX_TLS": "all", "HOME": "/"}
    )
    assert finding.status is Status.WARNING
    assert str(finding.mend) == "unset NCCL_ALGO UCX_TLS"
    assert "Ring" not in finding.what
    assert doctor._check_environment_settings({"HOME": "/"}).status is Status.OK


def test_settings_files_count_only_if_they_say_something(tmp_path: Path) -> None:
    (tmp_path / ".openmpi").mkdir()
    file = tmp_path / ".openmpi/mca-params.conf"
    file.write_text("# nothing\n\n")
    own = [f for f in doctor._check_settings_files(tmp_path) if str(tmp_path) in f.what]
    assert own == []
    file.write_text("# something\nbtl = tcp,self\n")
    (finding,) = [f for f in doctor._check_settings_files(tmp_path) if str(tmp_path) in f.what]
    assert finding.mend == f"mv {file} {file}.off"


def test_a_local_database_folder_is_fine_even_before_it_exists(tmp_path: Path) -> None:
    finding = doctor._check_database_file(tmp_path / "not/yet/commtune.db", MOUNTS)
    assert finding.status is Status.OK
    assert "ext4" in finding.what
    assert not (tmp_path / "not").exists()


def test_a_database_that_is_there_is_fine(tmp_path: Path) -> None:
    file = tmp_path / "commtune.db"
    file.touch(0o644)
    finding = doctor._check_database_file(file, MOUNTS)
    assert finding.status is Status.OK
    assert finding.what.startswith(f"{file}: ext4, ")


def test_a_network_database_folder_is_a_warning(tmp_path: Path) -> None:
    mounts = f"{MOUNTS}50 27 0:70 / {tmp_path.resolve()} rw - lustre mgs:/lfs rw\n"
    finding = doctor._check_database_file(tmp_path / "commtune.db", mounts)
    assert finding.status is Status.WARNING
    assert "lustre" in finding.what
    assert str(finding.mend).startswith("export COMMTUNE_DB=sqlite:///")
    # Another user can lay nothing where nobody knows the name.
    again = doctor._check_database_file(tmp_path / "commtune.db", mounts)
    assert again.mend != finding.mend


def test_a_database_folder_that_cannot_be_written(tmp_path: Path) -> None:
    # Not by permissions: root may write everywhere. A file in place of a folder stops everybody.
    (tmp_path / "file").touch()
    (tmp_path / "file").chmod(0o444)
    finding = doctor._check_database_file(tmp_path / "file/commtune.db", MOUNTS)
    assert finding.status is Status.MISSING
    assert finding.mend


def test_a_database_that_commands_refuse_is_not_fine(tmp_path: Path) -> None:
    file = tmp_path / "commtune.db"
    file.touch()
    tmp_path.chmod(0o1777)
    finding = doctor._check_database_file(file, MOUNTS)
    assert finding.status is Status.MISSING
    assert finding.what == f"{file} is not opened: everybody can write its folder"
    assert str(finding.mend).startswith("export COMMTUNE_DB=sqlite:///")


def test_a_cache_whose_builds_are_refused_is_not_fine(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert not [*doctor._check_cache(tmp_path)]
    tmp_path.chmod(0o777)
    (finding,) = doctor._check_cache(tmp_path)
    assert finding.status is Status.MISSING
    assert finding.what == f"no build in {tmp_path} is used: everybody can write its folder"
    assert str(finding.mend).startswith("export XDG_CACHE_HOME=")


@pytest.fixture
def no_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("COMMTUNE_MPI_PATH", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("tool", "package"), [("apt-get", "g++"), ("dnf", "gcc-c++"), ("zypper", "gcc-c++")]
)
def test_a_missing_compiler_names_this_systems_command(
    no_programs: Path, monkeypatch: pytest.MonkeyPatch, tool: str, package: str
) -> None:
    assert doctor._check_compiler() == Check("compiler", Status.MISSING, "no C++ compiler", "")
    write_script(no_programs / tool, "")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert doctor._check_compiler().mend == f"sudo {tool} install {package}"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert doctor._check_compiler().mend == f"{tool} install {package}"


def test_no_mpi_at_all_is_missing_once_with_the_line_that_gets_one(no_programs: Path) -> None:
    findings = list(doctor._check_mpi())
    missing = [finding for finding in findings if finding.status is Status.MISSING]
    assert len(missing) == 1
    assert "pip" in missing[0].mend
    assert "mpich.txt" in missing[0].mend
    assert str(no_programs) in missing[0].mend


@pytest.fixture
def machine() -> Machine:
    return replace(describe_machine(), cores_usable=8, cpu_quota=None, gpus=(), slurm="")


def test_an_mpi_that_is_refused_is_not_said_to_be_missing(
    no_programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = no_programs / "roots" / "mpich"
    write_script(prefix / "bin/mpicxx", "")
    prefix.chmod(0o777)
    monkeypatch.setenv("COMMTUNE_MPI_PATH", str(prefix.parent))
    said = [(one.status, one.what) for one in doctor._check_mpi()]
    assert (
        Status.MISSING,
        f"wheel:mpich: the MPI in {prefix} is not used: everybody can write it",
    ) in said


def test_too_few_cores_are_a_warning(machine: Machine) -> None:
    assert doctor._check_cores(replace(machine, cores_usable=1)).status is Status.WARNING
    assert "1.5 cores" in doctor._check_cores(replace(machine, cpu_quota=1.5)).what


def test_no_gpu_and_no_slurm_are_fine(machine: Machine) -> None:
    assert (
        doctor._check_gpus(machine).status is doctor._check_slurm(machine, {}).status is Status.OK
    )
    gpu = Gpu("nvidia", "NVIDIA H200", "580.159.04")
    found = doctor._check_gpus(replace(machine, gpus=(gpu, gpu)))
    assert found.what == "2 x NVIDIA H200, driver 580.159.04"
    assert doctor._check_slurm(replace(machine, slurm="22.05.8"), {"PATH": "/nowhere"}).what == (
        "Slurm 22.05.8: slurmctld does not answer ('scontrol ping'): it takes no jobs now"
    )
    assert "no cluster" in doctor._check_slurm(replace(machine, slurm="unknown version"), {}).what


_SERVER = (Path(__file__).parents[1] / "pbs" / "recorded" / "server.txt").read_text()


@pytest.mark.parametrize(
    ("said", "code", "wanted"),
    [
        (_SERVER, 0, [(Status.OK, "PBS 23.06.06, server vm")]),
        (
            _SERVER.replace("history_enable=True", "history_enable=False"), 0,
            [(Status.WARNING, "it forgets at once how jobs ended (job_history_enable is off)")],
        ),
        (
            "qstat: cannot connect to server vm (errno=15010)\n", 1,
            [(Status.WARNING, "the PBS server does not answer")],
        ),
        ("Unknown option: B\nUsage: qstat [-f] [-a|-i|-r]\n", 1, []),  # Slurm's, or Grid Engine's
    ],
)  # fmt: skip
def test_a_pbs_is_said_where_there_is_one(
    tmp_path: Path, said: str, code: int, wanted: list[tuple[Status, str]]
) -> None:
    (tmp_path / "said").write_text(said)
    write_script(tmp_path / "qstat", f"cat '{tmp_path}/said'\nexit {code}")
    found = list(doctor._check_pbs({"PATH": f"{tmp_path}:{os.environ['PATH']}"}))
    assert [check.status for check in found] == [status for status, _ in wanted]
    assert all(words in check.what for check, (_, words) in zip(found, wanted, strict=True))
    assert list(doctor._check_pbs({"PATH": "/nowhere"})) == []


def test_shared_memory(tmp_path: Path) -> None:
    assert "free of" in doctor._check_shared_memory(tmp_path).what
    assert doctor._check_shared_memory(tmp_path / "none").status is Status.MISSING


def test_the_whole_examination_of_this_machine() -> None:
    findings = examine_machine(describe_machine(), lambda: None)
    areas = [finding.area for finding in findings]
    for area in ("python", "venv", "compiler", "make", "mpi", "cores", "shm", "gpu", "slurm",
                 "database", "environment"):  # fmt: skip
        assert area in areas
    for finding in findings:
        assert finding.what
        assert "\n" not in finding.what + str(finding.mend)
