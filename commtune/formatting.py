"""Words and columns for people, numbers for JSON. Imports nothing slow: all commands use it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

from commtune.model import FEWEST_PAIRS, Aggressor, Conditions, Interval

#: Bytes that are said beside a whole number of units.
_LITTLE = 64


def each_by_itself(level: float | None) -> str:
    """What belongs below a table whose intervals hold together but for those of one speed.

    Args:
        level: the campaign's; ``None`` where nobody knows it.
    """
    at = "at the campaign's confidence" if level is None else f"{100 * level:.6g} %"
    return f"A row of one machine state has an interval of its own, {at} each."


def format_size(count: int) -> str:
    """Bytes in the largest unit that divides them: ``64 KiB``; a little more: ``64 KiB + 4 B``."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        whole, more = divmod(count, factor)
        if whole and more <= _LITTLE:
            return f"{whole} {unit} + {more} B" if more else f"{whole} {unit}"
    return f"{count} B"


def format_sizes(low: int, high: int) -> str:
    """A range of sizes in bytes, both ends inclusive."""
    return format_size(low) if low == high else f"{format_size(low)} to {format_size(high)}"


def format_duration(seconds: float | None) -> str:
    """Seconds with three significant digits in a unit that fits: ``12.3 us``; ``None``: empty."""
    if seconds is None:
        return ""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= factor:
            return f"{_three(seconds / factor)} {unit}"
    return f"{_three(seconds / 1e-6)} us"


def format_number(value: float) -> str:
    """Three significant digits or whole, never with an exponent: ``0.00123``, ``1.50``."""
    if 0 < value < 1:
        digits = 2 - math.floor(math.log10(value))
        return f"{value:.{digits}f}"
    return _three(value)


def format_wall_time(seconds: float) -> str:
    """Wall time for people: ``2 min 05 s``."""
    whole = round(max(0.0, seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def format_day(moment: float) -> str:
    """The local day of a moment, seconds since 1970: ``2026-11-22``."""
    return time.strftime("%Y-%m-%d", time.localtime(moment))


def format_ranks(count: int, nodes: int) -> str:
    """``2 ranks``; where they are on several nodes, ``4 ranks on 2 nodes``."""
    return f"{count} ranks on {nodes} nodes" if nodes > 1 else format_count(count, "rank")


def format_count(count: int, what: str) -> str:
    """So many of something: ``1 trial``, ``0 trials``."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def list_first(words: Sequence[object], most: int = 4) -> str:
    """The first of them with commas between; ``...`` stands for more."""
    return ", ".join([*map(str, words[:most]), *(["..."] if len(words) > most else [])])


def format_many(count: int) -> str:
    """A number of configurations, whole; of very many with two digits, ``1.2e+15``."""
    if count < 10**12:
        return f"{count:,}"
    return f"{count:.1e}" if count < 10**300 else "more than 1e300"


def format_node_hours(hours: float) -> str:
    """Node-hours with up to three significant digits, or whole: ``0.25``, ``12.4``, ``1,234``."""
    if hours >= 99.95:
        return f"{hours:,.0f}"
    return (f"{hours:.1f}" if hours >= 9.995 else f"{hours:.2f}").rstrip("0").rstrip(".")


def format_percent(share: float) -> str:
    """A share with two significant digits, whole from ten on: ``2 %``, ``4.2 %``, ``39 %``."""
    scaled = 100 * share
    if abs(scaled) < 0.05:
        return "0 %" if scaled == 0 else f"{scaled:.1g} %"
    return f"{scaled:.0f} %" if abs(scaled) >= 9.95 else f"{scaled:.1f}".removesuffix(".0") + " %"


def format_speedup(speedup: Interval, fewest: int = FEWEST_PAIRS) -> str:
    """``1.37x to 1.45x (1.41x, 12 pairs)``: how every speedup is worded, wherever it stands.

    The lower end comes first: what was chosen for its speedup, from few pairs, has most likely
    been lucky, and the estimate is too high.

    Args:
        fewest: with fewer pairs than these, nothing is said of it.
    """
    pairs = format_count(speedup.pairs, "pair")
    if speedup.pairs < fewest:
        return f"too few pairs ({speedup.pairs})"
    if speedup.is_too_noisy:
        return f"nothing known, too noisy ({pairs})"
    return f"{speedup.low:.2f}x to {speedup.high:.2f}x ({speedup.ratio:.2f}x, {pairs})"


def describe_speedup(
    speedup: Interval, size: int, speed: str = "all", fewest: int = FEWEST_PAIRS
) -> str:
    """The same with its size (bytes), and with the machine state where it is of one."""
    state = "" if speed == "all" else f" ({speed} machine state)"
    return f"{format_speedup(speedup, fewest)} at {format_size(size)}{state}"


def describe_detectable(gain: float, where: str = "") -> str:
    """The minimum detectable effect (a share), and what that means.

    Args:
        where: of which size it is, such as `` at 8 B``; empty where that is clear.
    """
    return f"minimum detectable effect {format_percent(gain)}{where} (found in 9 of 10 cases)"


def describe_aggressor(aggressor: Aggressor) -> str:
    """``beside an aggressor: incast of 128 KiB from 4 ranks on 2 nodes``."""
    ranks, nodes = aggressor.ranks, aggressor.nodes
    said = (
        f"beside an aggressor: {aggressor.pattern} of {format_size(aggressor.message_bytes)} "
        f"from {ranks} ranks on {nodes} node{'' if nodes == 1 else 's'}"
    )
    if not (aggressor.burst_s or aggressor.pause_s):
        return said
    return f"{said}, {aggressor.burst_s:g} s on and {aggressor.pause_s:g} s off"


def describe_emulated(nodes: int) -> str:
    """``emulated nodes: 2, over sockets on one machine``."""
    return f"emulated nodes: {nodes}, over sockets on one machine"


def describe_conditions(conditions: Conditions) -> str:
    """What was special about a profile's runs; empty where nothing was."""
    emulated = conditions.emulated_nodes
    said = (
        conditions.beside and f"measured {conditions.beside}",
        describe_emulated(emulated) if emulated else "",
        conditions.timing and f"timed: {conditions.timing}",
        conditions.pattern and f"pattern: {conditions.pattern}",
        conditions.estimand and f"speedups are ratios of {conditions.estimand} times",
    )
    return "; ".join(filter(None, said))


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: str = "") -> str:
    """A plain table; columns whose header is in ``right`` (comma-separated) are right-aligned."""
    flush_right = set(right.split(","))
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = []
    for row in [header, *rows]:
        cells = [
            cell.rjust(width) if name in flush_right else cell.ljust(width)
            for name, cell, width in zip(header, row, widths, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def format_rows(rows: Sequence[Mapping[str, str]], *, right: str = "") -> str:
    """The same of rows by column, in the order of the first; columns without any word go."""
    header = [name for name in rows[0] if any(row[name] for row in rows)]
    return format_table(header, [[row[name] for name in header] for row in rows], right=right)


def wrap_text(text: str, *, first: str = "    ", indent: str = "        ", width: int = 96) -> str:
    """Text in lines of up to so many letters; words, names of variables among them, stay whole.

    Args:
        first: what the first line begins with.
        indent: what the others begin with.
    """
    # Imported here: commands that print one line start without it.
    from textwrap import fill

    return fill(
        " ".join(text.split()),
        width,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def without_infinities(value: Any) -> Any:
    """Plain data with null in the place of what JSON has no word for: infinities and NaN.

    The interval of a single pair is open at its upper end.
    """
    if isinstance(value, Mapping):
        return {name: without_infinities(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_infinities(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def _three(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
