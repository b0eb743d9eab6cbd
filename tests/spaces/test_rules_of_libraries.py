"""Samples of the shipped spaces against rules that were written apart from them.

COMMTUNE_SAMPLES says how many samples of each space are looked at: 10000 is thorough.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest
import rules_of_libraries

from commtune.spaces.customizing import customize_space
from commtune.spaces.loading import list_presets, load_space
from commtune.spaces.space import Space

SAMPLES = int(os.environ.get("COMMTUNE_SAMPLES", "500"))
#: Written by hand before there were catalogues, and tried on the libraries themselves.
BY_HAND = {
    "cray-mpich-cxi", "intel-host", "mpich-host", "mpich-host-allreduce", "nccl", "openmpi-host",
    "rccl", "ucx",
}  # fmt: skip
SPACES = [name for name in list_presets() if name not in BY_HAND]
THOROUGH = [name for name in SPACES if name.endswith("-thorough")]
ON_NETWORKS = [
    name for name in THOROUGH if re.search("cray|efa|infiniband|roce|slingshot|sockets|ucx", name)
]
#: Variables that change what RCCL does by being there; nothing may pin them.
PRESENCE = {
    "NCCL_PROTO", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_THREAD_THRESHOLDS",
    "NCCL_PXN_DISABLE", "NCCL_P2P_NET_CHUNKSIZE", "RCCL_DIRECT_ALLGATHER_THRESHOLD",
}  # fmt: skip


preset = cache(load_space)


def found(space: Space, samples: int) -> Iterator[str]:
    """What the rules say of random configurations."""
    rng = random.Random(17)
    for _ in range(samples):
        chosen = dict(space.sample(rng))
        for problem in rules_of_libraries.problems(space.name, {**space.pinned, **chosen}, chosen):
            yield f"{problem} in {chosen}"


@pytest.mark.slow
@pytest.mark.parametrize("name", SPACES)
def test_samples_keep_the_rules(name: str) -> None:
    assert next(found(preset(name), SAMPLES), None) is None


# The other spaces of RCCL: `test_samples_keep_the_rules`.
@pytest.mark.parametrize("name", ["rccl", "rccl-node-quick"])
def test_no_peer_of_rccl_gets_more_channels_than_there_are(name: str) -> None:
    space = preset(name)
    of_a_peer = space.by_name["NCCL_NCHANNELS_PER_PEER"]
    assert "32" in of_a_peer.values and "at-most-8" in space.by_name["channels"].values
    rng = random.Random(3)
    for _ in range(SAMPLES):
        run = space.sample(rng)
        asked = int(run.get("NCCL_NCHANNELS_PER_PEER", 1))
        assert asked <= int(run.get("NCCL_MAX_NCHANNELS", 128)), run
        assert asked <= int(run.get("NCCL_MAX_P2P_NCHANNELS", 128)), run


@pytest.mark.parametrize("name", THOROUGH)
def test_rules_see_what_a_space_forbids(name: str) -> None:
    seen = next(found(replace(preset(name), constraints=()), 500), None)
    assert (seen is not None) == bool(preset(name).constraints)


@pytest.mark.parametrize("name", [n for n in THOROUGH if n != "intel-mpi-thorough"])
def test_rules_see_what_conditions_keep_away(name: str) -> None:
    space = preset(name)
    free = tuple(replace(parameter, when=()) for parameter in space.parameters)
    assert free != space.parameters
    assert next(found(replace(space, parameters=free), 500), None) is not None


@pytest.mark.parametrize("name", ON_NETWORKS)
def test_rules_see_what_needs_the_consent_of_a_site(name: str) -> None:
    space = preset(name)
    classes = [n for n in space.left_out if n.endswith(("_SL", "_TC", "_CLASS", "TCLASS"))]
    classes += [n for n in space.left_out if n == "NCCL_CROSS_NIC"]
    assert classes
    for parameter in classes:
        opened = customize_space(space, opt_in=[parameter])
        assert any(parameter in problem for problem in found(opened, 200)), parameter


def test_rules_see_forced_ll128() -> None:
    for name in ("nccl-node", "nccl-infiniband", "rccl-node"):
        opened = customize_space(preset(name), opt_in=["NCCL_PROTO=LL128"])
        assert any("LL128 is forced" in problem for problem in found(opened, 200))


def test_nothing_is_pinned_whose_presence_changes_rccl() -> None:
    for name in SPACES:
        if name.startswith("rccl"):
            assert not PRESENCE & preset(name).pinned.keys()
            values = preset(name).by_name["NCCL_BUFFSIZE"].values
            assert None in values


@pytest.mark.parametrize(
    ("space", "run", "problem"),
    [
        ("nccl-node", {"NCCL_ALGO": "NVLS", "NCCL_PROTO": "LL"}, "NVLS has no protocol LL"),
        ("nccl-node", {"NCCL_P2P_NVL_CHUNKSIZE": "1048576"}, "don't fit into the buffer"),
        ("nccl-node", {"NCCL_BUFFSIZE": "4M"}, "may be misread"),
        ("nccl-node", {"NCCL_MAX_RINGS": "4"}, "no library of nccl reads"),
        ("nccl-sockets", {"NCCL_NSOCKS_PERTHREAD": "4"}, "sockets without threads"),
        ("nccl-infiniband", {"NCCL_IB_SPLIT_DATA_ON_QPS": "1"}, "without effect"),
        ("openmpi", {"OMPI_MCA_coll_tuned_bcast_algorithm": "3"}, "without dynamic rules"),
        ("openmpi", {"OMPI_MCA_coll_tuned_alltoall_algorithm": "5"}, "alltoall_algorithm=5"),
        ("mpich", {"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": "ring"}, "behind the device"),
        ("mpich-gpu", {"MPIR_CVAR_CH4_IPC_GPU_HANDLE_CACHE": "generic"}, "outlive"),
        ("intel-mpi-infiniband", {"UCX_RNDV_THRESH": "8192"}, "only the provider mlx"),
        ("mvapich-gdr", {"MV2_CUDA_IPC_THRESHOLD": "8192"}, "a pointer to GPU memory crashes"),
        ("mvapich", {"MVP_ALLREDUCE_TUNING_IS_TWO_LEVEL": "1"}, "nothing asks for them"),
        ("oneccl", {"CCL_ALLREDUCE_SCALEOUT": "ring"}, "without topo"),
        ("cray-mpich-gpu", {"MPICH_GPU_IPC_THRESHOLD": "64"}, "without support"),
        ("rccl", {"NCCL_NCHANNELS_PER_PEER": "32", "NCCL_MAX_NCHANNELS": "8"}, "for a peer"),
    ],
)  # fmt: skip
def test_rules_know_the_traps(space: str, run: dict[str, str], problem: str) -> None:
    assert any(problem in said for said in rules_of_libraries.problems(space, run, run))
