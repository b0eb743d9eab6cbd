"""Sizes, times and shares, read and written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commtune.documents.quantities import parse_bytes, parse_percent, parse_seconds
from commtune.documents.yaml_document import parse_document
from commtune.errors import InvalidValue
from commtune.formatting import format_size, list_first
from commtune.spaces.loading import build_space


@pytest.mark.parametrize(
    ("written", "size"),
    [(4096, 4096), ("4096", 4096), ("0", 0), ("8B", 8), ("8 B", 8), ("64KiB", 65536),
     ("1 MiB", 2**20), ("64 KiB + 4 B", 65540), ("1.5KiB", 1536), ("2GiB", 2**31),
     (" 4KiB ", 4096)],
)  # fmt: skip
def test_sizes(written: str | int, size: int) -> None:
    assert parse_bytes(written) == size


@pytest.mark.parametrize(
    ("written", "hint"),
    [("64K", "nearest: 64KiB"), ("64KB", "nearest: 64KiB"), ("64kib", "nearest: 64KiB"),
     ("4M", "nearest: 4MiB"), ("1GB", "nearest: 1GiB"), ("8b", "nearest: 8B"),
     ("3parsecs", "units: B, KiB, MiB, GiB"), ("many", "write it like 64KiB, 1MiB or 4096"),
     ("4KiB+", "write it like 64KiB, 1MiB or 4096"),
     ("0.3B", "write 0 or more, like 64KiB"), (-1, "write 0 or more, like 64KiB"),
     ("-1", "write it like 64KiB, 1MiB or 4096"), ("", "write it like 64KiB, 1MiB or 4096")],
)  # fmt: skip
def test_wrong_sizes(written: str | int, hint: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        parse_bytes(written)
    assert caught.value.hint == hint
    assert f"'{written}'" in caught.value.message


@given(st.integers(0, 2**50))
def test_sizes_survive_writing_and_reading(size: int) -> None:
    assert parse_bytes(format_size(size)) == size


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (8, "8 B"), (1024, "1 KiB"), (1536, "1536 B"), (2**20, "1 MiB"),
     (3 * 2**29, "1536 MiB"), (2**30, "1 GiB"), (12288, "12 KiB"), (65540, "64 KiB + 4 B")],
)  # fmt: skip
def test_sizes_for_people(size: int, text: str) -> None:
    assert format_size(size) == text


@pytest.mark.parametrize(
    ("written", "values"),
    [("plain", "0 1000 65536 3145728"), ("K", "0 1000 64K 3M"), ("k", "0 1000 64k 3m")],
)
def test_sizes_as_a_library_reads_them(written: str, values: str) -> None:
    text = (
        "space: 1\nname: s\nlibrary: none\nparameters:\n"
        f"  - {{name: A, kind: bytes, values: [0, 1000, 64KiB, 3MiB], written: {written}}}\n"
    )
    (parameter,) = build_space(parse_document(text)).parameters
    assert parameter.values == (None, *values.split())


@pytest.mark.parametrize(
    ("written", "seconds"),
    [(90, 90.0), (0.5, 0.5), ("60s", 60.0), ("5min", 300.0), ("8h", 28800.0), ("20ms", 0.02),
     ("1.5h", 5400.0), ("1h30min", 5400.0), ("1h 30min", 5400.0), ("90", 90.0)],
)  # fmt: skip
def test_times(written: str | float, seconds: float) -> None:
    assert parse_seconds(written) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("written", "hint"),
    [("5m", "nearest: 5min"), ("2 hours", "nearest: 2h"),
     ("9 fortnights", "units: us, ms, s, min, h"),
     ("soon", "write it like 60s, 5min or 8h"), (-3, "write it like 60s or 5min"),
     ("-3s", "write it like 60s, 5min or 8h"), (float("nan"), "write it like 60s or 5min")],
)  # fmt: skip
def test_wrong_times(written: str | float, hint: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        parse_seconds(written)
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("written", "share"),
    [("2%", 0.02), ("0.5 %", 0.005), (0.02, 0.02), ("0.02", 0.02), (1, 1.0), (0.00005, 0.00005)],
)
def test_shares(written: str | float, share: float) -> None:
    assert parse_percent(written) == pytest.approx(share)


def test_a_bare_number_above_one_is_no_share() -> None:
    with pytest.raises(InvalidValue) as caught:
        parse_percent(2)
    assert caught.value.hint == "nearest: 2%"


def test_a_long_list_says_that_there_is_more() -> None:
    listed = [list_first(range(count), 3) for count in (0, 1, 3, 4)]
    assert listed == ["", "0", "0, 1, 2", "0, 1, 2, ..."]
