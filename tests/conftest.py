"""Makes the helpers in tests/support/ importable from everywhere; settings for all tests."""

from __future__ import annotations

import fcntl
import gc
import os
import signal
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import platformdirs
import pytest

# As campaigns compute, and before NumPy is loaded: on a busy machine, BLAS threads that wait for
# each other take many times as long as one.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Where `make .mpi/mpich` installs wheels.
os.environ.setdefault("COMMTUNE_MPI_PATH", str(Path(__file__).parents[1] / ".mpi"))

_SUPPORT = Path(__file__).parent / "support"
sys.path[:0] = [
    str(_SUPPORT / folder) for folder in ("", "campaigns", "slurm", "pbs", "stored", "runs")
]

from hypothesis import HealthCheck, settings  # noqa: E402
from made_files import no_umask, open_folder  # noqa: E402
from mpi_fixture import executable, mpi, shared_cache  # noqa: E402
from pbs_fixture import pbs, shared_pbs  # noqa: E402
from postgresql_fixture import (  # noqa: E402
    migrated_postgresql,
    new_postgresql_url,
    own_postgresql,
    postgresql_socket,
    postgresql_url,
)
from slurm_fixture import isolated_slurm, shared_slurm, slurm  # noqa: E402
from stores import store, url  # noqa: E402

from commtune.errors import NO_ROOM  # noqa: E402
from commtune.private_files import make_private_folder  # noqa: E402

# Whether a test fails must depend neither on chance nor on what else the machine does.
settings.register_profile(
    "same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("same")

# What a script starts with '&' or nohup ignores these, and all that it starts does so as well:
# programs that tests interrupt would never hear of it. What is handled is not inherited.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)


def pytest_sessionstart() -> None:
    """Says once that the benchmark can't be built, where hundreds of tests would fail."""
    cache = platformdirs.user_cache_path("commtune")
    try:
        make_private_folder(cache)
        with tempfile.TemporaryFile(dir=cache) as file:
            file.write(bytes(4096))
    except OSError as error:
        if error.errno in NO_ROOM:
            mend = "free some space, or set XDG_CACHE_HOME to another folder"
            pytest.exit(f"{cache}: {error.strerror}; tests build there: {mend}", returncode=3)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collects tests without looking for garbage, of which there is little: a sixth faster."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Groups tests that share something in one worker, before xdist reads the groups."""
    if "end_to_end" in item.path.parts:
        item.add_marker(pytest.mark.slow)
    item.add_marker(pytest.mark.xdist_group(_group_of(item)))


def _group_of(item: pytest.Item) -> str:
    if _is_alone(item):
        return "alone"
    # One cluster for all: to start and end one takes seconds of processor time.
    if "shared_slurm" in getattr(item, "fixturenames", ()):
        return "slurm"
    return item.path.stem


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begins with whole campaigns, which take longest; ends with what all workers wait for."""
    items.sort(key=lambda item: (_is_alone(item), item.get_closest_marker("slow") is None))


def _is_alone(item: pytest.Item) -> bool:
    return item.get_closest_marker("alone") is not None


@pytest.hookimpl(wrapper=True, tryfirst=True)  # before a test's time limit begins
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Lets tests marked ``alone`` wait for those of other workers, which wait for them."""
    # Any two files that all workers know.
    with Path(__file__).open() as queue, (_SUPPORT / "command_line.py").open() as running:
        # Who wants to be alone keeps the queue while others end; else they would never all end.
        fcntl.flock(queue, fcntl.LOCK_EX)
        fcntl.flock(running, fcntl.LOCK_EX if _is_alone(item) else fcntl.LOCK_SH)
        fcntl.flock(queue, fcntl.LOCK_UN)
        return (yield)


__all__ = [
    "executable",
    "isolated_slurm",
    "migrated_postgresql",
    "mpi",
    "new_postgresql_url",
    "no_umask",
    "open_folder",
    "own_postgresql",
    "pbs",
    "postgresql_socket",
    "postgresql_url",
    "shared_cache",
    "shared_pbs",
    "shared_slurm",
    "slurm",
    "store",
    "url",
]
