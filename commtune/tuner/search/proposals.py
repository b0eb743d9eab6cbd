"""Which configuration to try next: listed ones, suspects alone, then what the strategy says."""

from __future__ import annotations

from collections.abc import Sequence

from commtune.model import DEFAULT, Configuration
from commtune.tuner.search.failures import Failures, Item
from commtune.tuner.search.model import TableModel
from commtune.tuner.search.standings import Speedups
from commtune.tuner.search.strategies.strategy import Origin, Proposal, Strategy, active_values

#: Failures before these are forgotten by the model, not by what is set aside.
_MOST_FAILED = 100


class Search:
    """Asks for configurations of a space; is told how they did.

    Laws: ``ask`` never returns a configuration that was asked for or known before, nor one that
    the space forbids, nor one with a value that was set aside; ``None`` means that the space has
    nothing left.

    Args:
        model: takes in what is told, before the strategy does.
        first: configurations to try before all others (site settings).
    """

    def __init__(
        self, model: TableModel, strategy: Strategy, first: Sequence[Configuration] = ()
    ) -> None:
        self.space = model.encoding.space
        self.model = model
        self.failures = Failures()
        self._strategy = strategy
        self._known: set[Configuration] = {DEFAULT}
        self._first = list(first)

    def remember(self, configuration: Configuration) -> None:
        """Marks a configuration as known, so that it is not proposed."""
        self._known.add(configuration)

    def ask(self) -> Proposal | None:
        """The next configuration to try, or ``None`` when nothing is left."""
        proposal = self._listed() or self._isolated() or self._strategy.ask(self.is_open)
        if proposal is not None:
            self._known.add(proposal.configuration)
            self._strategy.wait_for(proposal.configuration)
        return proposal

    def worked(self, configuration: Configuration, session: str) -> set[Item]:
        """A run succeeded; the score of an earlier one comes with ``rebuild``.

        Returns the values that were set aside before, and come back.
        """
        if configuration.is_default:
            self.failures.default_worked(session)
        return self.failures.succeeded(active_values(self.space, configuration))

    def tell(self, configuration: Configuration, speedups: Speedups, session: str) -> set[Item]:
        """A run succeeded, with these log speedups; returns as ``worked``."""
        self.model.add([(configuration, speedups)])
        if not configuration.is_default:
            self._strategy.tell(configuration, speedups)
        return self.worked(configuration, session)

    def tell_failed(self, configuration: Configuration, session: str) -> set[Item]:
        """A run failed through its configuration; returns values that are set aside for it."""
        self.model.add_failed(configuration)
        self._strategy.tell_failed(configuration)
        return self.failures.failure(active_values(self.space, configuration), session)

    def default_failed(self, session: str) -> list[Configuration]:
        """Takes back the failures of a session (until ``rebuild``, the strategy knows them still).

        Returns whose they were.
        """
        back = self.failures.default_failed(session)
        return [self.space.configuration(assignment) for assignment in back]

    def is_doubted(self, session: str) -> bool:
        """Whether the default failed last in a session: no failure counts there."""
        return self.failures.is_doubted(session)

    def failed_once(self, configuration: Configuration) -> bool:
        """Whether one run of a configuration failed, and no other."""
        return self.failures.failed.count(active_values(self.space, configuration)) == 1

    def forget(self, configuration: Configuration) -> None:
        """A run was lost: nothing is known of the configuration, and nobody waits for it."""
        self._strategy.forget(configuration)

    def rebuild(self, runs: Sequence[tuple[Configuration, Speedups]]) -> None:
        """Puts all runs so far in the place of what was told."""
        self.model.forget_all()
        self.model.add(runs)
        for failed in self.failures.failed[-_MOST_FAILED:]:
            self.model.add_failed(self.space.configuration(failed))
        tried = [run for run in runs if not run[0].is_default]
        self._strategy.rebuild(tried, self.failures.failed)

    def leave_out_idle(
        self, runs: Sequence[tuple[Configuration, Speedups]], *, is_last_test: bool
    ) -> None:
        """As ``rebuild``; parameters that these runs don't speak for count as unset from then.

        Args:
            is_last_test: no ablation follows.
        """
        self.model.idle = ()
        self.rebuild(runs)
        self.model.find_idle(is_last_test=is_last_test)
        self.rebuild(runs)

    def _listed(self) -> Proposal | None:
        while self._first:
            configuration = self._first.pop(0)
            if configuration not in self._known:
                return Proposal(configuration, Origin.USER)
        return None

    def _isolated(self) -> Proposal | None:
        """A suspected value alone, everything else as the default has it."""
        while self.failures.unclear:
            name, value = self.failures.unclear.pop(0)
            if (name, value) not in self.failures.aside or value is None:
                continue
            configuration = self.space.configuration({name: value})
            if configuration not in self._known and not self.space.check(configuration):
                return Proposal(configuration, Origin.ISOLATED)
        return None

    def is_open(self, configuration: Configuration) -> bool:
        """Whether it is new, and free of what was set aside."""
        if configuration in self._known:
            return False
        return not self.failures.blocks(active_values(self.space, configuration))
