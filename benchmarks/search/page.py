"""Puts the tables and the picture of the stored results into docs/search.md, without playing.

python -m benchmarks.search.page
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

from .halves import Floats
from .results import RESULTS, group_rows, load_scores
from .scoring import Score

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "search.md"
PICTURE = ROOT / "docs" / "images" / "search.svg"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
_BUDGETS = (2, 5, 10, 20, 50)
#: Methods that are shown by their own recommendation; the others by the lower bound.
_OWN = ("acclaim", "search", "whole", "whole+likely")
_DRAWN = ("search", "whole", "random", "tpe+rerun", "racing", "nsga-ii")
#: Three runs of every configuration: what there is to be found.
_REFERENCE = "exhaustive-3"

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
    gain = f"{100 * row['gain']:.1f} ±{100 * row['gain_error']:.1f}"
    regret = f"{100 * row['median_regret']:.1f} ({100 * row['ninth_regret']:.0f})"
    return f"{gain}; {row['near']:.2f}; {regret}"


def compare(scores: Sequence[Score]) -> Iterator[tuple[float, str, list[Floats]]]:
    """By budget: its best peer, and differences of gains (logarithms, paired by seed).

    The differences are those of the search to that peer, and to the exhaustive grid of the
    search, of whole campaigns, and of these with what is likely. The best of many peers is chosen
    after the fact: that flatters it.
    """
    gains: dict[tuple[str, float], dict[int, float]] = {}
    for one in scores:
        if one.pick == ("own" if one.method in _OWN else "lcb"):
            gains.setdefault((one.method, one.percent), {})[one.seed] = one.gain
    seeds = sorted(set.intersection(*(set(mine) for mine in gains.values())))
    of = {key: np.array([mine[seed] for seed in seeds]) for key, mine in gains.items()}
    all_of_it = of[_REFERENCE, 0]
    for budget in _BUDGETS:
        peers = {m: float(x.mean()) for (m, p), x in of.items() if p == budget and m not in _OWN}
        best = max(peers, key=lambda name: peers[name])
        over_all = [of[mine, budget] - all_of_it for mine in ("search", "whole", "whole+likely")]
        yield budget, best, [of["search", budget] - of[best, budget], *over_all]


def differences(grid: str, scores: Sequence[Score]) -> Iterator[str]:
    """The lines of one recording in the table of differences."""
    for budget, best, found in compare(scores):
        yield f"| {grid} | {budget:g} % | {best} | " + " | ".join(map(_interval, found)) + " |"


def _interval(found: Floats) -> str:
    """A mean over seeds with its 95 % interval, in per cent."""
    reach = stdtrit(len(found) - 1, 0.975) * found.std(ddof=1) / math.sqrt(len(found))
    ends = (100 * math.expm1(found.mean() + sign * reach) for sign in (-1, 1))
    return f"{100 * math.expm1(found.mean()):+.1f} [{', '.join(f'{end:.1f}' for end in ends)}]"


def draw(grids: Sequence[tuple[str, Sequence[Row]]]) -> Figure:
    """Gain over the number of runs, a panel a recording."""
    from matplotlib.figure import Figure  # slow, and only for the picture

    figure = Figure(figsize=(9.6, 2.6 * math.ceil(len(grids) / 2)), layout="constrained")
    panels = figure.subplots(math.ceil(len(grids) / 2), 2, squeeze=False).ravel()
    for axes, (grid, rows) in zip(panels, grids, strict=False):
        _draw_panel(axes, grid, rows)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8)
    return figure


def _draw_panel(axes: Axes, grid: str, rows: Sequence[Row]) -> None:
    table = shown(rows)
    for method in _DRAWN:
        mine = sorted((row["runs"], 100 * row["gain"]) for row in table[method].values())
        is_ours = method in _OWN
        axes.plot(*zip(*mine, strict=True), marker="o", markersize=3,
                  label=f"commtune, {method}" if is_ours else method,
                  linewidth=2.2 if is_ours else 1.0)  # fmt: skip
    reference = table[_REFERENCE][0]
    axes.axhline(100 * reference["gain"], color="grey", linestyle="--", linewidth=1,
                 label=_REFERENCE)  # fmt: skip
    axes.set(title=f"{grid} (replayed)", xlabel="runs", ylabel="speedup (%)", xscale="log")
    made = [row["runs"] for row in table["random"].values()]
    axes.set_xticks(made, [f"{runs:g}" for runs in made])
    axes.minorticks_off()


def main() -> None:
    """Writes the picture, and the tables between the page's markers."""
    import matplotlib as mpl

    mpl.rcParams["svg.hashsalt"] = "commtune"
    names = [path.name.removesuffix(".json.gz") for path in sorted(RESULTS.glob("*.json.gz"))]
    scores = {name: load_scores(name) for name in names}
    rows = {name: group_rows(known) for name, known in scores.items()}
    draw([*rows.items()]).savefig(PICTURE, metadata={"Date": None})
    found = [
        "| recording | runs | best peer | search vs. best peer | search vs. exhaustive-3 |"
        " whole vs. exhaustive-3 | whole+likely vs. exhaustive-3 |",
        "|---|---|---|---|---|---|---|",
        *(line for name in names for line in differences(name, scores[name])),
        "",
    ]
    for name in names:
        found += [f"### {name}", "", *table(rows[name]), ""]
    page = PAGE.read_text("utf-8")
    between = f"{BEGIN}\n\n" + "\n".join(found) + f"\n{END}"
    PAGE.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: between, page, flags=re.DOTALL), "utf-8")


if __name__ == "__main__":
    main()
