"""Puts the tables and the pictures of the stored results into docs/search.md, without playing.

python -m benchmarks.search.page
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from .results import RESULTS, group_rows, load_scores

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "search.md"
IMAGES = ROOT / "docs" / "images"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
_BUDGETS = (2, 5, 10, 20, 50)
#: Methods that are shown by their own recommendation; the others by the lower bound.
_OWN = ("acclaim", "search", "whole", "whole+likely")
_NOT_DRAWN = ("exhaustive", "exhaustive-3", "tpe-multivariate", "hyperband", "nsga-ii", "cma-es")

Row = dict[str, Any]


def shown(rows: Sequence[Row]) -> dict[str, dict[float, Row]]:
    """The rows of each method under the rule of picking that it is shown by, by budget."""
    found: dict[str, dict[float, Row]] = {}
    for row in sorted(rows, key=lambda row: str(row["method"])):
        if row["pick"] == ("own" if row["method"] in _OWN else "lcb"):
            found.setdefault(row["method"], {})[row["percent"]] = row
    return found


def table(rows: Sequence[Row]) -> Iterator[str]:
    """One recording's table, a line each; a method in a row."""
    budgets = [b for b in _BUDGETS if any(row["percent"] == b for row in rows)]
    yield "| method | seeds | " + "".join(f"{b} % | " for b in budgets) + "false | seconds |"
    yield "|---|---|" + "---|" * len(budgets) + "---|---|"
    for method, mine in shown(rows).items():
        if 0 in mine:
            whole = f"{mine[0]['runs']:g} runs: {_cell(mine[0])}"
            cells = [whole, *[""] * (len(budgets) - 1)]
        else:
            cells = [_cell(mine[b]) if b in mine else "" for b in budgets]
        claims = [r for r in mine.values() if r["false_claims"] is not None]
        false = sum(r["false_claims"] for r in claims)
        said = f"{false} of {sum(r['seeds'] for r in claims)}" if claims else ""
        seeds = "/".join(str(n) for n in sorted({r["seeds"] for r in mine.values()}))
        row = " | ".join([method, seeds, *cells, said, f"{mine[max(mine)]['seconds']:.1f}"])
        yield f"| {row} |"


def _cell(row: Row) -> str:
    return f"{row['near']:.2f}; {100 * row['median_regret']:.1f} ({100 * row['ninth_regret']:.0f})"


def draw(grid: str, rows: Sequence[Row]) -> Figure:
    """Median regret over the number of runs; a dashed line where the exhaustive grid is."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    for method, by_budget in shown(rows).items():
        if method in _NOT_DRAWN:
            continue
        mine = sorted((r["runs"], 100 * r["median_regret"]) for r in by_budget.values())
        if mine:
            ours = method in ("search", "whole", "whole+likely")
            label = f"commtune, {method}" if ours else method
            axes.plot(*zip(*mine, strict=True), marker="o", markersize=3, label=label,
                      linewidth=2.2 if ours else 1.0)  # fmt: skip
    for row in rows:
        if row["method"] == "exhaustive-3" and row["pick"] == "lcb":
            axes.axhline(100 * row["median_regret"], color="grey", linestyle="--", linewidth=1,
                         label=f"exhaustive-3 ({row['runs']:g} runs)")  # fmt: skip
    axes.set(title=f"{grid} (replayed)", xlabel="runs", ylabel="median regret (%)", xscale="log")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=7, ncols=2)
    return figure


def main() -> None:
    """Writes the pictures, and the tables between the page's markers."""
    mpl.rcParams["svg.hashsalt"] = "commtune"
    parts = []
    for path in sorted(RESULTS.glob("*.json")):
        grid, rows = path.stem, group_rows(load_scores(path.stem))
        name = f"search-{grid}.svg"
        draw(grid, rows).savefig(IMAGES / name, metadata={"Date": None})
        picture = f"![Median regret over runs, {grid}](images/{name})"
        parts.append("\n".join([f"### {grid}", "", picture, "", *table(rows), ""]))
    page = PAGE.read_text("utf-8")
    between = f"{BEGIN}\n\n" + "\n".join(parts) + f"\n{END}"
    PAGE.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: between, page, flags=re.DOTALL), "utf-8")


if __name__ == "__main__":
    main()
