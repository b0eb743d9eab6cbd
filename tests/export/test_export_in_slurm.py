"""A task prolog that was exported, run by a real Slurm before each task."""

from __future__ import annotations

from export_documents import with_values
from slurm_cluster import Cluster

from commtune.export import render_profile


def test_every_task_has_what_the_prolog_exports(slurm: Cluster) -> None:
    values = {"COMMTUNE_A": "2097152", "COMMTUNE_B": "^cma,sm:x/y-z_1.5@%+", "COMMTUNE_C": "a=b"}
    file = slurm.folder / "prolog"
    file.write_text(render_profile("task-prolog", with_values(values)))
    file.chmod(0o755)
    said = slurm.call(
        "srun", "-N", "2", f"--task-prolog={file}", "env", environment={"COMMTUNE_A": "mine"}
    )
    lines = [line for line in said.splitlines() if line.startswith("COMMTUNE_")]
    assert sorted(lines) == sorted(2 * [f"{name}={value}" for name, value in values.items()])
