"""The daemons of a tests' cluster, and the orders that the process above them takes.

Orders come as lines on its standard input, each is answered by a line of JSON on its standard
output; when the input ends, so does the cluster.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import IO

import psutil
from slurm_config import NODES, Place
from slurm_nodes import Nodes, ends_with_us
from waiting import PATIENCE_S, wait_for


class Daemons(ABC):
    """Starts them; ends all of them and what they started."""

    def __init__(
        self, place: Place, nodes: Nodes, log: IO[bytes], environment: Mapping[str, str]
    ) -> None:
        self.place = place
        self.nodes = nodes
        self.environment = environment
        self._log = log

    @abstractmethod
    def start(self, daemon: str) -> None:
        """Starts a daemon, with all that it knew before, and waits until it answers."""

    @abstractmethod
    def stop(self, daemon: str) -> None:
        """Ends a daemon in order; jobs that run go on."""

    @abstractmethod
    def pause(self, daemon: str) -> None:
        """From now on a daemon takes questions and gives no answers."""

    @abstractmethod
    def resume(self, daemon: str) -> None:
        """A daemon goes on, also with what it was asked meanwhile."""

    @abstractmethod
    def revive(self, node: str) -> None:
        """A node that died is switched on."""

    def kill(self, node: str) -> None:
        """A node dies; the scheduler isn't told."""
        self.nodes.kill(node)

    def serve(self) -> None:
        """Obeys until there are no more orders."""
        orders = {
            "start": self.start,
            "stop": self.stop,
            "pause": self.pause,
            "resume": self.resume,
            "kill": self.kill,
            "revive": self.revive,
        }
        for line in sys.stdin:
            order, _, whom = line.strip().partition(" ")
            try:
                orders[order](whom)
            except Exception as error:  # whoever gave the order gets it
                answer(error=f"{line.strip()}: {error!r}")
            else:
                answer()

    def end_all(self) -> None:
        for node in NODES:
            self.nodes.kill(node)
        while found := self._living():
            for process in found:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            psutil.wait_procs(found, timeout=3)

    def _living(self) -> list[psutil.Process]:
        return psutil.Process().children(recursive=True)

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            arguments,
            env=self.environment,
            cwd=self.place.folder,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            preexec_fn=ends_with_us,
        )

    def _call(self, *arguments: str) -> None:
        done = self._run(*arguments)
        assert done.returncode == 0, f"{arguments}: {done.stdout}"

    def _until(self, *arguments: str, holds: str = "") -> None:
        def holds_now() -> bool:
            done = self._run(*arguments)
            return not done.returncode and holds in done.stdout

        wait_for(holds_now, f"{arguments} to say {holds!r}")

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            arguments,
            env=self.environment,
            cwd=self.place.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )


def answer(**words: object) -> None:
    print(json.dumps(words), flush=True)
