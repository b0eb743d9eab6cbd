"""Eight noise models from the literature.

They were written before their authors had read any of the package's statistics: the models in
simulated.py might have been chosen to pass. The constants come from the papers named below or from
the reckoning beside them, not from trying which ones pass. Since ``Interruptions`` and
``Congestion`` were written, some choices were made with their results in view; which, says
docs/method.md. ``HashCollisions`` and ``LossTimeouts`` came later; their author knew neither the
code of the package nor any earlier result. ``UnpinnedRanks`` and ``MemoryNeighbours`` came last;
their author knew only this file. Times are in seconds; a slowdown is a factor of the time on an
idle machine.
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


#: Message sizes that a run measures one after the other, as in simulated.py: 8 B to 4 MiB.
_SIZES = 8


@dataclass
class PhysicalPages:
    """Physical pages that a launch gets; memory fragments until a node compacts it.

    Four nodes with four ranks each; a rank has three buffers of 4 MiB. A launch keeps about half
    of the pages of the last one (assumed).

    - 8 B to 64 KiB: each of four hops takes up to 30 % longer (assumed), by the slice of the cache
      that has the line. Half of the time is such latency, less at larger sizes.
    - 256 KiB: 192 pages in an L2 cache of 1 MiB with 16 colours and 16 ways. A colour with more
      pages than ways misses. A miss takes 2.5 times as long as a hit, and half of the time is
      memory: 0.5 * (2.5 - 1) = 0.75.
    - 1 and 4 MiB: 10 and 25 % slower without huge pages, as 12 MiB exceed the 1,536 entries of a
      TLB, and 3 MiB do not.

    A launch uses up 5 % of the huge pages (assumed). Below 30 % a node compacts its memory: 0.6 s
    at 1.5 times (1,200 half full regions of 2 MiB, at 2 GB/s). Hunold, Carpen-Amarie: Reproducible
    MPI Benchmarking Is Still Not as Easy as You Think (TPDS 2016); Kalibera, Bulej, Tuma:
    Benchmark Precision and Random Initial State (SPECTS 2005); Kessler, Hill: Page Placement
    Algorithms for Large Real-Indexed Caches (TOCS 1992); Navarro et al.: Practical, Transparent
    Operating System Support for Superpages (OSDI 2002), who gain 30 % and more.
    """

    random: np.random.Generator
    _calls: int = field(default=0, init=False)
    _compaction: float = field(default=-math.inf, init=False)

    def __post_init__(self) -> None:
        self._supply = self.random.uniform(0.3, 0.9, 4)
        self._placed = self._place()

    def slowdown(self, start: float, duration: float) -> float:
        """Of the next size of a run; ``start`` never decreases."""
        if self._calls % _SIZES == 0:
            self._launch(start)
        factor = self._factors[self._calls % _SIZES] * math.exp(self.random.normal(0, 0.01))
        self._calls += 1
        overlap = min(start + duration, self._compaction + 0.6) - max(start, self._compaction)
        return float(factor * (1 + 0.5 * max(overlap, 0.0) / duration))

    def _place(self) -> list[np.ndarray]:
        """Draws which regions are huge pages, the colours of small ones, and the hops."""
        huge = self.random.random((16, 6)) < np.repeat(self._supply, 4)[:, None]
        colours = self.random.integers(16, size=(16, 3, 64))
        return [huge, colours, self.random.uniform(0, 0.3, 4)]

    def _launch(self, start: float) -> None:
        self._supply *= np.exp(-self.random.exponential(0.05, 4))
        if (self._supply < 0.3).any():
            self._compaction = start + self.random.uniform(0, 1.5)
        self._supply[self._supply < 0.3] = 0.9
        self._placed = [
            np.where(self.random.random(old.shape) < 0.5, old, new)
            for old, new in zip(self._placed, self._place(), strict=True)
        ]
        huge, colours, hops = self._placed
        colours = np.where(huge[:, ::2, None], np.arange(64) % 16, colours)
        counts = (colours.reshape(16, -1, 1) == np.arange(16)).sum(axis=1)
        conflicts = np.where(counts > 16, counts, 0).sum(axis=1).max() / 192
        small = np.array([0.5, 0.5, 0.4, 0.3, 0.1]) * hops.mean()
        walks = [0.1 * (~huge[:, ::2]).mean(axis=1).max(), 0.25 * (~huge).mean(axis=1).max()]
        self._factors = 1 + np.array([*small, 0.75 * conflicts, *walks])


@dataclass
class ThermalCap:
    """Nodes heat up while they are busy; firmware caps the clock of one that is too hot.

    Ranks of four nodes poll, so all are busy, and the slowest clock sets the pace. A temperature
    follows its target with a time constant of 30 s (assumed): 88 C with a spread of 4 K between
    nodes at full power (assumed), 45 (idle) to 80 C (just used) at the start. Firmware reads whole
    degrees once a second, with an error of 0.3 K. From 90 C on the clock is capped to 0.84, the
    difference between processors of one type in the paper; the cap is lifted at 87 C. Capped, the
    power is 0.3 + 0.7 * 0.84**3 = 0.71. Leakage lowers the clock by 0.15 % for each degree. Of the
    time, 0.8 (8 B) to 0.3 (4 MiB) follow the clock. Acun, Miller, Kale: Variation Among Processors
    Under Turbo Boost in HPC Systems (ICS 2016).
    """

    random: np.random.Generator
    _calls: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._target = self.random.normal(88, 4, 4)
        self._celsius = self.random.uniform(45, np.minimum(80, self._target))
        self._capped = np.zeros(4, dtype=bool)
        self._now = self._read_at = -math.inf

    def slowdown(self, start: float, duration: float) -> float:
        """Of the next size of a run, by the clocks at its start, which never decreases."""
        del duration
        if self._calls:
            goal = np.where(self._capped, 25 + 0.71 * (self._target - 25), self._target)
            self._celsius = goal + (self._celsius - goal) * math.exp((self._now - start) / 30)
        self._now = start
        if start - self._read_at >= 1:
            reading = np.floor(self._celsius + self.random.normal(0, 0.3, 4))
            self._capped = (reading >= 90) | (self._capped & (reading > 87))
            self._read_at = start
        clock = (1 - 0.0015 * (self._celsius - 60)) * np.where(self._capped, 0.84, 1)
        share = np.linspace(0.8, 0.3, _SIZES)[self._calls % _SIZES]
        self._calls += 1
        factor = 1 - share + share / clock.min()
        return float(factor * math.exp(self.random.normal(0, 0.01)))


#: The sizes themselves, in bytes.
BYTES = 2.0 ** np.array([3, 6, 10, 13, 16, 18, 20, 22])


@dataclass
class HashCollisions:
    """Links that a launch gets: switches hash a connection, with its port, to one of the uplinks.

    16 nodes with 100 Gbit/s, four on each of four leaf switches with eight uplinks; ranks go round
    the leaves. Flows share a link equally, and the slowest one sets the pace.

    - 64 KiB to 4 MiB: a ring, all of whose 16 flows use uplinks. 30 steps of 5 us (assumed) and
      15/8 of the message at 12.5 GB/s: 6, 21, 51 and 81 % of the time follow the bandwidth.
    - Up to 8 KiB: recursive doubling on connections of its own, four steps of 5 us. Two flows of
      others fill a link, and 100 KB queue up there (assumed): 8 us more on 20 us.

    A link has 0.25 flows of others on average (assumed). They last for 25 s: half of the bytes are
    in flows no longer than that (Kandula et al., The Nature of Datacenter Traffic, IMC 2009). Al-
    Fares et al.: Hedera (NSDI 2010); Hoefler, Schneider, Lumsdaine: Multistage Switches Are Not
    Crossbars (CLUSTER 2008), who get 55 to 60 % of the bandwidth with fixed routes; Geoffray,
    Hoefler: Adaptive Routing Strategies (HOTI 2008): 38 % on 512 nodes; Gangidi et al.: RDMA over
    Ethernet for Distributed AI Training at Meta Scale (SIGCOMM 2024).
    """

    random: np.random.Generator
    _calls: int = field(default=0, init=False)
    _at: float = field(default=-math.inf, init=False)

    def __post_init__(self) -> None:
        self._others = np.zeros((2, 4, 8), dtype=int)
        transfer = 15 / 8 * BYTES[4:] / 12.5e9
        self._share = transfer / (30 * 5e-6 + transfer)

    def slowdown(self, start: float, duration: float) -> float:
        """Of the next size of a run; ``start`` never decreases."""
        del duration
        if self._calls % _SIZES == 0:
            self._launch(start)
        factor = self._factors[self._calls % _SIZES] * math.exp(self.random.normal(0, 0.01))
        self._calls += 1
        return float(factor)

    def _launch(self, start: float) -> None:
        """Renews some flows of others, on uplinks and downlinks, and draws the uplinks."""
        kept = self.random.random(self._others.shape) < math.exp((self._at - start) / 25)
        self._others = np.where(kept, self._others, self.random.poisson(0.25, kept.shape))
        self._at = start
        others = self._others.max(axis=0)
        doubling, ring = (
            (self.random.integers(8, size=(4, 4, 1)) == np.arange(8)).sum(axis=1) for _ in range(2)
        )
        queue = 0.4 * float((others[doubling > 0] >= 2).any())
        load = (ring + others)[ring > 0].max()
        self._factors = np.array([1 + queue] * 4 + list(1 + self._share * (load - 1)))


@dataclass
class LossTimeouts:
    """Busy spells of a shared network, in which packets get lost and TCP waits for its timer.

    Four leaders with 10 Gbit/s, two steps of 50 us (assumed) with four messages each: 16 links.
    Of 150 links, 665 spells a day last for over 10 s; 90 % last for up to 2 s, the longest for 382
    s (Kandula et al., IMC 2009). A power law of exponent 1.2 (Willinger et al., Self-Similarity
    Through High-Variability, ToN 1997) from 0.29 s fits: 1.5 % last for over 10 s, their mean is
    1.3 s. 16 links see 71 such a day, so there is a spell every 17.5 s, 16 s after the last one;
    1 % of the time it is on the two links of a message. It loses 1e-5 of its packets (Guo et al.,
    Pingmesh, SIGCOMM 2015: 1e-5 to 1e-4), so 1e-3 in a spell.

    A lost packet that was alone costs 200 ms, the minimum of Linux; one of the last three of a
    message costs 8 ms by a loss probe (RFC 8985; two ticks of 250 Hz). Earlier ones are repaired
    at once, but at 1e-3 and 100 us TCP gets 4.5 of 10 Gbit/s (Mathis et al., CCR 1997): one of two
    transfers takes 2.2 times as long. 10 % of repeats are lost, too (assumed); timers double.
    Vasudevan et al.: Safe and Effective Fine-grained TCP Retransmissions (SIGCOMM 2009).
    """

    random: np.random.Generator
    _calls: int = field(default=0, init=False)
    _busy: bool = field(default=False, init=False)
    _until: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        transfer = 2 * BYTES * 8 / 1e10
        busy = 100e-6 + (1 + 2.2) / 2 * transfer
        self._pace = (100e-6 + transfer) / busy
        exposed = np.minimum(np.ceil(BYTES / 1460), 3)
        self._losses = 1e-3 * exposed / busy
        self._wait = np.where(exposed == 1, 0.2, 0.008)

    def slowdown(self, start: float, duration: float) -> float:
        """Of the next size of a run; ``start`` never decreases."""
        size = self._calls % _SIZES
        if self._calls == 0:
            self._until = start + self.random.exponential(16)
        self._calls += 1
        now, left = start, duration
        while left > 1e-9:
            while self._until <= now:
                self._busy = not self._busy
                self._until += self._spell() if self._busy else self.random.exponential(16)
            pace = self._pace[size] if self._busy else 1.0
            step = min(left / pace, self._until - now)
            loss = self.random.exponential(1 / self._losses[size]) if self._busy else math.inf
            now += min(step, loss)
            left -= min(step, loss) * pace
            if loss < step:
                repeats = int(self.random.geometric(0.9)) - 1
                now += self._wait[size] + 0.2 * (2**repeats - 1)
        return float((now - start) / duration * math.exp(self.random.normal(0, 0.01)))

    def _spell(self) -> float:
        """A truncated Pareto, by its inverse distribution function."""
        tail = (0.29 / 382) ** 1.2
        return 0.29 * math.pow(1 - self.random.random() * (1 - tail), -1 / 1.2)


@dataclass
class UnpinnedRanks:
    """Sockets on which a scheduler starts the ranks of a launch, and moves some while it runs.

    Four nodes with four ranks, which Linux (5.11 on) starts on one socket: that of the network
    card or the far one, drawn for each launch and node. A rank moves across every 20 s, and back
    after 2 s (NUMA balancing scans once a second). Recursive halving and doubling: four steps of
    0.5 us in a node, 1 us between sockets; four of 2 us between nodes, 14 % more for each far end;
    1.5 times the message at 12.5 GB/s, 1.2 times as long if a card is far. If a rank is away from
    its memory, half of that has 60 % of the bandwidth: 1 + 0.5 * (1 / 0.6 - 1) = 1.33 (all but the
    14 % assumed). Smolyar et al.: IOctopus (ASPLOS 2020): far cards cost up to 1.28 times the
    latency, 2.7 times the throughput; Mazouz, Touati, Barthou: Thread Pinning (HPCS 2011).
    """

    random: np.random.Generator
    _calls: int = field(default=0, init=False)

    def slowdown(self, start: float, duration: float) -> float:
        """Of the next size of a run, by the sockets in its middle; ``start`` never decreases."""
        size, middle = self._calls % _SIZES, start + duration / 2
        if size == 0:
            self._socket = self.random.random((4, 1)) < 0.5
            self._moved, self._at = np.zeros((4, 4), dtype=bool), start
        kept = math.exp((self._at - middle) * (1 / 20 + 1 / 2))
        self._moved = self.random.random((4, 4)) < (1 - kept) / 11 + kept * self._moved
        self._calls, self._at = self._calls + 1, middle
        far = (self._socket ^ self._moved).astype(int)
        split = abs(far[:, ::2] - far[:, 1::2]).max() + abs(far[:, :2] - far[:, 2:]).max()
        ends = (far[::2] + far[1::2]).max() + (far[:2] + far[2:]).max()
        pace = 4 / 3 if self._moved.any() else 1.2 if far.any() else 1
        transfer = 1.5 * BYTES[size] / 12.5e3
        factor = (10 + 2 * (0.5 * split + 0.28 * ends) + pace * transfer) / (10 + transfer)
        return float(factor * math.exp(self.random.normal(0, 0.01)))


@dataclass
class MemoryNeighbours:
    """Up to two jobs on other cores of the nodes, which need the memory in a phase of their steps.

    Jobs last for exp(4.4) = 81 s (median) and 346 s (mean), log-normal with a spread of 1.7 (Li,
    Groep, Wolters: Workload Characteristics of a Multi-cluster Supercomputer, JSSPP 2004), gaps
    for 346 s, too. All steps of a job take the same 0.1 to 30 s, log-uniform, of which the phase
    is 20 to 80 %; in it transfers take 1 to 3 times as long. They are 14 to 91 % of a ring of 30
    steps of 2 us at 12.5 GB/s from 64 KiB on; below, 5 % are misses (all assumed). Groves, Grant,
    Arnold: NiMC (IPDPS 2016): up to 3 times; Denis, Jeannot, Swartvagher (ICPP 2021): 10 times.
    """

    random: np.random.Generator
    _calls: int = field(default=0, init=False)

    def slowdown(self, start: float, duration: float) -> float:
        """The median of the next size of a run; ``start`` never decreases."""
        if self._calls == 0:  # A day before, as jobs may be under way.
            self._jobs = [self._draw(start - 86400), self._draw(start - 86400)]
        for slot in range(2):
            while self._jobs[slot][1] <= start:
                self._jobs[slot] = self._draw(self._jobs[slot][1])
        jobs = [job for job in self._jobs if job[0] <= start]
        share = max(0.05, 1 / (1 + 60e-6 * 12.5e9 * 8 / 15 / float(BYTES[self._calls % _SIZES])))
        self._calls += 1
        now, factors = start, []
        for _ in range(11):
            excess = [more for since, _, step, busy, more in jobs if (now - since) % step < busy]
            factors.append(1 + share * max(excess, default=0.0))
            now += duration / 11 * factors[-1]
        return sorted(factors)[5] * math.exp(self.random.normal(0, 0.01))

    def _draw(self, after: float) -> tuple[float, float, float, float, float]:
        """The next job: its start and end, the length of a step and of its phase, the excess."""
        since = after + self.random.exponential(346)
        step, until = 0.1 * 300 ** self.random.random(), since + self.random.lognormal(4.4, 1.7)
        return since, until, step, step * self.random.uniform(0.2, 0.8), self.random.uniform(0, 2)
