"""What a machine does to a benchmark: a script that meets it, and the words that name it."""

from __future__ import annotations

import os

#: As a user of whom no process is left; tests that run as another one have processes already.
_AS_NOBODY = "setpriv --reuid=54321 --clear-groups " if os.geteuid() == 0 else ""
_FULL = "a disk is full: .*: No space left on device"

#: The script, and a regular expression of what is said of its run.
MACHINE_FAULTS = {
    "full disk": ("head -c9 /dev/zero >/dev/full", _FULL),
    # Programs that don't look whether they could print end well, without a table.
    "full disk, exit 0": ("head -c9 /dev/zero >/dev/full; exit 0", _FULL),
    "limit on processes": (
        _AS_NOBODY + "prlimit --nproc=1:1 sh -c 'true & wait; true'",
        "no process can be started: .*Cannot fork",
    ),
    "stale handle": (
        "echo 'cat: /home/me/in: Stale file handle' >&2",
        "a file system failed: .*: Stale file handle",
    ),
    "read-only": (
        "echo 'OSError: [Errno 30] Read-only file system' >&2",
        "a file system failed: .*Read-only file system",
    ),
    "open files of all": (
        "echo 'sh: /dev/null: Too many open files in system' >&2",
        "too many files are open: .*",
    ),
    "missing program": (
        "/nowhere/program",
        "a program is missing .status 127.: .*/nowhere/program.*",
    ),
    "missing script": ("sh /nowhere/script", "a program is missing: .*/nowhere/script.*"),
    "no right to execute": ("/usr", "a program can't be executed .status 126.: .*denied"),
}
