"""Tables of honesty.py: what campaigns came to, held against goals. By noise:

- false claims: the share of campaigns that recommend anything where nothing gains;
- all hold: the share of campaigns in which all intervals that are stated to hold together do,
  without and with a planted gain;
- found: the share of those with a gain that recommend a configuration which has it;
- oracle: the share of oracles that show the gain. An oracle knows the one configuration that has
  it, and spends as many runs as the campaign on blocks of that and the default;
- idle: of those found, the share whose recommended configurations hold a variable without effect;
- named: of those found, the share whose profiles name a variable as not shown to contribute;
- power: of campaigns without a gain, how often the minimum detectable effect of a size, stated as
  found in 9 of 10 cases, is found there in as many fresh blocks as were planned, which follow the
  campaign five times; and how often the largest one, up to which they are stated to go, is found
  at the size where it is largest.

Bold is what misses a goal, italic where docs/method.md says why: at most 5 % of false claims, with
an upper bound of 8 %; all intervals hold in 93 %; a speedup that 90 % of the oracles show is found
in 90 %; idle in 5 %; power between 87 and 93 %, and not less where the effect is largest.

Shares of campaigns come with their 95 % interval (Clopper and Pearson). Intervals of one campaign
hang together, and so do its sizes. So each campaign's share is taken, and the mean of these shares
with Student's t interval over the campaigns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from scipy.special import betaincinv, stdtrit

from commtune.model import FEW_PAIRS

#: The least power with noise that misses the goal, since it is another one after the campaign.
_LEAST_POWER = {"memory-neighbours": 0.83}


@dataclass(frozen=True)
class Result:
    """What one campaign came to, held against the truth.

    Attributes:
        runs: that its budget holds; 0 for a campaign that names no budget.
        made: runs that it made.
    """

    noise: str
    gain: float
    seed: int
    run_s: float
    runs: int
    claims: bool
    found: bool
    wrong: bool
    idle: bool
    together: bool
    single: int
    single_held: int
    made: int
    seconds: float
    #: Pairs of a size, in the middle; and a recommendation that is silent about slow runs.
    pairs: int = 0
    silent: bool = False
    oracle: bool = False
    #: The largest minimum detectable effect, and the share of fresh confirmations that find it.
    stated: float = 0.0
    shown: float = 0.0
    #: Sizes of fresh confirmations: with a minimum detectable effect, and those that find it.
    powered: int = 0
    powered_found: int = 0
    #: Whether a variable is named as not shown to contribute; ``None`` where it wasn't recorded.
    named: bool | None = None
    #: Of the code that ran; empty where it wasn't recorded.
    commit: str = ""


@dataclass(frozen=True)
class Share:
    """A share with its 95 % interval."""

    count: int
    of: int

    @property
    def value(self) -> float:
        """Of all; 0 of none."""
        return self.count / max(1, self.of)

    @property
    def interval(self) -> tuple[float, float]:
        """Clopper and Pearson's."""
        low = betaincinv(self.count, self.of - self.count + 1, 0.025) if self.count else 0.0
        rest = self.of - self.count
        high = betaincinv(self.count + 1, rest, 0.975) if rest else 1.0
        return float(low), float(high)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:6.1%} [{low:.1%}, {high:.1%}]"


def clustered(counts: Iterable[tuple[float, int]]) -> str:
    """The share of intervals that hold, or of sizes, in the mean over campaigns.

    With Student's t interval over campaigns: those of one campaign are not independent.

    Args:
        counts: by campaign, how many hold, and of how many.
    """
    shares = [held / of for held, of in counts if of]
    if len(shares) < 2:
        return ""
    mean = fmean(shares)
    half = stdtrit(len(shares) - 1, 0.975) * stdev(shares) / math.sqrt(len(shares))
    return f"{mean:6.1%} [{max(0.0, mean - half):.1%}, {min(1.0, mean + half):.1%}]"


def table(results: Sequence[Result]) -> str:
    """The table of the docs, of campaigns without a gain and with one."""
    titles = (
        "noise | campaigns: no speedup, planted | false claims | all hold: no speedup | planted |"
        " found | oracle | idle | named | power | where largest"
    )
    rows = [f"| {titles} |", "|---" * (titles.count("|") + 1) + "|"]
    for noise in dict.fromkeys(r.noise for r in results):
        rows.append(_row(noise, [r for r in results if r.noise == noise]))
    return "\n".join(rows)


def _row(noise: str, of: Sequence[Result]) -> str:
    none, planted = [r for r in of if not r.gain], [r for r in of if r.gain]
    found = [r for r in planted if r.found]
    is_shown = sum(r.oracle for r in planted) >= 0.9 * len(planted)
    powers = [(r.powered_found, r.powered) for r in none if r.powered]
    power = fmean(held / sizes for held, sizes in powers) if powers else 0.9
    is_known = power >= _LEAST_POWER.get(noise, 1.0)
    largest = [r.shown for r in none if r.stated]
    cells = [
        noise,
        f"{len(none)}, {len(planted)}",
        _cell("claims", none, lambda s: s.value <= 0.05 and s.interval[1] <= 0.08),
        *(_cell("together", among, lambda s: s.value >= 0.93) for among in (none, planted)),
        _cell("found", planted, lambda s: s.value >= 0.9 or not is_shown),
        _cell("oracle", planted),
        _cell("idle", found, lambda s: s.value <= 0.05),
        _cell("named", [r for r in found if r.named is not None]),
        _marked(clustered(powers), abs(power - 0.9) <= 0.03, "*" if is_known else "**"),
        _marked(clustered((one, 1) for one in largest), not largest or fmean(largest) >= 0.87),
    ]
    return "| " + " | ".join(cells) + " |"


def _cell(
    name: str, among: Sequence[Result], is_good: Callable[[Share], bool] = lambda _: True
) -> str:
    """The share of campaigns; empty without any."""
    share = Share(sum(getattr(r, name) for r in among), len(among))
    return _marked(str(share), is_good(share)) if among else ""


def _marked(cell: str, holds: bool, mark: str = "**") -> str:
    return cell.strip() if holds or not cell else f"{mark}{cell.strip()}{mark}"


def notes(results: Sequence[Result]) -> str:
    """What only some kinds of noise, or hardly any campaign, have."""
    planted = [r for r in results if r.gain]
    silent = [r for r in planted if r.noise == "slow-with-gain" and r.claims]
    few = [r for r in results if r.powered and FEW_PAIRS <= r.pairs < 2 * FEW_PAIRS]
    lines = [
        f"{sum(r.wrong for r in planted)} of {len(planted)} campaigns with a planted speedup"
        " recommend something at a size where it gains nothing.",
        f"{sum(r.silent for r in silent)} of {len(silent)} recommendations of slow-with-gain do"
        " not name its slow runs.",
        "Intervals of single machine states hold, of 95 %: "
        + clustered((r.single_held, r.single) for r in results).strip(),
        f"Power of {len(few)} campaigns with {FEW_PAIRS} to {2 * FEW_PAIRS - 1} pairs: "
        + clustered((r.powered_found, r.powered) for r in few).strip(),
    ]
    return "\n".join(lines)
