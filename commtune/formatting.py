"""Formats values as text and tables. Imports nothing slow, since all commands use it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from commtune.model import FEWEST_PAIRS, Aggressor, Conditions, Estimand, Interval

#: The most bytes that are shown in addition to a whole number of units.
_LITTLE = 64
#: What is smaller, or larger than its inverse, has no steps to round to.
_LEAST_ROUNDED = 1e-300
#: More runs than these are no advice: drift and load change in the meantime.
_MOST_RUNS = 10_000


def each_by_itself(level: float | None) -> str:
    """Returns a footnote for tables with intervals of single machine states.

    These have their own confidence level; the other intervals hold simultaneously.

    Args:
        level: confidence level of the campaign; ``None`` if unknown.
    """
    at = "at the campaign's confidence" if level is None else f"{100 * level:.6g} %"
    return f"A row of one machine state has an interval of its own, {at} each."


def format_size(count: int) -> str:
    """Formats bytes in the largest unit that divides them: ``64 KiB``, or ``64 KiB + 4 B``."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        whole, more = divmod(count, factor)
        if whole and more <= _LITTLE:
            return f"{whole} {unit} + {more} B" if more else f"{whole} {unit}"
    return f"{count} B"


def format_sizes(low: int, high: int) -> str:
    """Formats a closed range of sizes in bytes."""
    return format_size(low) if low == high else f"{format_size(low)} to {format_size(high)}"


def format_duration(seconds: float | None) -> str:
    """Formats seconds with three significant digits: ``12.3 us``; empty for ``None``."""
    if seconds is None:
        return ""
    # Benchmarks print half a microsecond as 0.50 us.
    for unit, factor, least_s in (("s", 1.0, 1.0), ("ms", 1e-3, 1e-3), ("us", 1e-6, 1e-7)):
        if seconds >= least_s:
            return f"{_three(seconds / factor)} {unit}"
    return f"{_three(seconds / 1e-9)} ns"


def format_number(value: float) -> str:
    """Formats with three significant digits or as an integer, without exponent: ``0.00123``."""
    if 0 < value < 1:
        digits = 2 - math.floor(math.log10(value))
        return f"{value:.{digits}f}"
    return _three(value)


def format_wall_time(seconds: float) -> str:
    """Formats wall time in seconds: ``2 min 05 s``."""
    whole = round(max(0.0, seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def format_day(moment: float) -> str:
    """Formats the local date of a time in seconds since 1970: ``2026-11-22``."""
    return time.strftime("%Y-%m-%d", time.localtime(moment))


def format_ranks(count: int, nodes: int) -> str:
    """Formats numbers of ranks and nodes: ``2 ranks``, or ``4 ranks on 2 nodes``."""
    return f"{count} ranks on {nodes} nodes" if nodes > 1 else format_count(count, "rank")


def format_note(of: str, note: str) -> str:
    """Formats a profile's note, each part in a line; ``of`` names the profile, or is empty."""
    return f"{of and f'{of}: '}{note}".replace("; ", ";\n  ")


def format_count(count: int, what: str) -> str:
    """Formats a count with its noun: ``1 trial``, ``0 trials``."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def list_first(words: Sequence[object], most: int = 4) -> str:
    """Joins the first items with commas; ``...`` stands for the rest."""
    return ", ".join([*map(str, words[:most]), *(["..."] if len(words) > most else [])])


def format_many(count: int) -> str:
    """Formats a number of configurations exactly, or with two digits from 10^12: ``1.2e+15``."""
    if count < 10**12:
        return f"{count:,}"
    return f"{count:.1e}" if count < 10**300 else "more than 1e300"


def format_node_hours(hours: float) -> str:
    """Formats node-hours with up to two decimals: ``0.25``, ``12.4``, ``1,234``."""
    if hours >= 99.95:
        return f"{hours:,.0f}"
    return (f"{hours:.1f}" if hours >= 9.995 else f"{hours:.2f}").rstrip("0").rstrip(".")


def format_percent(share: float) -> str:
    """Formats a share as a percentage, an integer from 10 % on: ``2 %``, ``4.2 %``, ``39 %``."""
    scaled = 100 * share
    if abs(scaled) < 0.05:
        return "0 %" if scaled == 0 else f"{scaled:.1g} %"
    return f"{scaled:.0f} %" if abs(scaled) >= 9.95 else f"{scaled:.1f}".removesuffix(".0") + " %"


def format_speedup(speedup: Interval, fewest: int = FEWEST_PAIRS) -> str:
    """Formats the interval of a speedup: ``1.37x to 1.45x (1.41x, 12 pairs)``.

    The interval precedes the estimate, which is biased upwards: a configuration that was chosen
    for its speedup in few pairs was most likely lucky. Its ends are rounded outwards, so one that
    is printed above a threshold of two decimals is above it.

    Args:
        fewest: the fewest pairs for which a speedup is shown.
    """
    pairs = format_count(speedup.pairs, "pair")
    if speedup.pairs < fewest:
        return f"too few pairs ({speedup.pairs})"
    if speedup.is_too_noisy:
        return f"nothing known, too noisy ({pairs})"
    low, high = format_ends(speedup.low, speedup.high)
    return f"{low}x to {high}x ({format_ratio(speedup.ratio)}x, {pairs})"


def format_ends(low: float, high: float) -> tuple[str, str]:
    """Formats the ends of an interval of ratios, as ``format_ratio`` does, rounded outwards."""
    return _round_towards(low, math.floor), _round_towards(high, math.ceil)


def _round_towards(ratio: float, rounded: Callable[[float], int]) -> str:
    if not _LEAST_ROUNDED < ratio < 1 / _LEAST_ROUNDED:  # or not a number
        return format_ratio(ratio)
    step = 0.01 if ratio >= 0.1 else 10.0 ** (math.floor(math.log10(ratio)) - 1)
    # What is a whole number of steps but for the error of floating point stays.
    return format_ratio(step * rounded(round(ratio / step, 6)))


def format_ratio(ratio: float) -> str:
    """Formats a ratio with two decimals, a small one with two digits: ``1.41``, ``0.0042``."""
    return f"{ratio:.2f}" if ratio == 0 or ratio >= 0.1 else f"{ratio:.2g}"


def describe_speedup(
    speedup: Interval, size: int, speed: str = "all", fewest: int = FEWEST_PAIRS
) -> str:
    """Formats a speedup with its size (bytes) and, if it is of one, the machine state."""
    state = "" if speed == "all" else f" ({speed} machine state)"
    return f"{format_speedup(speedup, fewest)} at {format_size(size)}{state}"


def describe_deciding_runs(runs: float, told: str = "") -> str:
    """Words what would decide something inconclusive; no number of runs that nobody waits for.

    Args:
        told: what to run; by default, so many more runs.
    """
    if runs > _MOST_RUNS:
        return "more runs on this machine will not decide it; a quieter machine may"
    return f"{told or f'about {math.ceil(runs):,} more runs'} would decide it"


def describe_aggressor(aggressor: Aggressor) -> str:
    """Describes traffic: ``beside an aggressor: incast of 128 KiB from 4 ranks on 2 nodes``."""
    ranks, nodes = aggressor.ranks, aggressor.nodes
    said = (
        f"beside an aggressor: {aggressor.pattern} of {format_size(aggressor.message_bytes)} "
        f"from {ranks} ranks on {format_count(nodes, 'node')}"
    )
    if not (aggressor.burst_s or aggressor.pause_s):
        return said
    return f"{said}, {aggressor.burst_s:g} s on and {aggressor.pause_s:g} s off"


def describe_emulated(nodes: int) -> str:
    """Describes emulation: ``emulated nodes: 2, over sockets on one machine``."""
    return f"emulated nodes: {nodes}, over sockets on one machine"


def describe_estimand(estimand: str) -> str:
    """Describes the times whose ratios speedups are: ``mean times``."""
    return "95th percentiles of operations" if estimand == Estimand.P95 else f"{estimand} times"


def describe_run_time(estimand: str) -> str:
    """Describes the time of a single run that is compared: ``median time``."""
    return "95th percentile" if estimand == Estimand.P95 else "median time"


def describe_ratios(estimand: str) -> str:
    """Says what speedups are ratios of; empty for typical times, as they usually are."""
    usual = ("", Estimand.MEDIAN)
    return "" if estimand in usual else f"speedups are ratios of {describe_estimand(estimand)}"


def describe_conditions(conditions: Conditions) -> str:
    """Describes unusual conditions of a profile's runs; empty if there were none."""
    emulated = conditions.emulated_nodes
    said = (
        conditions.beside and f"measured {conditions.beside}",
        describe_emulated(emulated) if emulated else "",
        conditions.timing and f"timed: {conditions.timing}",
        conditions.pattern and f"pattern: {conditions.pattern}",
        describe_ratios(conditions.estimand),
    )
    return "; ".join(filter(None, said))


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: str = "") -> str:
    """Formats a plain table, with the columns in ``right`` (comma-separated) right-aligned."""
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
    """Formats a table of rows by column, without empty columns, in the first row's order."""
    header = [name for name in rows[0] if any(row[name] for row in rows)]
    return format_table(header, [[row[name] for name in header] for row in rows], right=right)


def wrap_text(text: str, *, first: str = "    ", indent: str = "        ", width: int = 96) -> str:
    """Wraps text to a width in characters without breaking words.

    Args:
        first: indentation of the first line.
        indent: indentation of the other lines.
    """
    # Imported here, so that commands that print one line start faster.
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
    """Replaces infinities and NaN in plain data by ``None``, as JSON can't represent them.

    The interval of a single pair has no upper end, for example.
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
