"""No run, however it is made, has another value of what was set to keep hardware safe."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import CommandLine
from waiting import PATIENCE_S

from commtune import process
from commtune.model import PROTECTED_NAMES
from commtune.slurm_templates.quoting import ShellCode
from commtune.slurm_templates.rendering import Job, Step, render_block


@pytest.mark.parametrize(
    "words",
    [
        ("bench", "-x", "NCCL_NVLS_ENABLE=2"),
        ("trace", "-x", "NCCL_NVLS_ENABLE=2"),
    ],
)
def test_a_run_by_hand_is_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    shell = CommandLine(tmp_path, {"NCCL_NVLS_ENABLE": "0"})
    said = shell(*words, "--mpi", "wheel:mpich", "--sizes", "8")
    assert said.code == 2, said.err
    assert "NCCL_NVLS_ENABLE=0 is set in this environment to keep hardware safe" in said.err


@pytest.mark.parametrize("name", [*PROTECTED_NAMES, "NCCL_NTHREADS"])
def test_a_step_of_a_job_keeps_what_its_node_set(tmp_path: Path, name: str) -> None:
    step = Step(
        ("/usr/bin/printenv", name), str(tmp_path / "out"), str(tmp_path / "exit"),
        {name: "2"}, time_limit_s=20,
    )  # fmt: skip
    of_node = "0" if name in PROTECTED_NAMES else "2"
    for number, (before, expected) in enumerate((("", "2"), (f"export {name}=0", of_node))):
        job = Job("x", 1, 1, 60, "job.out", before=ShellCode(before))
        place = tmp_path / f"block-{number}"
        place.mkdir()
        script = tmp_path / "job.sh"
        script.write_text(render_block(job, (step,), place))
        done = process.run_process(
            ["/bin/bash", script], environment={}, timeout_s=PATIENCE_S, cwd=tmp_path
        )
        assert (tmp_path / "out").read_text().strip() == expected, done.output
