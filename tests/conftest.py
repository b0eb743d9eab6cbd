"""Makes the helpers in tests/ importable from every folder below it; settings for all tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from hypothesis import HealthCheck, settings
from slurm_fixture import isolated_slurm, shared_slurm, slurm

# Whether a test fails must depend neither on chance nor on what else the machine does.
settings.register_profile(
    "same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("same")

__all__ = ["isolated_slurm", "shared_slurm", "slurm"]
