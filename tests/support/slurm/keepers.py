"""Clusters whose daemons run below a process of their own, which is told to hurt them."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, ClassVar

from waiting import PATIENCE_S

#: What undoes an order to the keeper.
_MENDS = {"stop": "start", "pause": "resume", "kill": "revive"}


@contextmanager
def running_keeper(program: Sequence[str], log: IO[Any]) -> Iterator[subprocess.Popen[str]]:
    """Starts it, to take orders by its input; it ends, with its daemons, when that is closed."""
    keeper = subprocess.Popen(
        program,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        start_new_session=True,
    )
    try:
        yield keeper
    finally:
        with keeper:
            with suppress(OSError, subprocess.TimeoutExpired):
                keeper.communicate(timeout=PATIENCE_S)
            keeper.kill()


class KeptCluster:
    """A running cluster.

    Attributes:
        folder: all its files.
        started: what its keeper said once it was up.
    """

    #: The scheduler's server.
    controller: ClassVar[str]

    def __init__(self, folder: Path, keeper: subprocess.Popen[str], log: Path) -> None:
        self.folder = folder
        self._keeper = keeper
        self._log = log
        self._orders = threading.Lock()
        self._to_mend: set[str] = set()
        self.started = self._answer()

    def stop_controller(self) -> None:
        """Ends the server; jobs that run go on."""
        self._order(f"stop {self.controller}")

    def start_controller(self) -> None:
        """Starts it again, with all that it knew."""
        self._order(f"start {self.controller}")

    def pause_controller(self) -> None:
        """From now on the server takes questions, and answers them when it goes on: too late."""
        self._order(f"pause {self.controller}")

    def resume_controller(self) -> None:
        """It goes on: jobs of which nobody who submitted them had an answer appear."""
        self._order(f"resume {self.controller}")

    def on_nodes(self, command: str) -> None:
        """Types a command on all nodes, as root."""
        # Imported here: psutil isn't installed everywhere that this module is imported.
        from slurm_nodes import type_on_nodes

        type_on_nodes(self.folder, command)

    def _order(self, order: str) -> None:
        """Gives the keeper an order; what would undo it is noted."""
        with self._orders:
            assert self._keeper.stdin
            self._keeper.stdin.write(f"{order}\n")
            self._keeper.stdin.flush()
            answer = self._answer()
        assert "error" not in answer, answer["error"]
        verb, _, whom = order.partition(" ")
        self._to_mend.discard(order)
        if verb in _MENDS:
            self._to_mend.add(f"{_MENDS[verb]} {whom}")

    def _answer(self) -> dict[str, object]:
        assert self._keeper.stdout
        line = self._keeper.stdout.readline()
        if not line:
            log = self._log.read_text(errors="replace")
            raise AssertionError(f"the cluster did not start, or ended: {log[-4000:]}")
        answer: dict[str, object] = json.loads(line)
        return answer
