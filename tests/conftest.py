"""Makes the helpers in tests/support/ importable from everywhere; settings for all tests."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

_SUPPORT = Path(__file__).parent / "support"
sys.path[:0] = [str(_SUPPORT / folder) for folder in ("", "slurm", "stored", "runs")]

from hypothesis import HealthCheck, settings  # noqa: E402
from postgresql_fixture import (  # noqa: E402
    migrated_postgresql,
    new_postgresql_url,
    postgresql_socket,
    postgresql_url,
)
from slurm_fixture import isolated_slurm, shared_slurm, slurm  # noqa: E402

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

__all__ = [
    "isolated_slurm",
    "migrated_postgresql",
    "new_postgresql_url",
    "postgresql_socket",
    "postgresql_url",
    "shared_slurm",
    "slurm",
]
