"""The reader of records against files in every state of decay."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench_runs import RunBench, write_records
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commtune.kernels.records import read_records
from commtune.model import DEFAULT, Operation, PatternParameters, RunRequest, Timing, Workload

_REQUEST = RunRequest("r-1", DEFAULT, Workload(Operation.ALLREDUCE, (8, 1024)), Timing())
Document = list[dict[str, Any]]


@pytest.fixture(scope="module")
def sound(module_bench: RunBench) -> Document:
    """The records of a real run that answers ``_REQUEST``."""
    run = module_bench("--op=allreduce", "--sizes=8,1024", "--run-id=r-1")
    return run.valid_records()


def test_a_sound_file_has_no_problems(sound: Document, tmp_path: Path) -> None:
    records = read_records(write_records(tmp_path / "r", sound), _REQUEST)
    assert records.problems == ()
    assert [m.bytes for m in records.measurements] == [8, 1024]
    assert records.header == sound[0]
    assert records.footer == sound[-1]


def test_what_stands_beside_the_times_is_read(sound: Document, tmp_path: Path) -> None:
    records = read_records(write_records(tmp_path / "r", sound), _REQUEST)
    for written, m in zip(sound[1:3], records.measurements, strict=True):
        told = (m.first_call_s, m.rank_skew, m.bytes_total)
        assert told == (written["first_call_s"], written["rank_skew"], written["bytes_total"])
        assert m.first_call_s is not None and m.first_call_s > 0


def test_a_missing_file_is_empty_and_a_folder_is_a_problem(tmp_path: Path) -> None:
    assert read_records(tmp_path / "none").problems == ()
    assert "can't be read" in read_records(tmp_path).problems[0]


def _set(index: int, *path: Any, value: Any) -> Callable[[Document], None]:
    def change(records: Document) -> None:
        target = records[index]
        for name in path[:-1]:
            target = target[name]
        target[path[-1]] = value

    return change


_NAN = float("nan")
_DAMAGES: list[tuple[Callable[[Document], Any], str]] = [
    (_set(0, "contract", value=2), "contract version 2; this commtune reads version 1"),
    (_set(0, "aggressors", value={}), "aggressors sent beside it, which were not requested"),
    (_set(0, "contract", value="1"), "contract is not a whole number"),
    (_set(0, "run_id", value="r-2"), "run_id is 'r-2', requested was 'r-1'"),
    (_set(0, "operation", value="broadcast"), "operation is 'broadcast'"),
    (_set(0, "ranks", value=4), "ranks is '4', requested was 2"),
    (_set(0, "dtype", value="float64"), "dtype is 'float64'"),
    (_set(0, "benchmark", value=7), "benchmark is not an object"),
    (_set(0, "libraries", value=[None]), "libraries is not a list of paths"),
    (_set(0, "rank_info", value=[{"rank": 0}]), "rank_info is not"),
    (
        _set(0, "rank_info", 0, "controls", value={"x": {"kind": "", "value": 1, "words": 7}}),
        "rank_info is not a list",
    ),
    (_set(0, "oversubscribed", value=None), "oversubscribed is not a bool"),
    (_set(1, "record", value="haeder"), "unknown kind of record: 'haeder'"),
    (_set(1, "operation", value="ring"), "a measurement of ring, which was not requested"),
    (_set(1, "bytes", value=16), "a measurement of 16 bytes, which was not requested"),
    (_set(1, "bytes", value=8.0), "bytes is not a whole number"),
    (_set(1, "bytes", value=True), "bytes is not a whole number"),
    (_set(1, "time_s", "median", value=_NAN), "NaN is not a number"),
    (_set(1, "time_s", "median", value=-1e-6), "median is not a number from 0"),
    (_set(1, "time_s", "median", value=0), "median is 0"),
    (_set(1, "time_s", "median", value=1e-30), "median: 1e-30 s is no time that a clock measures"),
    (_set(1, "time_s", "max", value=1e6), "1e+06 s are longer than the whole run"),
    (_set(1, "time_s", "median", value="fast"), "median is not a number from 0: 'fast'"),
    (_set(1, "time_s", value=[1]), "time_s is not an object"),
    (_set(1, "samples_ns", value=[1.0, None]), "samples_ns is not a list of times"),
    (_set(1, "samples_ns", value=[]), "samples_ns is not a list of times"),
    (_set(1, "samples_ns", value=[10**400]), "samples_ns is not a list of times"),
    (_set(1, "samples", value=10**6), "samples says 1000000"),
    (_set(1, "algbw_Bps", value=None), "algbw_Bps is not a number"),
    (_set(1, "canary_ns", "before", value=-5), "before is not a number"),
    (_set(1, "first_call_s", value=0), "first_call_s is 0"),
    (_set(1, "bytes_total", value=None), "bytes_total is not a whole number"),
    (_set(1, "wrong", value=-1), "wrong is not a whole number"),
    (_set(1, "batch", value=2**63), "batch is not a whole number"),
    (_set(2, "bytes", value=8), "a second measurement of 8 bytes"),
    (_set(3, "status", value="great"), "unknown status: 'great'"),
    (_set(3, "measurements", value=3), "the footer counts 3 measurements, not 2"),
    (lambda r: r.pop(0), "no header before this record"),
    (lambda r: r.insert(1, r[0]), "a second header"),
    (lambda r: r.append(r[1]), "a record after the footer"),
]


_PIECES: list[tuple[dict[str, Any], str]] = [
    ({"part": "lid"}, "unknown part: 'lid'"),
    ({"part": ""}, "unknown part: ''"),
    ({"part": ["split"]}, "unknown part"),
    ({"pair": [0]}, "pair is not two ranks: '[0]'"),
    ({"pair": [0, "1"]}, "pair is not two ranks"),
    ({"pair": None}, "pair is not two ranks"),
    ({"pair": [0, True]}, "pair is not two ranks"),
]


@pytest.mark.parametrize(("words", "problem"), _PIECES, ids=str)
def test_pieces_that_are_none_are_named(
    sound: Document, tmp_path: Path, words: dict[str, Any], problem: str
) -> None:
    records = [sound[0], {**sound[1], **words}, *sound[1:]]
    read_back = read_records(write_records(tmp_path / "r", records), _REQUEST)
    assert read_back.problems[0].startswith(f"line 2: {problem}")
    assert read_back.pieces == ()


def test_parts_and_pairs_are_never_taken_for_the_whole(sound: Document, tmp_path: Path) -> None:
    pieces: list[dict[str, Any]] = [
        {"part": "split"},
        {"part": "assemble"},
        {"pair": [0, 1]},
        {"pair": [1, 0]},
    ]
    slow = _of_time(sound[1], 9.0)
    records = [sound[0], *({**slow, **piece} for piece in pieces), *sound[1:3]]
    records.append({**sound[3], "measurements": 6})
    read_back = read_records(write_records(tmp_path / "r", records), _REQUEST)
    assert read_back.problems == ()
    assert [m.bytes for m in read_back.measurements] == [8, 1024]
    assert all(m.median_s < 9 for m in read_back.measurements)
    assert [(p.part, p.pair, p.measurement.median_s) for p in read_back.pieces] == [
        ("split", None, 9.0), ("assemble", None, 9.0), ("", (0, 1), 9.0), ("", (1, 0), 9.0)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "name"), [({"part": "inside"}, "inside"), ({"pair": [1, 0]}, "pair 1 0")]
)
def test_a_piece_is_there_once_a_size(
    sound: Document, tmp_path: Path, words: dict[str, Any], name: str
) -> None:
    piece = {**sound[1], **words}
    problems = read_records(
        write_records(tmp_path / "r", [sound[0], piece, piece]), _REQUEST
    ).problems
    assert problems == (f"line 3: a second measurement ({name}) of 8 bytes",)


def _of_time(record: dict[str, Any], median_s: float) -> dict[str, Any]:
    return {**record, "time_s": {**record["time_s"], "median": median_s}}


@pytest.mark.parametrize(("damage", "problem"), _DAMAGES, ids=[text for _, text in _DAMAGES])
def test_damage_is_named_with_its_line(
    sound: Document, tmp_path: Path, damage: Callable[[Document], Any], problem: str
) -> None:
    records = copy.deepcopy(sound)
    damage(records)
    problems = read_records(write_records(tmp_path / "r", records), _REQUEST).problems
    assert problems[0].startswith("line ")
    assert problem in problems[0]


def test_a_sound_record_survives_its_neighbours(sound: Document, tmp_path: Path) -> None:
    path = write_records(tmp_path / "r", sound)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], "{oops", lines[1], "[1]", lines[2], lines[3], ""]))
    records = read_records(path, _REQUEST)
    assert [m.bytes for m in records.measurements] == [8, 1024]
    assert records.problems == ("line 2: not JSON", "line 4: not a JSON object")


def test_cut_at_any_byte_it_keeps_what_was_whole(sound: Document, tmp_path: Path) -> None:
    path = write_records(tmp_path / "r", sound)
    content = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(content) if byte == ord("\n")]
    for length in {0, 1, *range(0, len(content), 37), *ends, *(end - 1 for end in ends)}:
        path.write_bytes(content[:length])
        records = read_records(path, _REQUEST)
        whole = sum(end <= length for end in ends)
        assert len(records.measurements) == max(0, min(2, whole - 1))
        assert (records.footer is not None) == (whole == 4)
        expected = () if length in (0, *ends) else (f"line {whole + 1} is cut short",)
        assert records.problems == expected


def test_a_file_of_nonsense_is_given_up_early(tmp_path: Path) -> None:
    path = tmp_path / "r"
    path.write_text("nonsense\n" * 100_000)
    problems = read_records(path).problems
    assert len(problems) == 11
    assert problems[-1] == "reading stopped here"


def test_deeply_nested_json_is_a_problem_not_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "r"
    path.write_text("[" * 200_000 + "\n")
    assert read_records(path).problems == ("line 1: not JSON",)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=400))
def test_no_content_raises(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "r"
    path.write_bytes(content)
    records = read_records(path, _REQUEST)
    assert records.measurements == ()
    assert bool(records.problems) == bool(content)


def test_a_pattern_of_another_shape_answers_something_else(
    module_bench: RunBench, tmp_path: Path
) -> None:
    run = module_bench(
        "--op=rail", "--sizes=8", "--run-id=r-1", "--group-size=2", "--active=2", ranks=4
    )
    records = run.valid_records()

    def problems(shape: PatternParameters) -> tuple[str, ...]:
        workload = Workload(Operation.RAIL, (8,), 4, shape=shape)
        request = RunRequest("r-1", DEFAULT, workload, Timing())
        return read_records(write_records(tmp_path / "r", records), request).problems

    assert problems(PatternParameters(2, 2)) == ()
    assert problems(PatternParameters(2, 1))[0] == "line 1: active is '2', requested was 1"
    other = problems(PatternParameters(2, 2, "bidirectional"))[0]
    assert other == "line 1: direction is 'outbound', requested was 'bidirectional'"


def test_striping_by_other_backends_answers_something_else(
    module_bench: RunBench, tmp_path: Path
) -> None:
    run = module_bench("--op=striping", "--sizes=8", "--run-id=r-1", "--assemble=mpi-host")
    records = run.valid_records()

    def problems(shape: PatternParameters) -> tuple[str, ...]:
        request = RunRequest(
            "r-1", DEFAULT, Workload(Operation.STRIPING, (8,), shape=shape), Timing()
        )
        return read_records(write_records(tmp_path / "r", records), request).problems

    assert problems(PatternParameters(assemble="mpi-host")) == ()
    other = problems(PatternParameters(assemble="mpi-staged"))[0]
    assert other == "line 1: assemble is 'mpi-host', requested was 'mpi-staged'"
