"""Readers of other programs' output, held against what these programs really printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, ValidationError

from commtune.kernels.adapters import formats
from commtune.kernels.adapters.formats import (
    OUTPUTS,
    Reading,
    _read_imb,
    _read_json_lines,
    _read_osu,
    _read_table,
    read_json,
)

_RECORDED = Path(__file__).parent / "recorded"
_SCHEMA = json.loads((Path(formats.__file__).parent / "line.schema.json").read_text())


def _recorded(name: str) -> str:
    return (_RECORDED / name).read_text()


def _times(reading: Reading) -> dict[int, float]:
    assert reading.problems == ()
    return {m.bytes: pytest.approx(m.median_s * 1e6) for m in reading.measurements}  # type: ignore[misc]  # approx compares as the number


def test_nccl_tests_out_of_place_and_in_place() -> None:
    text = _recorded("nccl-tests-2.17.txt")
    reading = _read_table(text)
    assert _times(reading) == {8: 17.93, 65536: 61.03, 1048576: 164.3, 134217728: 1916.4}
    assert _times(_read_table(text, in_place=True))[8] == 17.72
    assert (reading.ended, reading.is_wrong) == (True, False)
    large, small = reading.measurements[-1], reading.measurements[0]
    assert large.algbw == pytest.approx(70.04e9, rel=1e-3)
    assert large.busbw == pytest.approx(122.57e9, rel=1e-3)
    # Printed as 0.00; the factor is that of the large sizes.
    assert small.busbw == pytest.approx(8 / 17.93e-6 * 7 / 4, rel=1e-3)
    assert small.samples_s == ()
    assert small.canary_s is None


def test_nccl_tests_with_words_of_the_launcher_between_the_rows() -> None:
    reading = _read_table(_recorded("nccl-tests-2.18-alltoall.txt"))
    assert _times(reading) == {1024: 38.30, 1048576: 80.37, 8589934592: 234524}
    assert [m.wrong for m in reading.measurements] == [0, 0, 0]


def test_nccl_tests_before_there_was_a_number_of_wrong_elements() -> None:
    reading = _read_table(_recorded("nccl-tests-2.0-error.txt"))
    assert _times(reading) == {8: 2193.5, 16: 84.54}
    assert [m.wrong for m in reading.measurements] == [0, 0]
    assert reading.ended is False  # the excerpt is cut off before its last lines


def test_rccl_tests() -> None:
    reading = _read_table(_recorded("rccl-tests.txt"))
    assert _times(reading) == {8: 58.63, 8589934592: 41644}
    assert reading.ended


def test_nccl_tests_with_single_iterations_and_wrong_elements() -> None:
    reading = _read_table(_recorded("nccl-tests-2.19-per-iteration-made.txt"))
    assert _times(reading) == {1024: 12.0, 1048576: 40.0}
    first, second = reading.measurements
    assert (first.min_s, first.max_s) == pytest.approx((11e-6, 15e-6))
    assert (first.wrong, second.wrong) == (0, 4)
    assert reading.is_wrong
    assert _times(_read_table(_recorded("nccl-tests-2.19-per-iteration-made.txt"), in_place=True))[
        1048576
    ] == pytest.approx(39.8)


def test_json_of_nccl_tests() -> None:
    reading = read_json(_recorded("nccl-tests-2.19-made.json"))
    first, second = reading.measurements
    assert (first.bytes, first.samples_s) == (1024, ())
    assert first.median_s == pytest.approx(12e-6)
    assert second.samples_s == pytest.approx((39e-6, 40e-6, 40e-6, 39.5e-6, 45e-6))
    assert second.median_s == pytest.approx(40e-6)
    assert second.busbw / second.algbw == pytest.approx(1.75)
    assert (reading.ended, reading.is_wrong) == (True, False)
    assert read_json('{"results": 1}').problems
    assert read_json("{").problems


def test_osu_latency_and_collectives() -> None:
    assert _times(_read_osu(_recorded("osu-latency-5.0.txt"))) == {
        1: 1.85, 1024: 2.18, 65536: 18.49, 4194304: 497.37,
    }  # fmt: skip
    assert _times(_read_osu(_recorded("osu-allreduce-7.5.txt"))) == {
        4: 10.05, 1024: 23.24, 1048576: 1064.92,
    }  # fmt: skip
    full = _read_osu(_recorded("osu-reduce-full-6.2.txt")).measurements[0]
    assert (full.median_s, full.min_s, full.max_s) == pytest.approx(
        (132.14e-6, 31.23e-6, 831.04e-6)
    )


def test_osu_bandwidths_become_times() -> None:
    found = _read_osu(_recorded("osu-bw-5.6.2.txt"))
    assert found.measurements[1].median_s == pytest.approx(1024 / 1262.07e6)
    assert found.measurements[1].algbw == pytest.approx(1262.07e6)
    rates = _read_osu(_recorded("osu-mbw-mr-5.7.1.txt"))
    assert rates.measurements[1].algbw == pytest.approx(51844.46e6)
    both = (
        "# OSU MPI Bi-Directional Bandwidth Test v5.6.2\n# Size      Bandwidth (MB/s)\n8  16.0\n"
    )
    (measurement,) = _read_osu(both).measurements
    assert measurement.median_s == pytest.approx(1e-6)  # each direction has half of it


def test_osu_says_that_a_size_failed() -> None:
    text = (
        "# OSU MPI Allreduce Latency Test v7.4\n# Size       Avg Latency(us)        Validation\n"
        "4                       1.00              Pass\n"
        "8                       1.00              Fail\n"
    )
    assert [m.wrong for m in _read_osu(text).measurements] == [0, 1]


def test_imb() -> None:
    text = _recorded("imb-2021.txt")
    reading = _read_imb(text)
    assert sorted(m.bytes for m in reading.measurements) == [8, 16, 32, 64]
    row = next(line.split() for line in text.splitlines() if line.split()[:1] == ["16"])
    found = reading.measurements[1]
    assert found.median_s == pytest.approx(float(row[3]) * 1e-6)
    assert found.min_s == pytest.approx(float(row[2]) * 1e-6)
    assert reading.ended
    assert _read_imb(text[: text.index("# All processes")]).ended is False
    assert len(_read_imb(_recorded("imb-2021-pingpong.txt")).measurements) == 4


@pytest.mark.parametrize("output", sorted(OUTPUTS))
def test_labels_of_launchers_are_no_part_of_a_line(output: str) -> None:
    names = {
        "osu": "osu-allreduce-7.5.txt", "imb": "imb-2021.txt", "nccl-tests": "rccl-tests.txt",
        "nccl-tests-in-place": "rccl-tests.txt",
    }  # fmt: skip
    text = _recorded(names[output]) if output in names else '{"bytes": 8, "time_s": 1e-6}\n'
    labelled = "".join(f"[1,0]<stdout>:{line}\n" for line in text.splitlines())
    assert OUTPUTS[output](labelled).measurements == OUTPUTS[output](text).measurements != ()


@pytest.mark.parametrize("output", sorted(OUTPUTS))
@pytest.mark.parametrize(
    "text", ["", "Hello\n", "# Size\n", "#bytes\n1\n", "size count time\n8 2"]
)
def test_output_without_results_is_a_problem(output: str, text: str) -> None:
    reading = OUTPUTS[output](text)
    assert reading.problems
    assert not reading.measurements


@pytest.mark.parametrize("output", sorted(OUTPUTS))
@given(text=st.text(alphabet='# \n0189.e-{}":,bytesSizetcoun_NaN/[]()', max_size=200))
def test_no_text_makes_a_reader_fail(output: str, text: str) -> None:
    OUTPUTS[output](text)


@pytest.mark.parametrize("name", sorted(p.name for p in _RECORDED.glob("*.txt")))
def test_output_cut_anywhere_makes_no_reader_fail(name: str) -> None:
    text = _recorded(name)
    for end in range(0, len(text), 7):
        for read in OUTPUTS.values():
            read(text[:end])


def _nccl_json(size: str = "8", **block: str) -> str:
    times = {"time": "1.5", "alg_bw": "1", "bus_bw": "1", **block}
    inside = ",".join(f'"{name}":{value}' for name, value in times.items())
    return f'{{"results":[{{"size":{size},"out_of_place":{{{inside}}}}}],"end_time":"x"}}'


def test_sound_json_of_nccl_tests() -> None:
    assert _times(read_json(_nccl_json())) == {8: 1.5}


@pytest.mark.parametrize(
    "text",
    [
        _nccl_json(size="1e400"),
        _nccl_json(size="9" * 400),
        _nccl_json(size="-8"),
        _nccl_json(nwrong="1e400"),
        _nccl_json(time="9" * 400),
        _nccl_json(alg_bw="1e-320"),
        _nccl_json(bus_bw="-1"),
        "[" * 100_000,
    ],
    ids=lambda text: text[:60],
)
def test_numbers_that_nothing_has_are_a_problem(text: str) -> None:
    reading = read_json(text)
    assert reading.measurements == ()
    assert len(reading.problems) == 1 and "the JSON of nccl-tests" in reading.problems[0]


def test_a_table_without_a_column_of_sizes_is_a_problem() -> None:
    text = _recorded("osu-allreduce-7.5.txt").replace("# Size ", "# Sizes ")
    reading = _read_osu(text)
    assert reading.measurements == ()
    assert any("not understood" in problem for problem in reading.problems)


def test_two_tables_are_a_problem() -> None:
    text = _recorded("osu-allreduce-7.5.txt")
    reading = _read_osu(text + text)
    assert reading.problems == ("4 bytes are printed 2 times; run one benchmark, once",)
    assert len(reading.measurements) == 3


_LINES: list[tuple[dict[str, Any], bool]] = [
    ({"bytes": 8, "time_s": 1e-6}, True),
    ({"bytes": 8, "times_s": [1e-6, 3, 2e-6], "wrong": 1, "bus_factor": 2}, True),
    ({"bytes": 8}, False),
    ({"bytes": 8, "time_s": 1e-6, "times_s": [1e-6]}, False),
    ({"bytes": 0, "time_s": 1e-6}, False),
    ({"bytes": 8, "time_s": 0}, False),
    ({"bytes": 8, "time_s": -1}, False),
    ({"bytes": 8, "time_s": "1"}, False),
    ({"bytes": 8, "time_s": True}, False),
    ({"bytes": 8, "times_s": []}, False),
    ({"bytes": 8, "times_s": [1e-6, 0]}, False),
    ({"bytes": 8, "time_s": 1e-6, "wrong": -1}, False),
    ({"bytes": 8, "time_s": 1e-6, "time_us": 1}, False),
    ({"bytes": 1.5, "time_s": 1e-6}, False),
    ({"bytes": 8, "time_s": 1e-30}, False),
    ({"bytes": 8, "times_s": [1e-6, 1e-320]}, False),
]


@pytest.mark.parametrize(("line", "is_sound"), _LINES)
def test_lines_and_their_schema_agree(line: dict[str, Any], is_sound: bool) -> None:
    reading = _read_json_lines(f"epoch 1\n{json.dumps(line)}\n")
    assert bool(reading.measurements) is is_sound
    assert bool(reading.problems) is not is_sound
    validator = Draft202012Validator(_SCHEMA)
    if is_sound:
        validator.validate(line)
    else:
        with pytest.raises(ValidationError):
            validator.validate(line)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"bytes": 8, "time_s": 1e-320}', "is no time that a clock measures"),
        ('{"bytes": 1024, "time_s": 5e-10}', "is no time that a clock measures"),
        ('{"bytes": 1000000000, "time_s": 5e-6}', "are faster than any memory"),
    ],
)
def test_times_that_are_none_are_problems_and_nothing_is_measured(line: str, problem: str) -> None:
    reading = _read_json_lines(line)
    assert reading.measurements == ()
    assert problem in reading.problems[0]


@pytest.mark.parametrize("time_us", ["1e-24", "1e-320"])
def test_a_table_with_times_that_are_none_is_a_problem(time_us: str) -> None:
    table = "# OSU MPI Allreduce Latency Test\n# Size       Avg Latency(us)\n8             {}\n"
    reading = formats.OUTPUTS["osu"](table.format(time_us))
    assert (reading.measurements, len(reading.problems)) == ((), 1)


_NCCL = "# size count type redop root time algbw busbw #wrong\n"
#: By reader: a head, and lines of a size without a time, of one with wrong results, and of one.
_THREE_SIZES = {
    "json-line": (
        "", '{"bytes": 3, "time_s": "soon"}\n', '{"bytes": 4, "time_s": 1e-6, "wrong": 1}\n',
        '{"bytes": 8, "time_s": 1e-6}\n',
    ),
    "osu": (
        "# OSU MPI Allreduce Latency Test\n# Size  Avg Latency(us)  Validation\n",
        "3 soon Pass\n", "4 1.0 Fail\n", "8 1.0 Pass\n",
    ),
    "imb": ("#bytes t[usec] defects\n", "3 soon 0\n", "4 1.0 7\n", "8 1.0 0\n"),
    "nccl-tests": (
        _NCCL, "3 1 float sum -1 soon 0 0 0\n", "4 1 float sum -1 1.0 0 0 1\n",
        "8 2 float sum -1 1.0 0 0 0\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("output", sorted(_THREE_SIZES))
def test_sizes_that_nobody_asked_for_are_passed_over(output: str) -> None:
    read, (head, other, wrong, asked) = OUTPUTS[output], _THREE_SIZES[output]
    reading = read(head + other + wrong + asked, {8})
    assert reading.problems == ()
    assert [(m.bytes, m.wrong) for m in reading.measurements] == [(4, 1), (8, 0)]
    passed = read(head + other, {8})
    assert (passed.measurements, passed.problems) == ((), ())
    assert read(head + other).problems


def test_sizes_in_json_of_nccl_tests_that_nobody_asked_for_are_passed_over() -> None:
    assert read_json(_nccl_json(), {16}).measurements == ()
    assert [m.wrong for m in read_json(_nccl_json(nwrong="1"), {16}).measurements] == [1]


def test_lines_of_json() -> None:
    text = (
        'step 1\n{"loss": 2.5}\n{"bytes": 8, "times_s": [4e-6, 1e-6, 2e-6]}\n'
        '{"bytes": 64, "time_s": 5e-6, "wrong": 2}\n{"bytes": broken\n'
    )
    reading = _read_json_lines(text)
    assert reading.problems == ()
    first, second = reading.measurements
    assert (first.median_s, first.min_s, first.max_s) == (2e-6, 1e-6, 4e-6)
    assert first.samples_s == (4e-6, 1e-6, 2e-6)
    # Between two of them it would have digits that were not printed.
    assert first.p95_s == 4e-6
    assert (second.median_s, second.wrong, second.samples_s) == (5e-6, 2, ())
