"""Which preset a campaign gets where its user names none."""

from __future__ import annotations

import pytest

from commtune.spaces.loading import list_presets, load_space
from commtune.spaces.preset_choice import Memory, choose_preset, is_version_in

_CASES = [
    ("mpich", "4.2.3", "host", "allreduce", "mpich"),
    ("mpich", "4.2.3", "host", "broadcast", "mpich"),
    ("mpich", "5.0.2", "host", "allreduce", "mpich-host-allreduce"),
    ("mpich", "5.0.2", "host", "broadcast", "mpich-host"),
    ("mpich", "5.0.2", "device", "allreduce", "mpich-gpu"),
    ("mpich", "4.1.2", "device", "allreduce", "mpich"),
    ("mvapich", "2.3.7", "device", "allreduce", "mvapich-gdr"),
    ("mvapich", "3.0", "host", "allreduce", "mvapich"),
    ("openmpi", "4.1.4", "host", "allreduce", "openmpi"),
    ("openmpi", "4.1.6", "host", "alltoall", "openmpi"),
    ("openmpi", "5.0.11", "host", "allreduce", "openmpi-host"),
    ("openmpi", "6.0.0", "host", "allreduce", "openmpi"),
    ("openmpi", "4.1.4", "device", "allreduce", "openmpi-ucx-gpu"),
    ("openmpi", "5.0.11", "device", "allreduce", "openmpi-ucx-gpu"),
    ("intel-mpi", "2021.17", "host", "allreduce", "intel-host"),
    ("intel-mpi", "2021.17", "device", "allreduce", "intel-mpi"),
    ("cray-mpich", "8.1.30", "host", "allreduce", "cray-mpich-cxi"),
    ("cray-mpich", "8.1.30", "device", "allreduce", "cray-mpich-gpu"),
    ("nccl", "2.28.9", "host", "allreduce", "nccl"),
    ("nccl", "2.18.5", "host", "allreduce", "nccl-node"),
    ("rccl", "2.21.5", "host", "allreduce", "rccl"),
    ("rccl", "2.26.6", "host", "allreduce", "rccl-node"),
    ("ucx", "", "device", "allreduce", "ucx"),
]


@pytest.mark.parametrize(("library", "version", "memory", "operation", "preset"), _CASES)
def test_preset_of_a_library(
    library: str, version: str, memory: Memory, operation: str, preset: str
) -> None:
    found = choose_preset(library, version, memory=memory, operation=operation)
    assert found == preset
    assert found in list_presets()
    space = load_space(found)
    assert space.library == library
    if (library, version) != ("openmpi", "6.0.0"):  # newer than all that is known
        assert is_version_in(version, space.versions)


def test_a_library_whose_version_nobody_knows_gets_the_newest() -> None:
    assert choose_preset("openmpi") == "openmpi-host"
    assert choose_preset("nccl") == "nccl"


def test_no_preset_is_for_an_unknown_library() -> None:
    with pytest.raises(KeyError):
        choose_preset("gloo", "1.0")
