"""The page of each system that the documentation makes from its description."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from commtune.campaign.loading import load_campaign
from commtune.systems.findings import all_findings
from commtune.systems.loading import list_systems, load_system
from commtune.systems.reference_settings import all_reference_settings

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pages() -> Iterator[ModuleType]:
    """The hook that MkDocs runs, with its folder on the path as there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        spec = importlib.util.spec_from_file_location("pages", ROOT / "docs" / "system_pages.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
        sys.modules.pop("catalogue_pages", None)


def tables(page: str) -> list[list[str]]:
    """The rows of each table."""
    text = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    return [table.splitlines() for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)]


@pytest.mark.parametrize("name", list_systems())
def test_the_page_of_a_system(name: str, pages: ModuleType) -> None:
    system = load_system(name)
    page: str = pages.page(system)
    assert page.startswith(f"# {name}\n")
    for table in tables(page):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table}) == 1, table[0]
        assert len(table) > 2
    for set_name, one in all_reference_settings().items():
        assert (f"| {set_name} |" in page) == (name in one.entry.systems)
    for found in all_findings():
        if name in found.finding.systems:
            assert pages.plain(found.finding.says) in page
    for key, what in system.sources.items():
        assert f"- `{key}`: {pages.plain(what)}" in page
    for link in re.findall(r"\]\(\.\./([a-z0-9/-]+\.md)\)", page):
        made = link.startswith("catalogue/")
        assert made or (ROOT / "docs" / link).exists(), link
    assert f"systems/{name}.md" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_a_page_says_how_jobs_are_run(pages: ModuleType) -> None:
    lumi, aurora, summit = (pages.page(load_system(n)) for n in ("lumi", "aurora", "summit"))
    assert "space: cray-mpich-amd\nsystem: lumi\nslurm: {account: YOURS}\n" in lumi
    assert "partition standard-g | to 1024 nodes, to 48 h" in lumi
    assert "Jobs are run by PBS" in aurora and "system: aurora" not in aurora
    assert "**Out of service since 2024-11-15.**" in summit


@pytest.mark.parametrize("name", list_systems())
def test_a_systems_campaign_is_one(name: str, pages: ModuleType, tmp_path: Path) -> None:
    found = re.search(r"```yaml\n(campaign: .*?)```", pages.page(load_system(name)), re.DOTALL)
    assert (found is None) == (load_system(name).scheduler is not None)
    if found is None:
        return
    file = tmp_path / "campaign.yaml"
    file.write_text(found[1], encoding="utf-8")
    spec = load_campaign(file)
    gpus, cores = load_system(name).gpus, load_system(name).node.cores
    ranks_per_node = gpus.count if gpus else cores
    assert spec.plan.workload.ranks == ranks_per_node * spec.plan.workload.nodes
    on_gpus = "xccl" if spec.plan.space.library in ("nccl", "rccl") else "mpi-device"
    assert spec.plan.workload.backend == (on_gpus if gpus else "mpi-host")
