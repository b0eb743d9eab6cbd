"""What the variables of launchers say, as src/ranks/launcher.cpp reads them."""

from __future__ import annotations

import os
from collections.abc import Mapping

import pytest

from commtune.kernels.python_bench.world import launched_ranks


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, (None, 0, 0)),
        ({"MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2", "PMI_SIZE": "4"}, (1, 2, 4)),
        ({"OMPI_COMM_WORLD_LOCAL_RANK": "x", "OMPI_COMM_WORLD_LOCAL_SIZE": "x"}, (None, 0, 0)),
        (
            {
                "SLURM_LOCALID": "3",
                "SLURM_STEP_TASKS_PER_NODE": "4(x2),1",
                "SLURM_STEP_NUM_TASKS": "9",
            },
            (3, 4, 9),
        ),
        # Slurm's speak of the job's script, in what another launcher starts from there.
        (
            {
                "SLURM_LOCALID": "0",
                "SLURM_STEP_TASKS_PER_NODE": "1",
                "SLURM_STEP_NUM_TASKS": "1",
                "PALS_LOCAL_RANKID": "2",
                "PMI_SIZE": "8",
            },
            (2, 0, 8),
        ),
    ],
)
def test_what_launchers_say(
    monkeypatch: pytest.MonkeyPatch,
    said: Mapping[str, str],
    expected: tuple[int | None, int, int],
) -> None:
    for name in os.environ:
        monkeypatch.delenv(name)
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    assert launched_ranks() == expected
