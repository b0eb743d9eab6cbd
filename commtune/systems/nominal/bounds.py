"""What models answer with."""

from __future__ import annotations

from dataclasses import dataclass, replace

from commtune.systems.nominal.fabric import Fabric
from commtune.systems.units import format_bandwidth

#: Shares from here on are above the nominal, and not only beside it by rounding.
_ABOVE = 1.005


@dataclass(frozen=True)
class Nominal:
    """A nominal bandwidth, in bytes per second, or why there is none.

    Attributes:
        bytes_per_s: bus bandwidth, as the benchmark's records count it; ``None`` where nothing
            can be said, and `why` says why.
        model: name of the model.
        why: from which links, with numbers.
        limit: what no algorithm and no routing exceed, where that is more.
        limit_why: from which links that is.
        origin: where the links are from.
        sources: names of the description's sources.
    """

    bytes_per_s: float | None
    model: str = ""
    why: str = ""
    limit: float | None = None
    limit_why: str = ""
    assumptions: tuple[str, ...] = ()
    origin: str = ""
    sources: tuple[str, ...] = ()

    def share(self, bytes_per_s: float) -> float | None:
        """The share of it that a measured bus bandwidth reached, 1 for all of it."""
        return bytes_per_s / self.bytes_per_s if self.bytes_per_s else None

    def reached(self, bytes_per_s: float) -> str:
        """A measured bus bandwidth in words: ``62 % of nominal 100 Gb/s (...)``."""
        share = self.share(bytes_per_s)
        if share is None:
            return f"no nominal bandwidth: {self.why}"
        said = f"{share:.0%} of nominal {self}"
        return f"{said}; above it, so that model does not hold here" if share > _ABOVE else said

    def __str__(self) -> str:
        if self.bytes_per_s is None:
            return f"none: {self.why}"
        return f"{format_bandwidth(self.bytes_per_s)} by {self.model}"


def no_nominal(why: str) -> Nominal:
    """No nominal bandwidth, and the reason."""
    return Nominal(None, why=why)


@dataclass(frozen=True)
class Bound:
    """A bus bandwidth by one model, before it is said of which machine."""

    bytes_per_s: float
    model: str
    why: str
    limit: float | None = None
    limit_why: str = ""
    assumptions: tuple[str, ...] = ()

    def with_limit(self, limit: float, why: str) -> Bound:
        """The same below a limit, which is kept where it is more."""
        if limit <= self.bytes_per_s * (1 + 1e-9):
            return self
        return replace(self, limit=limit, limit_why=why)

    def as_nominal(self, fabric: Fabric, assumptions: tuple[str, ...]) -> Nominal:
        """What is said to people."""
        return Nominal(
            self.bytes_per_s,
            self.model,
            self.why,
            self.limit,
            self.limit_why,
            assumptions,
            fabric.origin,
            fabric.sources,
        )
