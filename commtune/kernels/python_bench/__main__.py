"""``python -m commtune.kernels.python_bench``: the benchmark in Python (docs/own-benchmark.md)."""

from __future__ import annotations

import sys
import time

_BEGAN = time.perf_counter()

from commtune.kernels.python_bench.running import run_command  # noqa: E402  # the clock runs already

sys.exit(run_command(sys.argv, _BEGAN))
