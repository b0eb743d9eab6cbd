"""Which library a backend uses, what results are bound to, and what a machine must have."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from components import require_component
from made_files import write_script

from commtune.campaign.loading import CampaignSpec, parse_campaign
from commtune.cluster.machine.description import Machine
from commtune.cluster.machine.doctor import Status
from commtune.cluster.machine.gpus import Gpu
from commtune.commands.campaigns import tuning
from commtune.db.codec import list_differences
from commtune.errors import CampaignError, MissingComponent, UserError
from commtune.model import Backend, GpuKind, MpiFlavour, MpiInstallation, Operation, Workload
from commtune.wiring import benchmark_setup, campaign_records, gpu_toolchains, space_fitting
from commtune.wiring.gpu_toolchains import _describe_gpu_support, check_backends
from commtune.wiring.job_handover import _GIVEN_VARIABLE

_NVCC = "echo 'Cuda compilation tools, release 13.0, V13.0.88'"
_PREFIX = Path("/opt/mpi")
OPENMPI = MpiInstallation(
    MpiFlavour.OPENMPI, "4.1.6", _PREFIX, _PREFIX / "bin/mpicxx", _PREFIX / "bin/mpirun"
)
CRAY = MpiInstallation(
    MpiFlavour.CRAY, "8.1.29.4", _PREFIX, _PREFIX / "bin/CC", Path("/usr/bin/srun")
)
HOST = Workload(Operation.ALLREDUCE, (8,))
NCCL = Workload(Operation.ALLREDUCE, (8,), 4, backend=Backend.XCCL)


def machine(gpus: int = 4, driver: str = "580.95.05") -> Machine:
    return Machine(
        "x86_64", "Xeon", 64, 128, 64, 2, 2, 2**40, "6.8.0", "ubuntu 24.04",
        gpus=(Gpu("nvidia", "NVIDIA H200", driver),) * gpus,
    )  # fmt: skip


@pytest.fixture
def h200s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Machine]:
    """A machine with four GPUs, CUDA and NCCL, as far as anybody looks."""
    write_script(tmp_path / "cuda" / "bin" / "nvcc", _NVCC)
    header = tmp_path / "nccl" / "include" / "nccl.h"
    header.parent.mkdir(parents=True)
    numbers = {"MAJOR": 2, "MINOR": 28, "PATCH": 9}
    header.write_text("".join(f"#define NCCL_{name} {n}\n" for name, n in numbers.items()))
    (tmp_path / "nccl" / "lib").mkdir()
    (tmp_path / "nccl" / "lib" / "libnccl.so.2").write_bytes(b"")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    monkeypatch.setenv("NCCL_HOME", str(tmp_path / "nccl"))
    monkeypatch.setenv("COMMTUNE_GPU_ARCHITECTURES", "90")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(gpu_toolchains, "_gpus", lambda: machine().gpus)
    gpu_toolchains._toolchain.cache_clear()
    yield machine()
    gpu_toolchains._toolchain.cache_clear()


def asked(space: str, backend: str) -> CampaignSpec:
    text = f"campaign: 1\nname: x\nspace: {space}\nworkload: {{backend: {backend}}}\n"
    return parse_campaign(text, Path.cwd())


def check(space: str, backend: str, mpi: MpiInstallation = OPENMPI) -> None:
    space_fitting._check_library(asked(space, backend), mpi)


def test_spaces_of_cray_mpich_are_for_cray_mpich() -> None:
    check("cray-mpich-gpu", "mpi-device", CRAY)
    assert space_fitting.preset_for(CRAY, "allreduce") == "cray-mpich-cxi"
    with pytest.raises(CampaignError, match="for cray-mpich, but the MPI found is openmpi"):
        check("cray-mpich-gpu", "mpi-device", OPENMPI)
    with pytest.raises(CampaignError, match="for mpich, but the MPI found is cray-mpich"):
        check("mpich-host", "mpi-host", CRAY)


@pytest.mark.usefixtures("h200s")
def test_libraries_of_backends() -> None:
    assert gpu_toolchains.libraries_of(Backend.XCCL, OPENMPI) == {"nccl": "2.28.9"}
    assert gpu_toolchains.libraries_of(Backend.MPI_HOST, OPENMPI) == {"openmpi": "4.1.6"}
    assert gpu_toolchains.libraries_of(Backend.MPI_DEVICE, OPENMPI) == {
        "openmpi": "4.1.6",
        "ucx": "",
    }
    assert space_fitting.preset_for(OPENMPI, "allreduce", Backend.XCCL) == "nccl"
    assert space_fitting.library_words(Backend.XCCL, OPENMPI) == "nccl 2.28.9"
    assert space_fitting.library_words(Backend.MPI_HOST, OPENMPI) == "openmpi 4.1.6"


@pytest.mark.usefixtures("h200s")
def test_a_campaign_is_named_after_the_library_that_it_tunes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(benchmark_setup, "find_named_mpi", lambda _: OPENMPI)
    url = f"sqlite:///{tmp_path}/commtune.db"
    on_gpus = tuning._from_flags({"workload": {"backend": "xccl"}}, url)
    assert on_gpus.plan.name.startswith("allreduce-nccl-2.28.9-s1")
    assert tuning._from_flags({}, url).plan.name == "allreduce-openmpi-4.1.6-s1"
    # Timed in another way it is another question.
    graphs = {"mode": "batched", "graph": True}
    timed = tuning._from_flags({"workload": {"backend": "xccl"}, "timing": graphs}, url)
    assert timed.timing_named and not on_gpus.timing_named
    assert timed.plan.timing.graph and timed.plan.timing.operations == 20
    assert timed.plan.name != on_gpus.plan.name


@pytest.mark.usefixtures("h200s")
def test_spaces_that_fit() -> None:
    check("nccl", "xccl")
    check("ucx", "mpi-device")
    check("openmpi-host", "mpi-staged")


@pytest.mark.usefixtures("h200s")
def test_a_version_that_a_space_was_not_made_for_is_said_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(_GIVEN_VARIABLE, "ucx=1.2")
    cases = (
        ("nccl", "xccl", ""),
        ("openmpi-host", "mpi-staged", "openmpi-host was made for openmpi >=5.0,<6"),
        # The MPI's version doesn't tell this one.
        ("ucx", "mpi-device", "ucx was made for ucx >=1.16,<2, and this is 1.2"),
    )
    for space, backend, warning in cases:
        once = space_fitting.fit_campaign(asked(space, backend), OPENMPI)
        said = [
            r for r in space_fitting.fit_campaign(once, OPENMPI).remarks if "was made for" in r
        ]
        assert len(said) == bool(warning)
        assert not said or warning in said[0]


@pytest.mark.usefixtures("h200s")
@pytest.mark.parametrize(
    ("space", "backend", "message", "hint"),
    [
        ("nccl", "mpi-host", "which the backend mpi-host does not use", "add '--backend xccl'"),
        ("openmpi-host", "xccl", "which the backend xccl does not use", "use '--space nccl'"),
        ("rccl", "xccl", "which the backend xccl does not use", "use the space nccl"),
        ("ucx", "mpi-host", "which the backend mpi-host does not use", "openmpi-host"),
        ("mpich-host", "mpi-device", "but the MPI found is openmpi 4.1.6", "openmpi-ucx-gpu"),
    ],
)
def test_spaces_that_do_not_fit(space: str, backend: str, message: str, hint: str) -> None:
    with pytest.raises(CampaignError) as caught:
        check(space, backend)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_a_space_of_an_mpi_is_wrong_for_nccl_whatever_else_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("PATH", "CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"):
        monkeypatch.setenv(name, str(tmp_path))  # where there is no compiler
    gpu_toolchains._toolchain.cache_clear()
    with pytest.raises(CampaignError) as caught:
        check("openmpi-host", "xccl")
    assert "use '--space nccl'" in caught.value.hint


@pytest.mark.usefixtures("h200s")
def test_a_space_is_cut_to_the_version_in_the_header() -> None:
    text = (
        "campaign: 1\nname: x\nspace: nccl-infiniband\nworkload: {backend: xccl}\n"
        "first: [{NCCL_P2P_SCHEDULE_GROUP_SIZE: 4}, {NCCL_NTHREADS: 256}]\n"
    )
    standard = parse_campaign(text, Path.cwd())
    fitted = space_fitting.fit_campaign(standard, OPENMPI)
    # NCCL 2.28.9 has the group size; 2.30 has what comes after it.
    assert "NCCL_P2P_SCHEDULE_GROUP_SIZE" in fitted.plan.space.by_name
    assert fitted.plan.space.key == standard.plan.space.key
    assert fitted.remarks == ()
    thorough = parse_campaign(text.replace("-infiniband", "-infiniband-thorough"), Path.cwd())
    fitted = space_fitting.fit_campaign(thorough, OPENMPI)
    assert "NCCL_IB_OOO_RQ" not in fitted.plan.space.by_name
    assert fitted.plan.space.key != thorough.plan.space.key
    assert sum("NCCL_IB_OOO_RQ (since 2.30.3)" in remark for remark in fitted.remarks) == 1
    assert space_fitting.fit_campaign(fitted, OPENMPI) == fitted


def test_a_space_is_cut_to_the_version_of_the_mpi() -> None:
    text = (
        "campaign: 1\nname: x\nspace: openmpi\n"
        "first: [{OMPI_MCA_pml: ob1}, {OMPI_MCA_pml: ob1, OMPI_MCA_smsc: cma}]\n"
    )
    fitted = space_fitting.fit_campaign(parse_campaign(text, Path.cwd()), OPENMPI)
    assert "OMPI_MCA_smsc" not in fitted.plan.space.by_name
    assert [dict(c) for c in fitted.plan.first] == [{"OMPI_MCA_pml": "ob1"}]
    assert any("not tried first" in remark for remark in fitted.remarks)


def test_more_ranks_than_gpus_and_a_host_id_of_ones_own(h200s: Machine) -> None:
    four = Workload(Operation.ALLREDUCE, (8,), 4, backend=Backend.XCCL, emulated_nodes=2)
    assert len(h200s.gpus) == four.ranks
    gpu_toolchains.check_launch(four, {})
    with pytest.raises(UserError, match="2 of 4 can be used"):
        gpu_toolchains.check_launch(four, {"CUDA_VISIBLE_DEVICES": "0,1"})
    with pytest.raises(UserError, match="NCCL_HOSTID=mine is set"):
        gpu_toolchains.check_launch(four, {"NCCL_HOSTID": "mine"})
    gpu_toolchains.check_launch(Workload(Operation.ALLREDUCE, (8,), 64), {})


@pytest.mark.usefixtures("h200s")
def test_results_are_bound_to_the_gpus_software(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_NVLS_ENABLE", "0")
    about = campaign_records._surroundings(OPENMPI, machine(), (), NCCL)
    assert about["gpu"] == {
        "backend": "xccl",
        "cuda": "13.0.88",
        "nccl": "2.28.9",
        "gpu_drivers": ["580.95.05"],
    }
    assert about["guards"] == {"NCCL_NVLS_ENABLE": "0"}
    assert about["machine"]["gpus"] == ["NVIDIA H200"] * 4
    stack = campaign_records._stack(OPENMPI, machine(), Backend.XCCL, None)
    assert stack.text == "NCCL 2.28.9, CUDA 13.0.88, Open MPI 4.1.6"
    on_host = campaign_records._surroundings(OPENMPI, machine(), (), HOST)
    assert "gpu" not in on_host
    assert on_host["guards"] == {}


def test_of_a_token_that_passes_only_a_digest_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "s3cret")
    names = ("WANDB_API_KEY", "UCX_TLS", "NOT_SET")
    monkeypatch.setenv("UCX_TLS", "rc")
    guards = campaign_records._guards(names, HOST)
    assert guards == {
        "WANDB_API_KEY": "sha256:1ec1c26b50d5d3c5",
        "UCX_TLS": "rc",
        "NOT_SET": None,
    }
    monkeypatch.setenv("WANDB_API_KEY", "another")
    assert campaign_records._guards(names, HOST)["WANDB_API_KEY"] != guards["WANDB_API_KEY"]


def test_what_a_users_own_command_measures_is_bound_to_guards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = replace(NCCL, backend=Backend.COMMAND)
    assert campaign_records._guards(("UCX_TLS",), own) == {"UCX_TLS": None}
    monkeypatch.setenv("NCCL_NVLS_ENABLE", "0")
    assert campaign_records._guards((), own) == {"NCCL_NVLS_ENABLE": "0"}
    # In a job: what its node sets was not there where the campaign was stored.
    monkeypatch.setenv("COMMTUNE_GUARDS", "UCX_TLS")
    assert campaign_records._guards(("UCX_TLS",), own) == {"UCX_TLS": None}
    monkeypatch.setenv("UCX_TLS", "tcp")
    assert campaign_records._guards(("UCX_TLS",), own) == {"UCX_TLS": "tcp"}


@pytest.mark.usefixtures("h200s")
def test_a_machine_with_fewer_gpus_is_another_system() -> None:
    about = campaign_records._surroundings(OPENMPI, machine(), (), NCCL)
    assert socket.gethostname() not in str(about)
    fewer = campaign_records._surroundings(OPENMPI, machine(gpus=2), (), NCCL)
    assert list_differences(about, fewer)
    assert campaign_records.system_of(machine(gpus=2)) != campaign_records.system_of(machine())


def test_a_machine_that_plays_nodes_is_another_system() -> None:
    plain = campaign_records.system_of(machine())
    played = campaign_records.system_of(machine(), 2)
    assert plain.name == "Xeon, 64 cores, 4 x NVIDIA H200"
    assert played.name == f"{plain.name} (emulated nodes: 2, over sockets on one machine)"
    assert played.fingerprint != plain.fingerprint
    assert played.fingerprint != campaign_records.system_of(machine(), 4).fingerprint


@pytest.mark.usefixtures("h200s")
def test_what_is_waived_has_a_reason() -> None:
    built = {"mpi-host": "", "ipc-put": "", "xccl": "it was left out by COMMTUNE_XCCL=off"}
    toolchain, why = gpu_toolchains.find_user_toolchain("cuda", ["90"])
    assert (why, toolchain is not None) == ("", True)
    assert gpu_toolchains.waived_backends(toolchain, "", built) == {"xccl": built["xccl"]}
    none, why = gpu_toolchains.find_user_toolchain(GpuKind.NONE, [])
    assert none is None
    assert gpu_toolchains.waived_backends(none, why, built) == {"xccl": "GPUs are not asked for"}
    with pytest.raises(MissingComponent, match="could not be built: it was left out"):
        gpu_toolchains.require_backend("xccl", built)
    gpu_toolchains.require_backend("ipc-put", built)


@pytest.mark.usefixtures("h200s")
def test_the_doctor_lists_backends() -> None:
    said = [finding.what for finding in check_backends(machine(), OPENMPI)]
    assert any(re.match(r"CUDA 13.0.88, .*nvcc", what) for what in said)
    assert any(what.startswith("xccl: NCCL 2.28.9, ") for what in said)
    assert any(
        what.startswith("mpi-device: openmpi 4.1.6: there is no ompi_info") for what in said
    )


@pytest.mark.usefixtures("h200s")
@pytest.mark.parametrize(("number", "version"), [(21805, "2.18.5"), (2804, "2.8.4")])
def test_the_doctor_says_what_a_mismatch_comes_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int, version: str
) -> None:
    other = xccl_library(tmp_path / "other" / "lib", number)
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/elsewhere:{other}")
    (found,) = [c for c in check_backends(machine(), OPENMPI) if c.status is Status.WARNING]
    assert f"LD_LIBRARY_PATH brings NCCL {version}" in found.what
    assert "the benchmark is built with 2.28.9: runs end with MISMATCH" in found.what
    assert f"NCCL_HOME={tmp_path / 'other'} commtune build" in found.what
    assert str(found.mend) == "export LD_LIBRARY_PATH=/elsewhere"


@pytest.mark.usefixtures("h200s")
def test_the_doctor_says_nothing_of_a_library_that_fits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(xccl_library(tmp_path / "same" / "lib", 22809)))
    assert {c.status for c in check_backends(machine(), OPENMPI)} == {Status.OK}


def xccl_library(folder: Path, number: int) -> Path:
    """A folder with a library that has NCCL's name and says this version."""
    compiler = shutil.which("cc")
    require_component("a C compiler", compiler is not None)
    folder.mkdir(parents=True)
    source = f"int ncclGetVersion(int *version) {{ *version = {number}; return 0; }}"
    subprocess.run(
        [str(compiler), "-shared", "-fPIC", "-x", "c", "-o", str(folder / "libnccl.so.2"), "-"],
        input=source, text=True, check=True,
    )  # fmt: skip
    return folder


def test_the_doctor_without_gpus_misses_nothing() -> None:
    found = list(check_backends(machine(gpus=0), OPENMPI))
    assert {finding.status for finding in found} == {Status.OK}
    assert found[-1].what == "no GPU here, so backends for GPUs are left out"


def test_what_open_mpi_says_of_itself() -> None:
    """Lines of ompi_info --parsable --all: Debian's 4.1.4, and a build with CUDA."""
    debian = (
        'mca:pml:ucx:version:"component:4.1.4"\n'
        "mca:opal:base:param:opal_built_with_cuda_support:value:false\n"
    )
    assert _describe_gpu_support(debian).startswith("built without GPUs, but with UCX")
    assert (
        _describe_gpu_support(debian.replace("false", "true"))
        == "built with support for GPU memory"
    )
    five = 'mca:accelerator:cuda:version:"component:5.0.11"\n'
    assert _describe_gpu_support(five) == "built with support for GPU memory"
    assert (
        _describe_gpu_support('mca:accelerator:null:version:"x"\n')
        == "built without GPUs: runs crash"
    )
