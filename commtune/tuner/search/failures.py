"""What failed in the search, and the values that are set aside for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

#: A parameter and its value; ``None`` for unset.
Item = tuple[str, str | None]


@dataclass
class Failures:
    """What failed, and the values that two failures share and no success has.

    Such values are set aside. They may have been in bad company only, so each is to be tried by
    itself once (``unclear``), and those that work come back.
    """

    failed: list[dict[str, str | None]] = field(default_factory=list)
    proven: set[Item] = field(default_factory=set)
    aside: set[Item] = field(default_factory=set)
    unclear: list[Item] = field(default_factory=list)

    def succeeded(self, assignment: Mapping[str, str | None]) -> set[Item]:
        """A value that works is not the culprit by itself; returns those that come back."""
        self.proven.update(assignment.items())
        cleared = self.aside & self.proven
        self.aside -= cleared
        return cleared

    def failure(self, assignment: Mapping[str, str | None]) -> set[Item]:
        """Takes in a failure; returns the values newly set aside."""
        self.failed.append(dict(assignment))
        counted = Counter(item for failed in self.failed for item in failed.items())
        suspects = {item for item, n in counted.items() if n >= 2} - self.proven - self.aside
        self.aside |= suspects
        self.unclear += sorted(suspects, key=str)
        return suspects

    def blocks(self, assignment: Mapping[str, str | None]) -> bool:
        """Whether a configuration holds a value that was set aside."""
        return not self.aside.isdisjoint(assignment.items())
