"""The page on the Python API: its example runs, and its table has every name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import ROOT

import commtune as ct

PAGE = (ROOT / "docs" / "python-api.md").read_text()


EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_example_of_a_replay_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    for folder in ("examples", "benchmarks"):
        Path(folder).symlink_to(ROOT / folder)
    names: dict[str, object] = {}
    exec(EXAMPLES[1], names)  # the page's own words
    result = names["result"]
    assert isinstance(result, ct.Result)
    assert "faster" in {profile.verdict for profile in result.profiles}


def test_a_missing_file_is_one_error() -> None:
    with pytest.raises(ct.CommtuneError, match=r"missing.yaml: can't be read") as refused:
        ct.load_campaign("missing.yaml")
    assert refused.value.__suppress_context__


def test_every_name_is_on_the_page() -> None:
    table = PAGE[PAGE.index("## Names") :]
    assert set(re.findall(r"`(\w+)`", table)) >= set(ct.__all__) - {"__version__"}


@pytest.mark.slow
@pytest.mark.usefixtures("executable", "shared_cache")
def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    example, _, second = EXAMPLES
    quick = example.replace('"10s"', '"500ms"').replace('"2s"', '"100ms"')
    quick = quick.replace('"5s"', '"500ms"')
    names: dict[str, object] = {}
    exec(quick, names)  # the page's own words
    exec(second.replace('"2min"', '"500ms"').replace('"1min"', '"500ms"'), {})
    result = names["result"]
    assert isinstance(result, ct.Result)
    assert result.campaign == "notebook"
    assert "<svg" in Path("notebook.svg").read_text()
    with ct.open_store("results.db") as store:
        assert [one.name for one in store.campaigns()] == ["notebook"]
        runs = store.results().to_frame()
        assert runs["run"].nunique() == sum(one.runs for one in store.campaigns())
        assert set(runs["bytes"]) >= {8, 65536}
