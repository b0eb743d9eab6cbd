"""Bandwidths as data sheets write them, read into bytes per second."""

from __future__ import annotations

import re

from commtune.documents.nearest import quote_value
from commtune.documents.quantities import QuantityError

# Prefixes are decimal, as networks use them: 1 Gb/s is 1e9 bits per second, 1 GB/s is 1e9 bytes
# per second. The unit is always written, because the factor of eight is the most common mistake.
_PREFIXES = {"M": 10**6, "G": 10**9, "T": 10**12}
_UNITS = {f"{prefix}b/s": factor / 8 for prefix, factor in _PREFIXES.items()} | {
    f"{prefix}B/s": float(factor) for prefix, factor in _PREFIXES.items()
}
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(\S+)\Z")
_LOOSE = re.compile(r"([MGT])(b|bit|B|byte)s?(?:ps|/s|/sec)\Z")
_HINT = "write it with its unit, like 200 Gb/s (bits) or 25 GB/s (bytes)"


def parse_bandwidth(value: object) -> int:
    """Reads a bandwidth in bytes per second: ``200 Gb/s``, ``50 GB/s``, ``1.6 TB/s``.

    Raises:
        QuantityError: not an amount, or without one of the known units.
    """
    text = str(value).strip()
    match = _AMOUNT.match(text) if isinstance(value, str) else None
    if match is None:
        raise QuantityError(f"{quote_value(value)} is not a bandwidth", hint=_HINT)
    number, unit = match[1], match[2]
    if unit not in _UNITS:
        raise QuantityError(
            f"{quote_value(value)} has no known unit of bandwidth", hint=_nearest(number, unit)
        )
    return round(float(number) * _UNITS[unit])


def format_bandwidth(bytes_per_s: float) -> str:
    """Bytes per second in both units that people use: ``200 Gb/s (25 GB/s)``."""
    return f"{bytes_per_s * 8 / 1e9:.6g} Gb/s ({bytes_per_s / 1e9:.6g} GB/s)"


def short_bandwidth(bytes_per_s: float) -> str:
    """Bytes per second in one unit, with four digits: ``25 GB/s``."""
    return f"{bytes_per_s / 1e9:.4g} GB/s"


def _nearest(number: str, unit: str) -> str:
    loose = _LOOSE.match(unit)
    if loose is None:
        return _HINT
    return f"nearest: {number} {loose[1]}{'b' if loose[2] in ('b', 'bit') else 'B'}/s"
