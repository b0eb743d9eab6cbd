"""Two more noise models: the nodes that a batch system gives a launch, and monitoring.

Their author had read the models in unseen_noise.py, for the form, and neither the code of the
package nor any result. The constants come from the papers and manuals named below or from the
reckoning beside them. Times are in seconds; a slowdown is a factor of the time on an idle machine.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field

import numpy as np
from unseen_noise import BYTES


@dataclass
class NodeAllocation:
    """Nodes that a batch system gives a launch, some farther apart and some slower than others.

    Each launch is a job of four nodes with four GPUs (assumed). The machine has four groups of
    four leaf switches with 16 nodes. As Slurm's topology/tree does, the scheduler takes the leaf
    with the fewest free nodes that are enough, else the group, else the machine; in those, the
    leaves with the most free nodes first. If no job of others waits, a launch mostly gets the
    nodes of the last one. Else a waiting job may take them, and the launch waits for the next ones
    that get free. The machine goes on meanwhile; no run gets longer.

    Jobs of others last for exp(4.4) = 81 s (median), log-normal with a spread of 1.7 (Li, Groep,
    Wolters: Workload Characteristics of a Multi-cluster Supercomputer, JSSPP 2004), for 2 h at
    most: 315 s on average. Half have one node, a quarter two, and so on up to 16: 3 on average.
    They ask for 90 % of the nodes; up to 20 wait, and any that fits starts (all but the lengths
    assumed). Hu et al. (SC 2021): most jobs of GPU clusters are small.

    - Recursive halving and doubling: four steps of 0.5 us in a node, four of 2 us between nodes on
      a leaf (assumed), 1.5 times the message at 12.5 GB/s. Another leaf is two switches of 130 ns
      (data sheet of NVIDIA's Quantum) and 40 m of cable at 5 ns/m away: 0.46 us a step. Another
      group is three switches and 90 m away (lengths assumed): 0.84 us.
    - GPUs of one type differ for good: by 8 % on average, outliers take up to 1.5 times as long
      (Sinha et al.: Not All GPUs Are Created Equal, SC 2022). 8 % are taken as the whiskers of a
      box plot, 5.4 standard deviations; 0.5 % of GPUs are outliers from 1.1 on (assumed). The
      slowest sets the pace of half of the latency and 30 % of the transfer (assumed).

    De Sensi et al.: Exploring GPU-to-GPU Communication (SC 2024), on distance.
    """

    random: np.random.Generator
    _calls: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        gpus = np.exp(self.random.normal(0, 0.08 / 5.4, (256, 4)))
        outliers = self.random.random((256, 4)) < 0.005
        gpus *= np.where(outliers, self.random.uniform(1.1, 1.5, (256, 4)), 1)
        self._pace = gpus.max(axis=1)
        self._free = np.ones(256, dtype=bool)
        self._mine = np.zeros(0, dtype=int)
        self._running: list[tuple[float, int, np.ndarray]] = []
        self._waiting: list[int] = []
        self._started = 0
        self._arrival = self._waited = 0.0

    def slowdown(self, start: float, duration: float) -> float:
        """Of the next size of a run; ``start`` never decreases."""
        del duration
        size = self._calls % len(BYTES)
        if self._calls == 0:  # The machine was empty an hour before.
            self._arrival = start - 3600
        if size == 0:
            self._launch(start)
        self._calls += 1
        return float(self._factors[size] * math.exp(self.random.normal(0, 0.01)))

    def _launch(self, start: float) -> None:
        """Lets others come and go, while the last launch has its nodes, and draws new ones."""
        now = start + self._waited
        while min(self._arrival, self._next_end()) <= now:
            if self._next_end() <= self._arrival:
                self._start_waiting(self._end_one())
                continue
            if len(self._waiting) < 20:
                self._waiting.append(min(2 ** int(self.random.geometric(0.5) - 1), 16))
            self._start_waiting(self._arrival)
            self._arrival += self.random.exponential(3 * 315 / (0.9 * 256))
        self._free[self._mine] = True
        self._start_waiting(now)
        while self._free.sum() < 4:
            now = self._end_one()
        self._waited = now - start
        self._mine = nodes = self._take(4)
        away = np.array([[0.46 * (a // 16 != b // 16) for b in nodes] for a in nodes])
        away = np.where(nodes[:, None] // 64 != nodes // 64, 0.84, away)
        steps = 2 * (max(away[0, 1], away[2, 3]) + max(away[0, 2], away[1, 3]))
        slowest = self._pace[nodes].max()
        transfer = 1.5 * BYTES / 12.5e3
        time = 5 + 5 * slowest + steps + (0.7 + 0.3 * slowest) * transfer
        self._factors = time / (10 + transfer)

    def _next_end(self) -> float:
        return self._running[0][0] if self._running else math.inf

    def _end_one(self) -> float:
        """Ends the job of others that is the next to end, and says when."""
        now, _, nodes = heapq.heappop(self._running)
        self._free[nodes] = True
        return now

    def _start_waiting(self, now: float) -> None:
        """Starts the jobs of others that fit, in the order in which they came."""
        supply = int(self._free.sum())
        for count in list(self._waiting):
            if count <= supply:
                self._waiting.remove(count)
                until = now + min(self.random.lognormal(4.4, 1.7), 7200)
                heapq.heappush(self._running, (until, self._started, self._take(count)))
                self._started += 1
                supply -= count

    def _take(self, count: int) -> np.ndarray:
        """Takes so many free nodes under the lowest switch that has them."""
        for width in (16, 64, 256):
            supply = self._free.reshape(-1, width).sum(axis=1)
            if supply.max() >= count:
                break
        first = width * int(np.where(supply >= count, supply, 257).argmin())
        free = first + np.flatnonzero(self._free[first : first + width])
        leaves = np.bincount(free // 16, minlength=16)
        nodes = np.sort(free[np.argsort(-leaves[free // 16], kind="stable")[:count]])
        self._free[nodes] = False
        return nodes


#: Monitoring of a node: its period and the time that it needs of a core.
_EXPORTERS = ((15.0, 0.09), (30.0, 0.2))
#: What all nodes start at the same time, likewise.
_CHECKS = ((60.0, 0.3), (300.0, 2.4))


@dataclass
class PeriodicMonitoring:
    """Monitoring at fixed periods, on four nodes where ranks poll on all cores.

    - A metrics exporter: every 15 s (Prometheus' example configuration), 0.09 s of a core (80 and
      99 ms in issues 1880 and 1212 of node_exporter). One for GPUs: every 30 s (the default of
      dcgm-exporter), 0.2 s (assumed). Each node has its own phases, which stay.
    - Scripts of cron: each minute, 0.3 s (assumed). The node health check: every 300 s (manual of
      LBNL NHC), 0.6 s with 16 cores and 9.5 s with 64 (its issue 118); here 2.4 s, between them.
      All nodes run it at the same time, for less impact (slurm.conf(5)). So does cron, as the
      clocks of the nodes agree.

    A job of monitoring and a rank get half of a core each, so it lasts for twice its time. A slice
    of 3 ms (Linux with eight or more cores) exceeds any of these collectives, so a rank that does
    not run stops all others at any size. Slices of two nodes are not aligned: both ranks run for a
    quarter of the time. Those of checks are, as they start together (assumed). Needs differ by 20
    %, from time to time (assumed). A period that is a multiple of a run's length hits one size
    again and again. Petrini, Kerbyson, Pakin: The Case of the Missing Supercomputer Performance
    (SC 2003); Ferreira, Bridges, Brightwell: Characterizing Application Sensitivity to OS
    Interference Using Kernel-Level Noise Injection (SC 2008), who find rare and long noise worse.
    """

    random: np.random.Generator
    _agents: list[list[float]] = field(default_factory=list, init=False)

    def slowdown(self, start: float, duration: float) -> float:
        """Of a run that would take so long on an idle machine; ``start`` never decreases."""
        if not self._agents:
            for period, need in _EXPORTERS * 4 + _CHECKS:
                since = start - self.random.uniform(0, period)
                self._agents.append([period, need, since, since + self._lasts(need)])
        now, left = start, duration
        while left > 1e-9:
            active, change = 0, math.inf
            for agent in self._agents:
                period, need, since, until = agent
                if until <= now:  # The next one, or the last that has begun after a long gap.
                    since += period * max(1.0, math.floor((now - since) / period))
                    until = since + self._lasts(need)
                    agent[2:] = since, until
                if since <= now < until:
                    active += 1
                    change = min(change, until)
                elif since > now:
                    change = min(change, since)
            pace = 0.5**active
            step = min(left / pace, max(change - now, 1e-6))
            now += step
            left -= step * pace
        return (now - start) / duration * math.exp(self.random.normal(0, 0.01))

    def _lasts(self, need: float) -> float:
        """How long a job of monitoring lasts on half of a core."""
        return 2 * need * math.exp(self.random.normal(0, 0.2))
