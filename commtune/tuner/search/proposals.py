"""Decides which configuration the search tries next, and passes results on.

First come those that the user listed, then values that were set aside, each by itself, then the
proposals of the strategy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from commtune.model import DEFAULT, Configuration, Origin
from commtune.tuner.search.model import TableModel
from commtune.tuner.search.standings import Speedups
from commtune.tuner.search.strategies.strategy import Proposal, Strategy, active_values

#: The latest failures that ``rebuild`` adds to the model; all count for what is set aside.
_MOST_FAILED = 100


#: A parameter and its value; ``None`` for unset.
Item = tuple[str, str | None]


@dataclass
class _Failures:
    """Failed assignments, and the values that are set aside for them.

    A value is set aside if two failed assignments share it and no working one has it. Another
    value may be the cause, so each is tried by itself once (``to_isolate``), and comes back if
    that works. Failures count only where the default works: those of a session in which it then
    fails are withdrawn.

    Attributes:
        proven: values that worked in some run.
        aside: values that are not proposed.
    """

    proven: set[Item] = field(default_factory=set)
    aside: set[Item] = field(default_factory=set)
    to_isolate: list[Item] = field(default_factory=list)
    #: Failed assignments, each with its session.
    _told: list[tuple[dict[str, str | None], str]] = field(default_factory=list)
    #: Sessions in which the last run of the default failed.
    _doubted: set[str] = field(default_factory=set)

    @property
    def failed(self) -> list[dict[str, str | None]]:
        """The assignments that failed, in order."""
        return [failed for failed, _ in self._told]

    def add_success(self, assignment: Mapping[str, str | None]) -> set[Item]:
        """Adds a run that worked; returns the values that come back for it."""
        self.proven.update(assignment.items())
        cleared = self.aside & self.proven
        self.aside -= cleared
        return cleared

    def add_failure(self, assignment: Mapping[str, str | None], session: str) -> set[Item]:
        """Adds a failure; returns the values newly set aside."""
        self._told.append((dict(assignment), session))
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
        withdrawn = [failed for failed, where in self._told if where == session]
        self._told = [one for one in self._told if one[1] != session]
        self.aside &= self._suspects()
        return withdrawn

    def is_doubted(self, session: str) -> bool:
        """Whether the last run of the default failed in a session, so no failure counts there."""
        return session in self._doubted

    def _suspects(self) -> set[Item]:
        counted = Counter(item for failed in self.failed for item in failed.items())
        return {item for item, n in counted.items() if n >= 2} - self.proven

    def excludes(self, assignment: Mapping[str, str | None]) -> bool:
        """Whether a configuration holds a value that was set aside."""
        return not self.aside.isdisjoint(assignment.items())


class Search:
    """An ask-and-tell interface over model, strategy and failures.

    ``ask`` never returns a configuration that was returned or remembered before, one that the
    space forbids, or one with a value that is set aside. It returns ``None`` when nothing is left.

    Args:
        model: is updated before the strategy is told.
        first: configurations to try before all others (site settings).
    """

    def __init__(
        self, model: TableModel, strategy: Strategy, first: Sequence[Configuration] = ()
    ) -> None:
        self.space = model.encoding.space
        self.model = model
        self.failures = _Failures()
        self._strategy = strategy
        self._known: set[Configuration] = {DEFAULT}
        self._first = list(first)

    def remember(self, configuration: Configuration) -> None:
        """Marks a configuration as known, so that it is not proposed."""
        self._known.add(configuration)

    def ask(self) -> Proposal | None:
        """Returns the next configuration to try, or ``None`` when nothing is left."""
        proposal = self._listed() or self._isolated() or self._strategy.ask(self.is_open)
        if proposal is not None:
            self._known.add(proposal.configuration)
            self._strategy.wait_for(proposal.configuration)
        return proposal

    def add_success(self, configuration: Configuration, session: str) -> set[Item]:
        """Adds a run that worked, without its speedups; returns the values that come back."""
        if configuration.is_default:
            self.failures.trust_session(session)
        return self.failures.add_success(active_values(self.space, configuration))

    def tell(self, configuration: Configuration, speedups: Speedups, session: str) -> set[Item]:
        """Adds a run that worked, with its log speedups; returns as ``add_success``."""
        self.model.add([(configuration, speedups)])
        if not configuration.is_default:
            self._strategy.tell(configuration, speedups)
        return self.add_success(configuration, session)

    def tell_failed(self, configuration: Configuration, session: str) -> set[Item]:
        """Adds a failure of a configuration; returns the values that are set aside for it."""
        self.model.add_failed(configuration)
        self._strategy.tell_failed(configuration)
        return self.failures.add_failure(active_values(self.space, configuration), session)

    def withdraw_failures(self, session: str) -> list[Configuration]:
        """Withdraws the failures of a session; the strategy forgets them at the next ``rebuild``.

        Returns their configurations.
        """
        back = self.failures.withdraw_failures(session)
        return [self.space.configuration(assignment) for assignment in back]

    def failed_once(self, configuration: Configuration) -> bool:
        """Whether a configuration failed exactly once."""
        return self.failures.failed.count(active_values(self.space, configuration)) == 1

    def forget(self, configuration: Configuration) -> None:
        """Notes that a run was lost, so its configuration is no longer pending."""
        self._strategy.forget(configuration)

    def rebuild(self, runs: Sequence[tuple[Configuration, Speedups]]) -> None:
        """Replaces everything that was told by all runs so far."""
        self.model.forget_all()
        self.model.add(runs)
        for failed in self.failures.failed[-_MOST_FAILED:]:
            self.model.add_failed(self.space.configuration(failed))
        tried = [run for run in runs if not run[0].is_default]
        self._strategy.rebuild(tried, self.failures.failed)

    def leave_out_idle(
        self, runs: Sequence[tuple[Configuration, Speedups]], *, is_strict: bool
    ) -> None:
        """Finds the idle parameters anew, and rebuilds without them.

        Args:
            is_strict: whether time is short (see ``TableModel.find_idle``).
        """
        self.model.idle = ()
        self.rebuild(runs)
        self.model.find_idle(is_strict=is_strict)
        self.rebuild(runs)

    def _listed(self) -> Proposal | None:
        while self._first:
            configuration = self._first.pop(0)
            if configuration not in self._known:
                return Proposal(configuration, Origin.USER)
        return None

    def _isolated(self) -> Proposal | None:
        """Returns a configuration of one value that was set aside, everything else unset."""
        while self.failures.to_isolate:
            name, value = self.failures.to_isolate.pop(0)
            if (name, value) not in self.failures.aside or value is None:
                continue
            configuration = self.space.configuration({name: value})
            if configuration not in self._known and not self.space.check(configuration):
                return Proposal(configuration, Origin.ISOLATED)
        return None

    def is_open(self, configuration: Configuration) -> bool:
        """Whether a configuration is new and has no value that is set aside."""
        if configuration in self._known:
            return False
        return not self.failures.excludes(active_values(self.space, configuration))
