"""Spaces that take their facts from catalogues, in sizes, cut to the versions of libraries."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from commtune.documents.yaml_document import parse_document
from commtune.errors import SpaceError
from commtune.model import Operation
from commtune.spaces.catalogue.loading import load_catalogue
from commtune.spaces.customizing import customize_space
from commtune.spaces.loading import build_space, load_space
from commtune.spaces.parameter import Risk, Size
from commtune.spaces.schema import BoolParameter
from commtune.spaces.space import Space
from commtune.spaces.version_filter import cut_space_to_versions


def space_of(parameters: str, more: str = "", size: Size = Size.STANDARD) -> Space:
    text = f"space: 1\nname: x\nlibrary: nccl\nfacts: [nccl]\n{more}parameters:\n{parameters}"
    return build_space(parse_document(text, error_class=SpaceError), size)


def problem(parameters: str, more: str = "") -> SpaceError:
    with pytest.raises(SpaceError) as caught:
        space_of(parameters, more)
    return caught.value


def test_a_catalogue_says_kind_values_default_and_source() -> None:
    parameter = space_of("  - {name: NCCL_NTHREADS}\n").by_name["NCCL_NTHREADS"]
    entry = load_catalogue("nccl").variables["NCCL_NTHREADS"]
    assert [v for v in parameter.values if v] == entry.values
    assert parameter.default == entry.default
    assert "src/graph/tuning.cc" in parameter.source
    assert parameter.note.startswith(" ".join(entry.meaning.split())[:40])


def test_what_a_space_says_itself_stays() -> None:
    written = "  - {name: NCCL_BUFFSIZE, values: [1MiB, 2MiB], default: mine, note: own}\n"
    parameter = space_of(written).by_name["NCCL_BUFFSIZE"]
    assert parameter.values == (None, "1048576", "2097152")
    assert (parameter.default, parameter.note) == ("mine", "own")


def test_dangers_need_an_opt_in() -> None:
    space = space_of("  - {name: NCCL_PROTO}\n  - {name: NCCL_IB_SL, range: [0, 3]}\n")
    assert "LL128" not in space.by_name["NCCL_PROTO"].values
    assert space.left_out["NCCL_IB_SL"].risks == (Risk.HANG, Risk.HARM_TO_OTHERS)


def test_needs_become_conditions() -> None:
    threads = "  - {name: NCCL_SOCKET_NTHREADS}\n"
    sockets = "  - {name: NCCL_NSOCKS_PERTHREAD}\n"
    space = space_of(sockets + threads)
    assert space.check({"NCCL_NSOCKS_PERTHREAD": "4"})
    assert not space.check({"NCCL_NSOCKS_PERTHREAD": "4", "NCCL_SOCKET_NTHREADS": "2"})
    alone = problem(sockets)
    assert "NCCL_NSOCKS_PERTHREAD has no effect" in alone.message
    assert alone.line == 6
    pinned = space_of(sockets, "pin: {NCCL_SOCKET_NTHREADS: 4}\n")
    assert not pinned.check({"NCCL_NSOCKS_PERTHREAD": "4"})


@pytest.mark.parametrize("spelling", get_args(BoolParameter.model_fields["spelling"].annotation))
def test_a_need_is_met_in_any_spelling(spelling: str) -> None:
    written = (
        "space: 1\nname: x\nlibrary: intel-mpi\nfacts: [intel-mpi]\nparameters:\n"
        f"  - {{name: I_MPI_ASYNC_PROGRESS, kind: bool, spelling: {spelling}}}\n"
        "  - {name: I_MPI_ASYNC_PROGRESS_THREADS, kind: integer, values: [1, 2]}\n"
    )
    space = build_space(parse_document(written, error_class=SpaceError))
    (clause,) = space.left_out["I_MPI_ASYNC_PROGRESS_THREADS"].when
    assert clause.allowed == {"I_MPI_ASYNC_PROGRESS": {spelling.split("/")[1]}}


def test_unknown_names_and_catalogues() -> None:
    assert "has no kind" in problem("  - {name: NCCL_BUFSIZE}\n").message
    with pytest.raises(SpaceError, match="no library of the catalogue is called 'ncll'"):
        build_space(parse_document("facts: [ncll]\nparameters: []", error_class=SpaceError))
    with pytest.raises(SpaceError, match="no space is called 'nccl-verb'") as caught:
        space_of("  - {name: NCCL_NTHREADS}\n", "include: [nccl-verb]\n")
    assert caught.value.line == 5


def test_an_included_space_is_part_of_it() -> None:
    space = space_of("  - {name: NCCL_IB_AR_THRESHOLD}\n", "include: [nccl-verbs]\n")
    assert {"NCCL_IB_AR_THRESHOLD", "NCCL_IB_USE_INLINE", "NCCL_PROTO"} <= space.by_name.keys()
    assert space.check({"NCCL_ALGO": "NVLSTree", "NCCL_PROTO": "LL"})


def test_what_only_looks_like_a_number_is_above_none() -> None:
    threads = "  - {name: NCCL_SOCKET_NTHREADS, kind: choice, values: ['²', '--2', '2']}\n"
    sockets = space_of(threads + "  - {name: NCCL_NSOCKS_PERTHREAD}\n").parameters[1]
    assert sockets.condition == "NCCL_SOCKET_NTHREADS 2"


def test_sizes() -> None:
    written = (
        "  - {name: NCCL_BUFFSIZE, size: quick}\n"
        "  - {name: NCCL_NTHREADS}\n"
        "  - {name: NCCL_SOCKET_NTHREADS, size: thorough}\n"
        "  - {name: NCCL_NSOCKS_PERTHREAD, size: quick}\n"
    )
    names = [list(space_of(written, size=size).by_name) for size in Size]
    # What hangs on a parameter that a size lacks is not in it either.
    assert names[0] == ["NCCL_BUFFSIZE"]
    assert names[1] == ["NCCL_BUFFSIZE", "NCCL_NTHREADS"]
    assert len(names[2]) == 4


@pytest.mark.parametrize(
    ("space", "versions", "gone", "kept"),
    [
        ("nccl-infiniband", {"nccl": "2.21.5"}, ["NCCL_NETDEVS_POLICY"], ["NCCL_PXN_DISABLE"]),
        ("nccl-infiniband", {"nccl": "2.30.7"}, [], ["NCCL_NETDEVS_POLICY"]),
        ("nccl-node-thorough", {"nccl": "2.21.5"}, ["NCCL_WORK_FIFO_BYTES"],
         ["NCCL_WORK_FIFO_DEPTH"]),
        ("nccl-node-thorough", {"nccl": "2.22.3"}, ["NCCL_WORK_FIFO_DEPTH"],
         ["NCCL_WORK_FIFO_BYTES"]),
        ("rccl-infiniband", {"rccl": "2.26.6"}, ["NCCL_NCHANNELS_PER_PEER"], ["NCCL_PROTO"]),
        ("rccl-infiniband", {"rccl": "2.21.5"}, ["RCCL_P2P_BATCH_ENABLE",
         "RCCL_P2P_BATCH_THRESHOLD"], ["NCCL_NCHANNELS_PER_PEER"]),
        ("openmpi", {"openmpi": "4.1.6"}, ["OMPI_MCA_smsc", "OMPI_MCA_btl_sm_eager_limit"],
         ["OMPI_MCA_btl_vader_single_copy_mechanism"]),
        ("openmpi", {"openmpi": "5.0.11"}, ["OMPI_MCA_btl_vader_single_copy_mechanism"],
         ["OMPI_MCA_smsc"]),
        ("mpich", {"mpich": "4.2.3"}, ["MPIR_CVAR_CH4_OFI_RNDV_PROTOCOL"],
         ["MPIR_CVAR_BCAST_TREE_KVAL"]),
        ("mpich", {"mpich": "5.0.2"}, [], ["MPIR_CVAR_CH4_OFI_RNDV_PROTOCOL"]),
    ],
)  # fmt: skip
def test_versions_cut_parameters(
    space: str, versions: dict[str, str], gone: list[str], kept: list[str]
) -> None:
    whole = load_space(space)
    cut, said = cut_space_to_versions(whole, versions)
    assert set(gone) <= whole.by_name.keys() - cut.by_name.keys()
    assert set(kept) <= cut.by_name.keys()
    assert (cut.key == whole.key) == (not gone)
    assert all(any(name in remark for remark in said) for name in gone)
    assert cut_space_to_versions(cut, versions) == (cut, ())


def test_versions_cut_values() -> None:
    name = "OMPI_MCA_coll_tuned_allgather_algorithm"
    old, said = cut_space_to_versions(load_space("openmpi"), {"openmpi": "4.1.6"})
    new, _ = cut_space_to_versions(load_space("openmpi"), {"openmpi": "5.0.11"})
    assert "7" not in old.by_name[name].values
    assert "7" in new.by_name[name].values
    assert any(
        f"{name} is searched without" in remark and "7 (since 5.0)" in remark for remark in said
    )
    assert old.check({name: "7"})


def test_a_cut_space_is_like_one_that_was_written_like_that() -> None:
    written = "  - {name: NCCL_NTHREADS}\n  - {name: NCCL_NETDEVS_POLICY}\n"
    cut, _ = cut_space_to_versions(space_of(written), {"nccl": "2.21.5"})
    assert cut.key == space_of("  - {name: NCCL_NTHREADS}\n").key


def test_what_hangs_on_a_cut_parameter_goes_and_rules_stay_true() -> None:
    rules = (
        "  - {name: NCCL_NTHREADS, when: {NCCL_NETDEVS_POLICY: ALL}}\n"
        "  - {name: NCCL_BUFFSIZE, values: [1MiB], when: {NCCL_NETDEVS_POLICY: [unset, ALL]}}\n"
        "  - {name: NCCL_NETDEVS_POLICY}\n"
        "forbidden:\n"
        "  - {when: {NCCL_NETDEVS_POLICY: AUTO, NCCL_BUFFSIZE: set}, why: no}\n"
    )
    cut, said = cut_space_to_versions(space_of(rules), {"nccl": "2.21.5"})
    assert list(cut.by_name) == ["NCCL_BUFFSIZE"]
    assert not cut.by_name["NCCL_BUFFSIZE"].when
    assert not cut.constraints
    assert any(re.search("depends on .* NCCL_NTHREADS", remark) for remark in said)


def test_newer_libraries_and_pins_are_mentioned() -> None:
    newer, (said,) = cut_space_to_versions(load_space("nccl-node"), {"nccl": "2.99.1"})
    assert newer.key == load_space("nccl-node").key
    assert "newer than what the catalogue was compared with" in said
    pinned = space_of("  - {name: NCCL_NTHREADS}\n", "pin: {NCCL_NETDEVS_POLICY: ALL}\n")
    _, (said,) = cut_space_to_versions(pinned, {"nccl": "2.21.5"})
    assert said.startswith("note: NCCL_NETDEVS_POLICY is pinned, and nccl 2.21.5 does not read it")
    assert cut_space_to_versions(pinned, {"nccl": "", "other": "1"}) == (pinned, ())


def test_a_site_names_the_levels_that_it_allows() -> None:
    space = load_space("nccl-infiniband-quick")
    two = customize_space(space, opt_in=["NCCL_IB_SL=1", "NCCL_IB_SL=3"])
    assert two.by_name["NCCL_IB_SL"].values == (None, "1", "3")
    assert "NCCL_IB_SL" not in two.left_out
    assert len(customize_space(space, opt_in=["NCCL_IB_SL"]).by_name["NCCL_IB_SL"].values) == 17
    with pytest.raises(SpaceError, match="does not need an opt-in"):
        customize_space(space, opt_in=["NCCL_IB_SL=16"])


@pytest.mark.parametrize(
    ("words", "operation", "is_idle"),
    [
        ("", Operation.BROADCAST, False),
        ("broadcast", Operation.BROADCAST, False),
        ("allreduce, reduce", Operation.BROADCAST, True),
        ("allreduce, verbs", Operation.BROADCAST, False),
        ("ping-pong", Operation.BROADCAST, True),
        ("ping-pong", Operation.INCAST, False),
        ("allreduce", Operation.INCAST, True),
        ("allreduce", Operation("own:halo"), False),
    ],
)
def test_parameters_of_other_operations_only_are_without_effect(
    words: str, operation: Operation, is_idle: bool
) -> None:
    space = space_of(f"  - {{name: NCCL_ALGO, applies_to: [{words}]}}\n")
    assert space.without_effect_on(operation) == (("NCCL_ALGO",) if is_idle else ())
