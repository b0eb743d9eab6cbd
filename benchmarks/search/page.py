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
#: What the picture shows, with the rule that each is shown under: the best of its own.
_DRAWN = {
    "random": "mean", "random+rerun": "lcb", "tpe": "lcb", "tpe-by-size": "lcb", "gp": "lcb",
    "smac3": "lcb", "acclaim": "own", "racing": "own", "halving": "lcb",
    "search": "own", "whole": "own", "whole+likely": "own",
}  # fmt: skip

Row = dict[str, Any]


def table(rows: Sequence[Row]) -> Iterator[str]:
    """One recording's table, a line each; a method and rule of picking in a row."""
    budgets = [b for b in _BUDGETS if any(row["percent"] == b for row in rows)]
    yield (
        "| method | pick | seeds | " + "".join(f"{b} % | " for b in budgets) + "false | seconds |"
    )
    yield "|---|---|---|" + "---|" * len(budgets) + "---|---|"
    for method, pick in dict.fromkeys((row["method"], row["pick"]) for row in rows):
        mine = {r["percent"]: r for r in rows if (r["method"], r["pick"]) == (method, pick)}
        if 0 in mine:
            shown = f"{mine[0]['runs']:g} runs: {_cell(mine[0])}"
            cells = [shown, *[""] * (len(budgets) - 1)]
        else:
            cells = [_cell(mine[b]) if b in mine else "" for b in budgets]
        last = mine[max(mine)]
        claims = [r for r in mine.values() if r["false_claims"] is not None]
        false = sum(r["false_claims"] for r in claims)
        said = f"{false} of {sum(r['seeds'] for r in claims)}" if claims else ""
        seeds = "/".join(str(n) for n in sorted({r["seeds"] for r in mine.values()}))
        row = " | ".join([method, pick, seeds, *cells, said, f"{last['seconds']:.1f}"])
        yield f"| {row} |"


def _cell(row: Row) -> str:
    return f"{row['near']:.2f}; {100 * row['median_regret']:.1f} ({100 * row['ninth_regret']:.0f})"


def draw(grid: str, rows: Sequence[Row]) -> Figure:
    """Median regret over the number of runs; a dashed line where the exhaustive grid is."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    for method, pick in _DRAWN.items():
        mine = sorted(
            (row["runs"], 100 * row["median_regret"])
            for row in rows
            if (row["method"], row["pick"]) == (method, pick)
        )
        if mine:
            ours = method in ("search", "whole", "whole+likely")
            label = f"commtune, {method}" if ours else method
            axes.plot(*zip(*mine, strict=True), marker="o", markersize=3, label=label,
                      linewidth=2.2 if ours else 1.0)  # fmt: skip
    for row in rows:
        if row["method"] == "exhaustive-3" and row["pick"] == "mean":
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
