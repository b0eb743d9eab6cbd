"""Two noise models from the literature.

They were written before their author had read any of the package's statistics: the models in
simulated.py might have been chosen to pass. The constants come from the papers named below, not
from trying which ones pass. Some choices were made with their results in view since then; which,
says docs/method.md. Times are in seconds; the slowdown of a run is a factor of its time on
an idle machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Interruptions:
    """Operating system jitter: work of the system takes half of the core while it lasts.

    It arrives as a Poisson process. Lengths follow a power law from 10 ms to 5 min: timer ticks
    and daemons are short, a backup outlasts several runs. Petrini, Kerbyson, Pakin: The Case of
    the Missing Supercomputer Performance (SC 2003); Hoefler, Schneider, Lumsdaine: Characterizing
    the Influence of System Noise on Large-Scale Applications by Simulation (SC 2010). Power-law
    lifetimes of processes: Harchol-Balter, Downey (SIGMETRICS 1996), who find an exponent of about
    1; 1.2 here.
    """

    random: np.random.Generator
    per_second: float = 0.3
    exponent: float = 1.2
    shortest: float = 0.010
    longest: float = 300.0
    timer_noise: float = 0.01
    _busy: list[tuple[float, float]] = field(default_factory=list)
    _arrival: float | None = None

    def slowdown(self, start: float, duration: float) -> float:
        """Of a run that would take so long on an idle machine; ``start`` never decreases."""
        end = start + duration
        if self._arrival is None:
            self._arrival = start - self.longest
        while self._arrival < end:
            self._busy.append((self._arrival, self._arrival + self._length()))
            self._arrival += self.random.exponential(1 / self.per_second)
        self._busy = [span for span in self._busy if span[1] > start]
        stolen = sum(
            min(end, until) - max(start, since) for since, until in self._busy if since < end
        )
        return (1 + stolen / duration) * math.exp(self.random.normal(0, self.timer_noise))

    def _length(self) -> float:
        """A truncated Pareto, by its inverse distribution function."""
        tail = (self.shortest / self.longest) ** self.exponent
        return self.shortest * math.pow(1 - self.random.random() * (1 - tail), -1 / self.exponent)


@dataclass
class Congestion:
    """A shared network: the load of others drifts, and a neighbour writes checkpoints.

    The excess over an idle network is log-normal around 5 %, its logarithm an Ornstein-Uhlenbeck
    process; a checkpoint every quarter of an hour adds 25 % for a minute. Bhatele et al., There
    Goes the Neighborhood (SC 2013): 28 % faster to 41 % slower than the average; Zhang et al.,
    Quantifying the Impact of Network Congestion (CLUSTER 2020): 40 % and more for codes heavy on
    MPI.
    """

    random: np.random.Generator
    typical_excess: float = 0.05
    spread: float = 0.8
    correlation_s: float = 120.0
    checkpoint_every_s: float = 900.0
    checkpoint_lasts_s: float = 60.0
    checkpoint_excess: float = 0.25
    timer_noise: float = 0.01
    _level: float | None = None
    _at: float = 0.0
    _checkpoint: float = 0.0

    def slowdown(self, start: float, duration: float) -> float:
        """Of a run that would take so long on an idle network; ``start`` never decreases."""
        if self._level is None:
            self._level = self.random.normal()
            self._checkpoint = start - self.random.uniform(0, self.checkpoint_every_s)
        else:
            kept = math.exp(-(start - self._at) / self.correlation_s)
            self._level = kept * self._level + math.sqrt(1 - kept * kept) * self.random.normal()
        self._at = start
        while self._checkpoint + self.checkpoint_lasts_s <= start:
            self._checkpoint += self.checkpoint_every_s * math.exp(self.random.normal(0, 0.05))
        under_way = min(start + duration, self._checkpoint + self.checkpoint_lasts_s) - max(
            start, self._checkpoint
        )
        excess = self.typical_excess * math.exp(self.spread * self._level)
        excess += self.checkpoint_excess * max(0.0, under_way) / duration
        return (1 + excess) * math.exp(self.random.normal(0, self.timer_noise))
