"""Makes the helpers in tests/support/ importable from everywhere; settings for all tests."""

from __future__ import annotations

import sys
from pathlib import Path

_SUPPORT = Path(__file__).parent / "support"
sys.path[:0] = [str(_SUPPORT / folder) for folder in ("", "slurm", "stored", "runs")]

from hypothesis import HealthCheck, settings  # noqa: E402
from slurm_fixture import isolated_slurm, shared_slurm, slurm  # noqa: E402

# Whether a test fails must depend neither on chance nor on what else the machine does.
settings.register_profile(
    "same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("same")

__all__ = ["isolated_slurm", "shared_slurm", "slurm"]
