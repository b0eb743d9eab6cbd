"""What Intel MPI makes of rules by size, in real runs: why commtune writes none for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tracing_runs import Bench, traced_on

# Three ranks that spin on fewer cores get nowhere beside other tests.
pytestmark = pytest.mark.alone

KIB = 1024
_ADJUST, _FILE = "I_MPI_ADJUST_ALLREDUCE", "I_MPI_TUNING"
SIZES = (1 * KIB, 2 * KIB, 16 * KIB)
_WITHOUT: dict[str, str] = {}
_RING = {_ADJUST: "8"}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Traces on the Intel MPI wheel."""
    return traced_on("impi", tmp_path)


def sums(bench: Bench, *configurations: dict[str, str]) -> list[dict[int, str]]:
    """The order of sums by size (bytes), of each configuration."""
    return [dict(trace.fingerprints) for trace in bench(*configurations, sizes=SIZES)]


def test_classes_of_a_variable_are_not_kept(bench: Bench) -> None:
    default, ring, by_size, for_others = sums(
        bench, _WITHOUT, _RING, {_ADJUST: "8:2048-4096"}, {_ADJUST: "8:2048-4096@5-9"}
    )
    assert all(default[size] != ring[size] for size in SIZES)
    assert by_size == ring
    assert for_others == ring


def test_a_file_is_used_by_other_numbers_of_ranks_and_above_its_sizes(
    bench: Bench, tmp_path: Path
) -> None:
    (tmp_path / "rules.json").write_text(rules(ranks=5, up_to=2 * KIB))
    ring, through = sums(bench, _RING, {_FILE: str(tmp_path / "rules.json")})
    assert through == ring


@pytest.mark.parametrize("text", ["", "{", None], ids=["empty", "cut-off", "missing"])
def test_a_broken_file_is_ignored_silently(text: str | None, bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "rules.json"
    if text is not None:
        file.write_text(text)
    default, through = sums(bench, _WITHOUT, {_FILE: str(file)})
    assert through == default


def rules(ranks: int, up_to: int) -> str:
    """Algorithm 8, a ring, in Intel's tree."""
    by_size: dict[str, object] = {f"msg_size={up_to}": {"ALLREDUCE=8": {}}}
    return json.dumps(
        {"coll=Allreduce": {"ppn=-1": {f"comm_size={ranks}": {"comm_id=-1": by_size}}}}
    )
