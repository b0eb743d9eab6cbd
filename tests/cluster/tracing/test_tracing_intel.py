"""What Intel MPI makes of rules by size, in real runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tracing_runs import Bench, traced_on

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
    (tmp_path / "rules.json").write_text(rules("ALLREDUCE", 8, ranks=5, up_to=2 * KIB))
    ring, through = sums(bench, _RING, {_FILE: str(tmp_path / "rules.json")})
    assert through == ring


def test_algorithm_0_is_basic_logic_in_the_place_of_the_library_s_table(
    bench: Bench, tmp_path: Path
) -> None:
    """With 4 ranks the table has another algorithm at 1 KiB; what is not in the file keeps it.

    Each kind of processor has a table of its own: that of Skylake is asked for.
    """
    table = {"I_MPI_PLATFORM": "skx"}
    (tmp_path / "0.json").write_text(rules("ALLREDUCE", 0))
    (tmp_path / "other.json").write_text(rules("BCAST", 1))
    default, basic, through, other = (
        dict(trace.fingerprints)
        for trace in bench(
            table,
            table | {_ADJUST: "0"},
            table | {_FILE: str(tmp_path / "0.json")},
            table | {_FILE: str(tmp_path / "other.json")},
            ranks=4,
            sizes=SIZES,
        )
    )
    assert through == basic
    assert [size for size in SIZES if default[size] != basic[size]] == [1 * KIB]
    assert other == default


@pytest.mark.parametrize(("ranks", "in_use"), [(2, False), (3, True), (4, False)])
def test_a_rule_is_for_its_ranks_and_sizes(
    ranks: int, in_use: bool, bench: Bench, tmp_path: Path
) -> None:
    """Numbers of ranks and sizes are upper bounds, and -1 is none."""
    left: dict[str, object] = {"comm_id=-1": {"msg_size=-1": {"ALLREDUCE=0": {}}}}
    ruled: dict[str, object] = {
        f"msg_size={1 * KIB}": {"ALLREDUCE=0": {}},
        f"msg_size={2 * KIB}": {"ALLREDUCE=8": {}},
        "msg_size=-1": {"ALLREDUCE=0": {}},
    }
    by_ranks = {
        f"comm_size={ranks - 1}": left,
        f"comm_size={ranks}": {"comm_id=-1": ruled},
        "comm_size=-1": left,
    }
    by_node = {f"ppn={ranks}": by_ranks, "ppn=-1": {"comm_size=-1": left}}
    text = "// A comment.\n" + json.dumps({"coll=Allreduce": by_node})
    (tmp_path / "rules.json").write_text(text)
    basic, ring, through = sums(
        bench, {_ADJUST: "0"}, _RING, {_FILE: str(tmp_path / "rules.json")}
    )
    assert all(basic[size] != ring[size] for size in SIZES)
    assert through == (basic | {2 * KIB: ring[2 * KIB]} if in_use else basic)


def test_an_algorithm_for_the_process_comes_before_the_file(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "0.json").write_text(rules("ALLREDUCE", 0))
    ring, both = sums(bench, _RING, {**_RING, _FILE: str(tmp_path / "0.json")})
    assert both == ring


@pytest.mark.parametrize("text", ["", "{", None], ids=["empty", "cut-off", "missing"])
def test_a_broken_file_is_ignored_silently(text: str | None, bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "rules.json"
    if text is not None:
        file.write_text(text)
    default, through = sums(bench, _WITHOUT, {_FILE: str(file)})
    assert through == default


def rules(name: str, algorithm: int, ranks: int = -1, up_to: int = -1) -> str:
    """One algorithm of a collective, in Intel's tree."""
    by_size: dict[str, object] = {f"msg_size={up_to}": {f"{name}={algorithm}": {}}}
    by_ranks = {f"comm_size={ranks}": {"comm_id=-1": by_size}}
    return json.dumps({f"coll={name.capitalize()}": {"ppn=-1": by_ranks}})
