"""``python -m commtune.kernels.python_bench``: the benchmark in Python (docs/own-benchmark.md)."""

from __future__ import annotations

import sys
import time

_BEGAN = time.perf_counter()

import commtune  # noqa: E402  # the clock runs already
from commtune.kernels.python_bench.faults import USAGE, UsageFault  # noqa: E402
from commtune.kernels.python_bench.layout import OPERATIONS  # noqa: E402
from commtune.kernels.python_bench.options import HELP, Options  # noqa: E402
from commtune.kernels.python_bench.running import exit_of_all, run_benchmark  # noqa: E402
from commtune.kernels.python_bench.world import speaks_for_all  # noqa: E402


def _main() -> int:
    """Reads the command line and does what it asks for."""
    try:
        options = Options.parse(sys.argv[1:])
    except UsageFault as fault:
        return exit_of_all(USAGE, str(fault), speak=speaks_for_all())
    if options.print == "help":
        print(HELP.format(operations=", ".join(OPERATIONS)), end="")
    elif options.print == "version":
        print(f"commtune-bench {commtune.__version__} (Python {sys.version.split()[0]})")
    else:
        return run_benchmark(options, [sys.argv[0], *sys.argv[1:]], _BEGAN)
    return 0


sys.exit(_main())
