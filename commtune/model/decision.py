"""What a confirmation is to confirm, and how often it may look at what it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from commtune.model import Configuration
from commtune.model.conclusion import Ablation

# The blocks are looked at a few times. Each look has a share of the error rate of its own, so that
# looking early costs a little and is never free: over all looks, candidates and sizes, all
# intervals hold together at the campaign's level (Bonferroni). A candidate that is decided, or
# that the blocks left can't decide any more, is dropped at a look, and its runs go to the others.
#: The share of the error rate that each look may spend, and how far the blocks are by then. Early
#: looks get little: they are to end what is plain, the last one is to find what is small.
LOOK_SHARES = (0.15, 0.25, 0.60)
_LOOK_TIMES = (0.4, 0.7, 1.0)
#: With fewer blocks than this, one look at the end.
_FEWEST_FOR_LOOKS = 12
#: What the first confirmation of a campaign may spend of the error rate. A second one, with a
#: larger budget because the first told too little, has half of the rest, and so on: whoever asks
#: again until the answer pleases must not find gains that are not there.
_FIRST_SHARE = 0.8


@dataclass(frozen=True)
class Look:
    """One look at the blocks, stored so that a resumed confirmation never looks again.

    Attributes:
        made: complete blocks that it saw.
        planned: complete blocks that were planned for the end, from then on.
        stopped: candidates that ended here, by place in the decision, with the reason
            (``decided``, ``futile`` or ``budget``).
    """

    made: int
    planned: int
    stopped: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Decision:
    """What is to be confirmed, decided before the first block runs.

    Attributes:
        sizes: bytes that each candidate is for, the only ones it is compared at; where empty, as
            of older versions, all of them.
        blocks: how many blocks were planned at first.
        first_block: blocks with smaller numbers were run for something else.
        budget_s: the wall seconds that the number of blocks was made for.
        looks: what was looked at so far.
        number: how many confirmations the campaign had before.
        error_share: share of the campaign's error rate that this confirmation may spend.
        budget: limits that the campaign had then, those that were given.
        ablations: how the candidates were made small.
    """

    candidates: tuple[Configuration, ...] = ()
    blocks: int = 0
    first_block: int = 0
    budget_s: float = 0.0
    looks: tuple[Look, ...] = ()
    number: int = 0
    error_share: float = 1.0
    budget: Mapping[str, float] = field(default_factory=dict)
    ablations: tuple[Ablation, ...] = ()
    sizes: tuple[tuple[int, ...], ...] = ()

    def sizes_of(self, candidate: Configuration, measured: tuple[int, ...]) -> tuple[int, ...]:
        """The sizes (bytes) that a candidate is compared at, of those that are measured."""
        return self.sizes[self.candidates.index(candidate)] if self.sizes else measured

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of the campaign's error rate that each look may spend."""
        shares = LOOK_SHARES if self.blocks >= _FEWEST_FOR_LOOKS else (1.0,)
        return tuple(share * self.error_share for share in shares)

    @property
    def times(self) -> tuple[float, ...]:
        """The share of the blocks that each look waits for."""
        return _LOOK_TIMES if self.blocks >= _FEWEST_FOR_LOOKS else (1.0,)

    def stop_of(self, place: int) -> tuple[int, str] | None:
        """The look at which a candidate ended, and why."""
        for number, look in enumerate(self.looks):
            if place in look.stopped:
                return number, look.stopped[place]
        return None

    def made(self, place: int) -> int:
        """The complete blocks that a candidate took part in."""
        stop = self.stop_of(place)
        looks = self.looks if stop is None else self.looks[: stop[0] + 1]
        return looks[-1].made if looks else 0

    def open(self) -> tuple[Configuration, ...]:
        """The candidates that no look ended."""
        return tuple(c for i, c in enumerate(self.candidates) if self.stop_of(i) is None)

    def after(self, look: Look) -> Decision:
        """With one more look."""
        return replace(self, looks=(*self.looks, look))


def error_share(number: int) -> float:
    """The share of a campaign's error rate for its confirmation with a number, from 0.

    The shares of any number of confirmations add up to less than 1.
    """
    return _FIRST_SHARE if number == 0 else (1 - _FIRST_SHARE) / 2**number
