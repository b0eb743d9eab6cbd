"""The reference of system descriptions against the schema and the renderer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from commtune.errors import DocumentError
from commtune.slurm_templates.rendering import _FILTERS
from commtune.spaces import parse_document
from commtune.systems import build_system, schema

PAGE = (Path(__file__).parents[2] / "docs" / "systems.md").read_text(encoding="utf-8")
MODELS = [m for m in vars(schema).values() if isinstance(m, type) and issubclass(m, schema.Model)]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_key_is_in_the_reference(model: type[BaseModel]) -> None:
    assert not [key for key in model.model_fields if f"`{key}`" not in PAGE]


def example() -> str:
    found = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert found
    return found[1]


def test_the_example_is_a_description() -> None:
    system = build_system(parse_document(example()))
    assert system.nics.count * system.nics.bandwidth == 50 * 10**9


def test_the_error_in_the_reference_is_what_is_said() -> None:
    shown = re.search(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert shown
    wrong = example().replace("count: 2, bandwidth: 200 Gb/s", "count: 2, bandwidth: 100Gbps")
    with pytest.raises(DocumentError) as caught:
        build_system(parse_document(wrong, Path("my-system.yaml")))
    said = f"{caught.value.message}\n  {caught.value.hint}\n"
    assert said == shown[1]


def test_the_python_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    shown = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert shown
    exec(compile(shown[1], "docs/systems.md", "exec"), {})
    assert "\nexport MPICH_OFI_NIC_POLICY='GPU'\n" in capsys.readouterr().out


def test_every_filter_is_in_the_reference() -> None:
    assert not [name for name in _FILTERS if f"| `{name}` |" not in PAGE]


def test_the_template_in_the_reference_can_be_used(tmp_path: Path) -> None:
    from commtune.slurm_templates import Job, render_block

    shown = re.search(r"```jinja\n(.*?)```", PAGE, re.DOTALL)
    assert shown
    (tmp_path / "base.sh.j2").write_text(shown[1], encoding="utf-8")
    script = render_block(Job("example", 1, 1, 60, "out"), (), "block", tmp_path)
    assert "module purge\nmodule load 'my mpi/4.1'\n" in script
