"""A campaign that was replayed through the Python API, once for all tests."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from recorded_grids import GRIDS

import commtune as ct

RECORDING = GRIDS / "mpich-allreduce.jsonl.gz"
BUDGET = "budget: {search: 8s, ablation: 2s, confirmation: 6s}\n"


@pytest.fixture(scope="session")
def recording() -> Path:
    """A recorded grid."""
    return RECORDING


@pytest.fixture(scope="session")
def recorded_campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the campaign that was recorded, with a small budget."""
    head = gzip.decompress(RECORDING.read_bytes()).split(b"\n", 1)[0]
    file = tmp_path_factory.mktemp("api") / "campaign.yaml"
    file.write_text(json.loads(head)["campaign"] + BUDGET)
    return file


@pytest.fixture(scope="session")
def lines() -> list[str]:
    """What the replayed campaign told."""
    return []


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ct.Store]:
    """A new database."""
    with ct.open_store(tmp_path_factory.mktemp("store") / "results.db") as store:
        yield store


@pytest.fixture(scope="session")
def result(store: ct.Store, recorded_campaign: Path, lines: list[str]) -> ct.Result:
    """What the replayed campaign came to."""
    campaign = ct.load_campaign(recorded_campaign)
    return ct.tune(campaign, store=store, replay=RECORDING, on_progress=lines.append)
