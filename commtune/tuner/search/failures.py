"""Keeps the failures of the search, and sets aside the values that probably caused them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

#: A parameter and its value; ``None`` for unset.
Item = tuple[str, str | None]


@dataclass
class Failures:
    """Failed assignments, and the values that are set aside for them.

    A value is set aside if two failed assignments share it and no working one has it. Another
    value may be the cause, so each is tried by itself once (``to_isolate``), and comes back if
    that works. Failures count only where the default works: those of a session in which it then
    fails are withdrawn.

    Attributes:
        proven: values that worked in some run.
        aside: values that are not proposed.
    """

    failed: list[dict[str, str | None]] = field(default_factory=list)
    proven: set[Item] = field(default_factory=set)
    aside: set[Item] = field(default_factory=set)
    to_isolate: list[Item] = field(default_factory=list)
    #: The session of each of ``failed``.
    _sessions: list[str] = field(default_factory=list)
    #: Sessions in which the last run of the default failed.
    _doubted: set[str] = field(default_factory=set)

    def add_success(self, assignment: Mapping[str, str | None]) -> set[Item]:
        """Adds a run that worked; returns the values that come back for it."""
        self.proven.update(assignment.items())
        cleared = self.aside & self.proven
        self.aside -= cleared
        return cleared

    def add_failure(self, assignment: Mapping[str, str | None], session: str) -> set[Item]:
        """Adds a failure; returns the values newly set aside."""
        self.failed.append(dict(assignment))
        self._sessions.append(session)
        suspects = self._suspects() - self.aside
        self.aside |= suspects
        self.to_isolate += sorted(suspects, key=str)
        return suspects

    def trust_session(self, session: str) -> None:
        """Makes further failures of a session count again, after the default worked there."""
        self._doubted.discard(session)

    def withdraw_failures(self, session: str) -> list[dict[str, str | None]]:
        """Removes the failures of a session in which the default failed; returns them."""
        self._doubted.add(session)
        told = list(zip(self.failed, self._sessions, strict=True))
        kept = [(failed, where) for failed, where in told if where != session]
        self.failed = [failed for failed, _ in kept]
        self._sessions = [where for _, where in kept]
        self.aside &= self._suspects()
        return [failed for failed, where in told if where == session]

    def is_doubted(self, session: str) -> bool:
        """Whether the last run of the default failed in a session, so no failure counts there."""
        return session in self._doubted

    def _suspects(self) -> set[Item]:
        counted = Counter(item for failed in self.failed for item in failed.items())
        return {item for item, n in counted.items() if n >= 2} - self.proven

    def excludes(self, assignment: Mapping[str, str | None]) -> bool:
        """Whether a configuration holds a value that was set aside."""
        return not self.aside.isdisjoint(assignment.items())
