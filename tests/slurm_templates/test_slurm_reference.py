"""The reference of job scripts against the renderer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from commtune.slurm_templates.quoting import FILTERS
from commtune.slurm_templates.rendering import Job, render_block

_ROOT = Path(__file__).parents[2]
PAGE = (_ROOT / "docs" / "slurm-templates.md").read_text(encoding="utf-8")
TEMPLATES = _ROOT / "commtune" / "slurm_templates" / "templates"


def test_the_python_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    shown = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert shown
    exec(compile(shown[1], "docs/slurm-templates.md", "exec"), {})
    assert "\nexport MPICH_OFI_NIC_POLICY='GPU'\n" in capsys.readouterr().out


def test_every_filter_is_in_the_reference() -> None:
    assert not [name for name in FILTERS if f"| `{name}` |" not in PAGE]


def test_every_block_is_in_the_reference() -> None:
    blocks = re.findall(r"{% block (\w+) %}", (TEMPLATES / "base.sh.j2").read_text())
    assert not [name for name in blocks if f"`{name}`" not in PAGE]


@pytest.mark.parametrize(
    ("number", "line"),
    [(0, "module purge\nmodule load 'my mpi/4.1'\n"), (1, "#SBATCH --licenses=scratch\n")],
)
def test_templates_in_the_reference_can_be_used(tmp_path: Path, number: int, line: str) -> None:
    shown = re.findall(r"```jinja\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "base.sh.j2").write_text(shown[number], encoding="utf-8")
    script = render_block(Job("example", 1, 1, 60, "out"), (), "block", tmp_path)
    assert line in script
    assert "#SBATCH --job-name=example\n" in script
