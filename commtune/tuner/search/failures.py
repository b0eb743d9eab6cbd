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

    Failures count only where the default works: those of a session in which it then fails are
    taken back (``default_failed``).
    """

    failed: list[dict[str, str | None]] = field(default_factory=list)
    proven: set[Item] = field(default_factory=set)
    aside: set[Item] = field(default_factory=set)
    unclear: list[Item] = field(default_factory=list)
    #: Of each of ``failed``, the session.
    _sessions: list[str] = field(default_factory=list)
    #: Those in which the default failed last.
    _doubted: set[str] = field(default_factory=set)

    def succeeded(self, assignment: Mapping[str, str | None]) -> set[Item]:
        """A value that works is not the culprit by itself; returns those that come back."""
        self.proven.update(assignment.items())
        cleared = self.aside & self.proven
        self.aside -= cleared
        return cleared

    def failure(self, assignment: Mapping[str, str | None], session: str) -> set[Item]:
        """Takes in a failure; returns the values newly set aside."""
        self.failed.append(dict(assignment))
        self._sessions.append(session)
        suspects = self._suspects() - self.aside
        self.aside |= suspects
        self.unclear += sorted(suspects, key=str)
        return suspects

    def default_worked(self, session: str) -> None:
        """Lets failures of a session count again."""
        self._doubted.discard(session)

    def default_failed(self, session: str) -> list[dict[str, str | None]]:
        """Takes back the failures of a session; returns them."""
        self._doubted.add(session)
        told = list(zip(self.failed, self._sessions, strict=True))
        kept = [(failed, where) for failed, where in told if where != session]
        self.failed = [failed for failed, _ in kept]
        self._sessions = [where for _, where in kept]
        self.aside &= self._suspects()
        return [failed for failed, where in told if where == session]

    def is_doubted(self, session: str) -> bool:
        """Whether the default failed last in a session: no failure counts there."""
        return session in self._doubted

    def _suspects(self) -> set[Item]:
        counted = Counter(item for failed in self.failed for item in failed.items())
        return {item for item, n in counted.items() if n >= 2} - self.proven

    def blocks(self, assignment: Mapping[str, str | None]) -> bool:
        """Whether a configuration holds a value that was set aside."""
        return not self.aside.isdisjoint(assignment.items())
