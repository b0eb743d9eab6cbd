"""Parses sizes, times, shares, bandwidths and truth words; formats bandwidths.

Parsed sizes are in bytes, times in seconds. Sizes have only binary suffixes (KiB is 1024 bytes),
because communication libraries disagree about the meaning of K.
"""

from __future__ import annotations

import re

from commtune.documents.nearest import quote_value
from commtune.errors import InvalidValue

_BYTE_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_TIME_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_WHOLE = re.compile(r"-?[0-9]{1,20}")
_FRACTION = re.compile(r"-?([0-9]{1,20}\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,2})?")
_NUMBER_AND_UNIT = re.compile(r"([0-9]{1,20}(?:\.[0-9]+)?)\s*([A-Za-zµ%]*)\Z")
#: Other units, which are not accepted, with the units that a hint suggests.
_LOOSE_TIMES = {
    "sec": "s", "secs": "s", "second": "s", "seconds": "s", "m": "min", "mins": "min",
    "minute": "min", "minutes": "min", "hr": "h", "hrs": "h", "hour": "h", "hours": "h",
    "µs": "us",
}  # fmt: skip

_YES = frozenset({"1", "true", "yes", "on", "t", "y", "enable", "enabled"})
_NO = frozenset({"0", "false", "no", "off", "f", "n", "disable", "disabled"})


def read_truth(word: str) -> bool | None:
    """Returns what a word means to libraries that read it as true or false; ``None`` otherwise."""
    word = word.strip().lower()
    return word in _YES if word in _YES | _NO else None


def whole_number(text: str) -> int | None:
    """Returns the integer of up to 20 decimal digits that a text is; ``None`` otherwise."""
    return int(text) if _WHOLE.fullmatch(text) else None


def decimal_number(text: str) -> float | None:
    """Returns the finite number that a text is in decimal digits; ``None`` otherwise."""
    return float(text) if _FRACTION.fullmatch(text) else None


def list_multiples(low: int, high: int, factor: int) -> list[int]:
    """Lists ``low``, ``low`` x ``factor`` and so on up to ``high``; of 0 only itself."""
    numbers = []
    while low <= high:
        numbers.append(low)
        low = low * factor or high + 1
    return numbers


def _split(text: str, example: str) -> tuple[str, str]:
    match = _NUMBER_AND_UNIT.match(text.strip())
    if match is None:
        raise InvalidValue(
            f"{quote_value(text)} is not an amount", hint=f"write it like {example}"
        )
    return match[1], match[2]


def parse_bytes(value: str | int) -> int:
    """Parses a size: ``4096``, ``"512 B"``, ``"64KiB"``, ``"0.5GiB"``, ``"64 KiB + 4 B"``.

    Returns:
        Bytes.

    Raises:
        InvalidValue: not a size, an ambiguous suffix (64K, 64KB), negative or not whole.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return _checked_size(value, value)
    if "+" in str(value).strip("+ "):
        return sum(map(parse_bytes, str(value).split("+")))
    number, unit = _split(str(value), "64KiB, 1MiB or 4096")
    if unit not in ("", *_BYTE_UNITS):
        raise _wrong_byte_unit(value, number, unit)
    # Integers are multiplied as integers, because a float would round large ones.
    amount = int(number) if number.isdigit() else float(number)
    return _checked_size(amount * _BYTE_UNITS[unit or "B"], value)


def _checked_size(size: int | float, written: object) -> int:
    if size < 0 or size != int(size):
        raise InvalidValue(
            f"{quote_value(written)} is not a whole number of bytes",
            hint="write 0 or more, like 64KiB",
        )
    return int(size)


def _wrong_byte_unit(value: object, number: str, unit: str) -> InvalidValue:
    meant = {"b": "B", "k": "KiB", "m": "MiB", "g": "GiB"}.get(unit[:1].lower())
    hint = f"nearest: {number}{meant}" if meant else "units: B, KiB, MiB, GiB"
    return InvalidValue(f"{quote_value(value)} has no known unit of bytes", hint=hint)


def parse_seconds(value: str | int | float) -> float:
    """Parses a time: ``90``, ``"60s"``, ``"5min"``, ``"8h"``, ``"1h30min"``, ``"20ms"``.

    Returns:
        Seconds.

    Raises:
        InvalidValue: not a time, or an unknown unit.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not 0 <= value < float("inf"):
            hint = "write it like 60s or 5min"
            raise InvalidValue(f"{quote_value(value)} is not a time", hint=hint)
        return float(value)
    text = str(value).strip()
    parts = re.findall(r"[0-9.]+\s*[A-Za-zµ]+", text)
    if len(parts) > 1 and "".join(parts).replace(" ", "") == text.replace(" ", ""):
        return sum(_one_time(part, value) for part in parts)
    return _one_time(text, value)


def parse_duration(value: str | int | float) -> float:
    """Parses a time above 0, in seconds, as ``parse_seconds`` does.

    Raises:
        InvalidValue: not a time, or not above 0.
    """
    seconds = parse_seconds(value)
    if seconds == 0:
        raise InvalidValue(f"{quote_value(value)} is not a time above 0", hint="write it like 60s")
    return seconds


def _one_time(text: str, written: object) -> float:
    number, unit = _split(text, "60s, 5min or 8h")
    if unit not in ("", *_TIME_UNITS):
        meant = _LOOSE_TIMES.get(unit.lower())
        hint = f"nearest: {number}{meant}" if meant else "units: us, ms, s, min, h"
        raise InvalidValue(f"{quote_value(written)} has no known unit of time", hint=hint)
    return float(number) * _TIME_UNITS[unit or "s"]


def parse_percent(value: str | int | float) -> float:
    """Parses a share: ``"2%"`` and ``0.02`` are both 0.02. A bare number is the share itself.

    Raises:
        InvalidValue: not a share, or a bare number above 1 (2 might mean 2 % or 200 %).
    """
    if isinstance(value, float) and 0 <= value <= 1:
        return float(value)  # as text, a small one would have an exponent
    number, unit = _split(str(value), "2% or 0.02")
    if unit not in ("", "%"):
        raise InvalidValue(f"{quote_value(value)} is not a share", hint=f"nearest: {number}%")
    share = float(number)
    if not unit and share > 1:
        raise InvalidValue(
            f"{quote_value(value)} is above 1, so it's unclear", hint=f"nearest: {number}%"
        )
    return share / 100 if unit else share


# Prefixes are decimal, as networks use them: 1 Gb/s is 1e9 bits per second, 1 GB/s is 1e9 bytes
# per second. The unit is always written, because the factor of eight is the most common mistake.
_DECIMAL = {"M": 10**6, "G": 10**9, "T": 10**12}
_BANDWIDTH_UNITS = {f"{prefix}b/s": factor / 8 for prefix, factor in _DECIMAL.items()} | {
    f"{prefix}B/s": float(factor) for prefix, factor in _DECIMAL.items()
}
_BANDWIDTH = re.compile(r"([0-9]{1,20}(?:\.[0-9]+)?)\s*(\S+)\Z")
_LOOSE_BANDWIDTH = re.compile(r"([MGT])(b|bit|B|byte)s?(?:ps|/s|/sec)\Z")
_BANDWIDTH_HINT = "write it with its unit, like 200 Gb/s (bits) or 25 GB/s (bytes)"


def parse_bandwidth(value: object) -> int:
    """Parses a bandwidth into bytes per second: ``200 Gb/s``, ``50 GB/s``, ``1.6 TB/s``.

    Raises:
        InvalidValue: not an amount, or without one of the known units.
    """
    text = str(value).strip()
    match = _BANDWIDTH.match(text) if isinstance(value, str) else None
    if match is None:
        raise InvalidValue(f"{quote_value(value)} is not a bandwidth", hint=_BANDWIDTH_HINT)
    number, unit = match[1], match[2]
    if unit not in _BANDWIDTH_UNITS:
        raise InvalidValue(
            f"{quote_value(value)} has no known unit of bandwidth",
            hint=_nearest_bandwidth(number, unit),
        )
    return round(float(number) * _BANDWIDTH_UNITS[unit])


def format_bandwidth(bytes_per_s: float) -> str:
    """Formats bytes per second in both usual units: ``200 Gb/s (25 GB/s)``."""
    return f"{bytes_per_s * 8 / 1e9:.6g} Gb/s ({bytes_per_s / 1e9:.6g} GB/s)"


def short_bandwidth(bytes_per_s: float) -> str:
    """Formats bytes per second in one unit, to four digits: ``25 GB/s``."""
    return f"{bytes_per_s / 1e9:.4g} GB/s"


def _nearest_bandwidth(number: str, unit: str) -> str:
    loose = _LOOSE_BANDWIDTH.match(unit)
    if loose is None:
        return _BANDWIDTH_HINT
    return f"nearest: {number} {loose[1]}{'b' if loose[2] in ('b', 'bit') else 'B'}/s"
