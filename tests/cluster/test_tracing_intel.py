"""What Intel MPI makes of rules by size, in real runs."""

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
_ALL_ABOVE = 2**31 - 1
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


@pytest.mark.parametrize(("ranks", "in_use"), [(2, False), (3, True), (4, False)])
def test_a_file_with_0_leaves_other_ranks_and_sizes_to_the_library(
    ranks: int, in_use: bool, bench: Bench, tmp_path: Path
) -> None:
    """Numbers of ranks and sizes are upper bounds; algorithm 0 is the library's own choice."""
    left: dict[str, object] = {f"msg_size={_ALL_ABOVE}": {"ALLREDUCE=0": {}}}
    ruled = {
        f"msg_size={1 * KIB}": {"ALLREDUCE=0": {}},
        f"msg_size={2 * KIB}": {"ALLREDUCE=8": {}},
        **left,
    }
    by_ranks = {
        f"comm_size={ranks - 1}": {"comm_id=-1": left},
        f"comm_size={ranks}": {"comm_id=-1": ruled},
        f"comm_size={_ALL_ABOVE}": {"comm_id=-1": left},
    }
    (tmp_path / "rules.json").write_text(json.dumps({"coll=Allreduce": {"ppn=-1": by_ranks}}))
    default, ring, through = sums(bench, _WITHOUT, _RING, {_FILE: str(tmp_path / "rules.json")})
    assert all(default[size] != ring[size] for size in SIZES)
    assert through == (default | {2 * KIB: ring[2 * KIB]} if in_use else default)


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
