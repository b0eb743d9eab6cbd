"""``commtune spaces explain``: what it says of real variables and of names that are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import CommandLine

from commtune.commands.reference import explain
from commtune.errors import UnknownName
from commtune.spaces.catalogue.loading import list_libraries, load_catalogue


def said(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What is printed, as one line."""
    explain.spaces_explain_command(name, json_output=False)
    return " ".join(capsys.readouterr().out.split())


def test_everything_of_a_variable_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    text = said("NCCL_NVLS_ENABLE", capsys)
    for words in (
        "NCCL_NVLS_ENABLE (NCCL)",
        "NVLink SHARP",
        "values 0, 2",
        "restricted 1",
        "default 2",
        "history 2.17.1: 1; 2.18.1: 2",
        "versions since 2.17.1, still in 2.32.3",
        "for collectives; inside a node and between nodes",
        "hang (runs may hang)",
        "care caution:",
        "role tune: may be searched",
        "the library's source code; in the library's documentation",
        "source github.com/NVIDIA/nccl, tag v2.30.7-1: src/transport/nvls.cc",
        "with others NCCL_CUMEM_ENABLE, NCCL_COLLNET_ENABLE",
    ):
        assert words in text, words


def test_numbers_of_old_releases_are_told_beside_the_values(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = said("NCCL_NET_GDR_LEVEL", capsys)
    assert text.count("also read 0 for LOC, 1 for PIX, 2 for PXB, 3 for PHB, 4 for SYS") == 2
    assert "also read" not in said("NCCL_NET_MERGE_LEVEL", capsys)


def test_where_a_variable_is_searched(capsys: pytest.CaptureFixture[str]) -> None:
    assert 'searched in nccl (unset, Simple, LL, "LL,Simple", ^LL128)' in said(
        "NCCL_PROTO", capsys
    )
    assert "(by channels: unset, exactly-4" in said("NCCL_MIN_NCHANNELS", capsys)
    assert "(only with opt_in: [NCCL_IB_SL])" in said("NCCL_IB_SL", capsys)
    assert "openmpi-host (unset, 1)" in said("OMPI_MCA_coll_tuned_use_dynamic_rules", capsys)
    assert "searched in no shipped space" in said("NCCL_PARAM_DUMP_ALL", capsys)


def test_a_space_that_comes_in_sizes_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, searched = said("NCCL_PROTO", capsys).rpartition("searched in ")
    assert "-quick" not in searched and "-thorough" not in searched
    assert searched.count("^LL128)") <= 2  # spaces that offer the same stand together


def test_versions_say_what_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert "versions in 2.3.5 or earlier, still in 2.32.3" in said("NCCL_BUFFSIZE", capsys)
    assert "versions since 2.17.1, last in 2.27.7" in said("RCCL_MSCCL_FORCE_ENABLE", capsys)
    assert "still in 2.3.7" in said("MV2_USE_CUDA", capsys)  # MVAPICH 3 is a part of its own
    assert "searched in no shipped space" in said("NCCL_DEBUG", capsys)


def test_a_name_that_two_libraries_read(capsys: pytest.CaptureFixture[str]) -> None:
    text = said("NCCL_PXN_DISABLE", capsys)
    assert "NCCL_PXN_DISABLE (NCCL)" in text and "NCCL_PXN_DISABLE (RCCL)" in text
    assert "NCCL_IB_HCA (RCCL) RCCL reads it, but the catalogue does not describe it." in said(
        "NCCL_IB_HCA", capsys
    )


def test_a_part_of_a_library_and_what_another_says(capsys: pytest.CaptureFixture[str]) -> None:
    text = said("FI_CXI_RDZV_THRESHOLD", capsys)
    assert "(libfabric: provider cxi for Slingshot)" in text
    assert "history 1.21: 2048; 2.2: 16384" in text
    assert "Cray MPICH says of FI_CXI_RDZV_THRESHOLD" in text


def test_other_names_of_a_variable(capsys: pytest.CaptureFixture[str]) -> None:
    alias = said("NCCL_MIN_NRINGS", capsys)
    assert "NCCL_MIN_NCHANNELS (NCCL) NCCL_MIN_NRINGS is another name for it." in alias
    prefix = said("MPIR_PARAM_ALLREDUCE_INTRA_ALGORITHM", capsys)
    assert "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM (MPICH)" in prefix
    assert "mpich-host-allreduce (" in prefix  # searched under its own name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("NCCL_NVLS_DISABLE", "never read by any release that was looked at"),
        ("FI_CXI_OVFLOW_BUF_SIZE", "misspelled Misspelt in a user guide"),
        ("FI_CXI_OVFLOW_BUF_SIZE", "right name FI_CXI_OFLOW_BUF_SIZE"),
        ("CCL_SYCL_SUB_COMMUNICATOR", "right name CCL_SYCL_SUB_COMMUICATOR"),
        ("NCCL_TREE_THRESHOLD", "is not a variable of NCCL: removed"),
        ("NCCL_TUNER_CONFIG_PATH", "read by something else, not by this library"),
        ("MPICH_CVAR_BCAST_INTRA_ALGORITHM", "is not a variable of MPICH: misspelled"),
        ("OMPI_MCA_btl_openib_eager_limit", "is not a variable of Open MPI: removed"),
        ("NCCL_NCHANNELS_PER_PEER", "right name NCCL_NCHANNELS_PER_NET_PEER"),
    ],
)
def test_a_wrong_name_is_told_the_right_one(
    name: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in said(name, capsys)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("NCCL_PROTOO", "NCCL_PROTO"), ("nccl_proto", "NCCL_PROTO"),
        ("UCX_RNDV_TRESH", "UCX_RNDV_THRESH"), ("I_MPI_ADJUST_ALLREDUC", "I_MPI_ADJUST_ALLREDUCE"),
        ("coll_tuned_allreduce_algorithm", "OMPI_MCA_coll_tuned_allreduce_algorithm"),
    ],
)  # fmt: skip
def test_an_unknown_name_gets_the_nearest(name: str, near: str) -> None:
    with pytest.raises(UnknownName) as caught:
        explain.spaces_explain_command(name, json_output=False)
    assert caught.value.hint.removeprefix("nearest: ").split(", ")[0] == near


def test_a_name_like_none() -> None:
    with pytest.raises(UnknownName, match="knows no variable 'HOME'") as caught:
        explain.spaces_explain_command("HOME", json_output=False)
    assert "nearest" not in caught.value.hint


def test_json_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    explain.spaces_explain_command("NCCL_NVLS_ENABLE", json_output=True)
    data = json.loads(capsys.readouterr().out)
    (entry,) = [e for e in data["known"] if e["library"] == "nccl"]
    assert entry["history"] == {"2.17.1": "1", "2.18.1": "2"}
    assert entry["level"] == "caution" and entry["documented"] is True
    assert entry["checked"]["newest"] == "2.32.3"
    explain.spaces_explain_command("NCCL_NVLS_DISABLE", json_output=True)
    data = json.loads(capsys.readouterr().out)
    assert data["known"] == []
    assert data["not_read"][0]["use"] == ["NCCL_NVLS_ENABLE"]


def test_all_names_can_be_explained(capsys: pytest.CaptureFixture[str]) -> None:
    for library in list_libraries():
        file = load_catalogue(library)
        for name in [*list(file.variables)[::50], *file.not_variables]:
            asked = name.replace("*", "X")
            assert asked in said(asked, capsys)


def test_the_command_itself(tmp_path: Path) -> None:
    run = CommandLine(tmp_path)
    good = run("spaces", "explain", "UCX_TLS")
    assert (good.code, good.err) == (0, "")
    assert good.out.startswith("UCX_TLS (UCX)\n")
    assert max(map(len, good.out.splitlines())) <= 96
    bad = run("spaces", "explain", "UCX_TLSS")
    assert bad.code == 2 and bad.out == ""
    assert bad.err == (
        "commtune: the catalogue knows no variable 'UCX_TLSS'\n  nearest: UCX_TLS\n"
    )


def test_a_library_is_told_by_a_line_for_each_of_its_variables(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("intel-mpi", "Intel MPI"):
        explain.spaces_explain_command(name, json_output=False)
        header, *rows, blank, last = capsys.readouterr().out.splitlines()
        assert header.split()[:3] == ["variable", "default", "mind"]
        file = load_catalogue("intel-mpi")
        assert [row.split()[0] for row in rows] == list(file.variables)
        assert blank == ""
        assert last.startswith(f"{len(file.variables)} variables of Intel MPI;")


def test_a_pattern_is_told_by_a_line_for_each_name_that_fits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = said("ucx_*rndv_sch*", capsys)
    assert "UCX_RNDV_SCHEME auto caution How the data of a rendezvous moves" in text
    assert "1 variable of UCX" in text
    assert "variable library default" in said("*BUFFSIZE", capsys)
    explain.spaces_explain_command("UCX_*RNDV_SCH*", json_output=True)
    (one,) = json.loads(capsys.readouterr().out)
    assert (one["name"], one["library"], one["default"]) == ("UCX_RNDV_SCHEME", "ucx", "auto")
    with pytest.raises(UnknownName, match="no variable 'UCX_NOTHING\\*'"):
        explain.spaces_explain_command("UCX_NOTHING*", json_output=False)


def test_a_setting_is_told_as_its_variable(capsys: pytest.CaptureFixture[str]) -> None:
    for setting in ("UCX_RNDV_SCHEME=get_zcopy", "export UCX_RNDV_SCHEME=x"):
        assert said(setting, capsys).startswith("UCX_RNDV_SCHEME (UCX)")


def test_a_name_as_tools_of_the_library_write_it_leads_to_the_variable() -> None:
    for name, meant in (("btl", "OMPI_MCA_btl"), ("rndv_scheme", "UCX_RNDV_SCHEME")):
        with pytest.raises(UnknownName) as error:
            explain.spaces_explain_command(name, json_output=False)
        assert error.value.hint.startswith(f"nearest: {meant}")
