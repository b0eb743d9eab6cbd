"""A clock that differs from this machine's, for processes in whose LD_PRELOAD it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

_CLOCK = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(id, now);
    if (!failed && id == CLOCK_REALTIME) now->tv_sec += AHEAD_S;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec found;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &found);
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *where)
{
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (where) *where = found.tv_sec;
    return found.tv_sec;
}
"""


def build_clock(folder: Path, *, ahead_s: int) -> Path:
    """Builds a library that sets the clock of a process ahead, seconds; returns its path."""
    library = folder / f"clock{ahead_s}.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", f"-DAHEAD_S={ahead_s}", f"-o{library}", "-xc", "-", "-ldl"],
        input=_CLOCK,
        text=True,
        check=True,
    )
    return library
