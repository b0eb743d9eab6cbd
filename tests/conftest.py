"""Makes the helpers in tests/ importable from every folder below it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from slurm_fixture import isolated_slurm, shared_slurm, slurm

__all__ = ["isolated_slurm", "shared_slurm", "slurm"]
