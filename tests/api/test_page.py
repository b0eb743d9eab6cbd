"""The page on the Python API: its example runs, and its table has every name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import CACHE, ROOT
from components import require_component
from mpi_fixture import session_mpi

import commtune as ct
from commtune.kernels.build import build_benchmark

PAGE = (ROOT / "docs" / "python-api.md").read_text()


def test_every_name_is_on_the_page() -> None:
    table = PAGE[PAGE.index("## Names") :]
    assert set(re.findall(r"`(\w+)`", table)) >= set(ct.__all__) - {"__version__"}


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mpi = session_mpi()
    require_component("an MPI (make .mpi/mpich)", mpi is not None)
    assert mpi is not None
    build_benchmark(mpi, CACHE / "commtune")
    monkeypatch.setenv("XDG_CACHE_HOME", str(CACHE))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("COMMTUNE_MPI_PATH", str(ROOT / ".mpi"))
    monkeypatch.chdir(tmp_path)
    (example, *_) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    quick = example.replace('"10s"', '"3s"').replace('"2s"', '"1s"').replace('"5s"', '"2s"')
    names: dict[str, object] = {}
    exec(quick, names)  # the page's own words
    result = names["result"]
    assert isinstance(result, ct.Result)
    assert result.campaign == "notebook"
    with ct.open_store("results.db") as store:
        assert [one.name for one in store.campaigns()] == ["notebook"]
