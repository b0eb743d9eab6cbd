"""What is said of variables that are set, and of none that are fine."""

from __future__ import annotations

import pytest

from commtune.spaces.catalogue.checking import (
    EnvironmentSetting,
    SettingRemark,
    _explain_absence,
    _is_misspelling,
    check_settings,
)
from commtune.spaces.catalogue.loading import KnownVariable, list_libraries, load_catalogue

NEWEST = {"nccl": "2.30.7", "openmpi": "5.0.11"}


def said(setting: str, **found: str) -> list[SettingRemark]:
    name, _, value = setting.partition("=")
    return list(check_settings([EnvironmentSetting(name, value)], found or NEWEST))


@pytest.mark.parametrize(
    "setting",
    [
        "FOO=1", "NCCL_FOO=1", "NCCL_ALGO=Ring", "NCCL_PROTO=Simple", "NCCL_PROTO=^LL128",
        "NCCL_PROTO=^LL,LL128", "NCCL_BUFFSIZE=8388608", "NCCL_IB_TIMEOUT=20", "NCCL_DEBUG=INFO",
        "NCCL_NVLS_ENABLE=0", "NCCL_TUNER_CONFIG_PATH=/x", "NCCL_TOPO_DUMP_FILE=x",
        "UCX_RNDV_THRESH=8k", "UCX_TLS=rc,sm,self", "SLINGSHOT_VNIS=1", "OMPI_MCA_pml=ucx",
        "OMPI_MCA_btl_vader_eager_limit=8192", "MPICH_ALLREDUCE_INTRA_ALGORITHM=ring",
        "NCCL_LL128_C2C=0", "MPICH_GPU_IPC_THRESHOLD=8K", "OMPI_MCA_btl_sm_eager_limit=8k",
        "FI_MR_CACHE_MONITOR=userfaultfd", "NCCL_NET_GDR_LEVEL=3", "NCCL_P2P_LEVEL=3",
    ],
)  # fmt: skip
def test_what_is_fine_is_not_mentioned(setting: str) -> None:
    assert said(setting) == []


@pytest.mark.parametrize(
    ("setting", "words", "mend"),
    [
        ("NCCL_PROTO=LL128", "NCCL_PROTO=LL128 is dangerous (wrong-result", "unset NCCL_PROTO"),
        ("NCCL_PROTO=LL,ll128", "is dangerous (wrong-result", "unset NCCL_PROTO"),
        ("NCCL_PROTO=^LL", "is dangerous (wrong-result", "unset NCCL_PROTO"),
        (
            "NCCL_P2P_LEVEL=4",
            "=4, which is SYS, is dangerous",
            "unset NCCL_P2P_LEVEL",
        ),
        ("NCCL_IB_SL=3", "ask the machine's administrators", "unset NCCL_IB_SL"),
        ("FI_MR_CACHE_MONITOR=memhooks", "is dangerous (hang", "unset FI_MR_CACHE_MONITOR"),
        ("NCCL_BUFFSIZE=8M", "8M is read as 8 or refused", "export NCCL_BUFFSIZE=8388608"),
        ("NCCL_NVLS_DISABLE=1", "switched off by NCCL_NVLS_ENABLE=0", "unset NCCL_NVLS_DISABLE"),
        (
            "NCCL_MAX_P2P_PEERS=8",
            "is not a variable of NCCL (misspelled)",
            "export NCCL_P2P_MAX_PEERS=8; unset NCCL_MAX_P2P_PEERS",
        ),
        (
            "NCCL_SOCKET_IFNMAE=eth 0",
            "perhaps NCCL_SOCKET_IFNAME is meant",
            "export NCCL_SOCKET_IFNAME='eth 0'; unset NCCL_SOCKET_IFNMAE",
        ),
        (
            "OMPI_MCA_btl_vader_single_copy_mechanism=none",
            "Open MPI 4.1 was the last to have it, and 5.0.11 is here; use OMPI_MCA_smsc",
            "unset OMPI_MCA_btl_vader_single_copy_mechanism",
        ),
    ],
)
def test_what_is_wrong_is_said_with_what_to_do(setting: str, words: str, mend: str) -> None:
    (remark,) = said(setting)
    assert words in remark.what
    assert str(remark.mend) == mend
    assert "\n" not in remark.what + str(remark.mend)


def test_a_variable_is_held_against_the_version_that_is_here() -> None:
    (early,) = said("NCCL_PAT_ENABLE=0", nccl="2.22.3")
    assert "it came with NCCL 2.23.4, and 2.22.3 is here" in early.what
    assert said("NCCL_PAT_ENABLE=0", nccl="2.23.4") == []
    assert said("OMPI_MCA_btl_vader_single_copy_mechanism=none", openmpi="4.1.6") == []
    (later,) = said("FI_CXI_DISABLE_NON_INJECT_RMA_IDC=1", libfabric="2.2.0")
    assert "it came with libfabric 2.3, and 2.2.0 is here" in later.what
    (smsc,) = said("OMPI_MCA_smsc=cma", openmpi="4.1.6")
    assert "it came with Open MPI 5.0" in smsc.what


def test_a_part_with_versions_of_its_own_is_not_held_against_the_library_s() -> None:
    rccl, name = load_catalogue("rccl"), "HSA_XNACK"
    assert rccl.variables[name].part == "rocm-runtime"
    variable = rccl.variables[name].model_copy(update={"since": "6.4"})
    changed = rccl.model_copy(update={"variables": {**rccl.variables, name: variable}})
    assert _explain_absence(KnownVariable(changed, name, variable), "2.21.5") == ""


def test_which_library_is_here_decides_what_a_name_means() -> None:
    assert said("NCCL_NCHANNELS_PER_PEER=4", rccl="2.21.5") == []
    (gone,) = said("NCCL_NCHANNELS_PER_PEER=4", nccl="2.30.7")
    assert "is not a variable of NCCL (read by something else" in gone.what
    assert said("NCCL_TUNER_CONFIG_PATH=/x", nccl="2.30.7") == []  # a plugin may read it


def test_what_the_site_sets_is_its_own_business() -> None:
    site = EnvironmentSetting("NCCL_IB_SL", "3", "/etc/nccl.conf", of_site=True)
    assert list(check_settings([site], NEWEST)) == []
    (remark,) = check_settings(
        [EnvironmentSetting("NCCL_IB_SL", "3", "/home/me/.nccl.conf")], NEWEST
    )
    assert "NCCL_IB_SL=3 in /home/me/.nccl.conf is dangerous" in remark.what
    assert not remark.mend  # a shell can't unset it


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("NCCL_BUFF_SIZE", "NCCL_BUFFSIZE", True), ("nccl_proto", "NCCL_PROTO", True),
        ("NCCL_ALOG", "NCCL_ALGO", True), ("NCCL_ALG", "NCCL_ALGO", False),
        ("UCX_RNDV_THRESHOLD", "UCX_RNDV_THRESH", True), ("NCCL_ALGOS", "NCCL_ALGO", True),
        ("UCX_RC_RX_QUEUE_LEN", "UCX_RC_TX_QUEUE_LEN", False), ("NCCL_ALGO", "NCCL_ALGO", False),
        ("MPIR_CVAR_X_INTER_ALGORITHM", "MPIR_CVAR_X_INTRA_ALGORITHM", False),
        ("NCCL_MIN_CTAS", "NCCL_MAX_CTAS", False), ("A_2048_X", "A_2049_X", False),
    ],
)  # fmt: skip
def test_misspellings_are_told_from_other_variables(name: str, known: str, expected: bool) -> None:
    assert _is_misspelling(name, known) is expected


@pytest.mark.parametrize("library", list_libraries())
def test_no_variable_is_taken_for_a_misspelling_of_another(library: str) -> None:
    """If two real names were that alike, an unlisted one would be as well."""
    names = [n for n in load_catalogue(library).variables if not n.startswith("MPIR_CVAR_")]
    alike = [(a, b) for a in names for b in names if _is_misspelling(a, b)]
    assert alike == []


def test_unlisted_names_of_a_family_are_rarely_taken_for_misspelled() -> None:
    """Of the names that NCCL reads and nobody has described, none is a letter away from one."""
    file = load_catalogue("nccl")
    assert len(file.others) > 50
    alike = [(o, k) for o in file.others for k in file.variables if _is_misspelling(o, k)]
    assert alike == []
