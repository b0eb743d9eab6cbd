"""Runs a program and moves its first thread to other cores all the time, 100 times a second.

On machines whose cores differ in speed from moment to moment (virtual ones, say), a program that
stays where it was started measures its core. One that is moved measures the mean of many, so that
fewer launches tell as much. Threads that the program starts stay near where it was at the time.

    mpirun -n 2 python benchmarks/roaming.py PROGRAM [argument...]

The program keeps this process; a child of it does the moving, and ends with it.
"""

from __future__ import annotations

import os
import random
import sys
import time

_INTERVAL_S = 0.01
#: Cores at a time.
_TOGETHER = 4


def _move(pid: int) -> None:
    """Until the process has ended."""
    cores = sorted(os.sched_getaffinity(0))
    groups = [cores[i : i + _TOGETHER] for i in range(0, len(cores), _TOGETHER)]
    chance = random.Random(pid)
    while os.getppid() == pid:
        try:
            os.sched_setaffinity(pid, chance.choice(groups))
        except ProcessLookupError:
            return
        time.sleep(_INTERVAL_S)


def main() -> None:
    """Forks the mover, then becomes the program."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    pid = os.getpid()
    if os.fork() == 0:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(nowhere, standard)
        os.closerange(3, 1024)
        _move(pid)
        os._exit(0)
    try:
        os.execvp(sys.argv[1], sys.argv[1:])
    except OSError as error:
        sys.exit(f"{sys.argv[1]}: {error.strerror}")


if __name__ == "__main__":
    main()
