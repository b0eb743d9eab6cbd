"""Small campaigns on clusters; on a cluster of PBS's, ``pbs`` comes in the place of ``slurm``.

A search ends with its trials, or with its first job, however long these take; only a run that
hangs is over its time.
"""

from __future__ import annotations

#: Two nodes, a rank on each; a run takes about a fifth of a second.
TWO_NODES = """\
campaign: 1
name: small
space: mpich-host-allreduce
mpi: wheel:mpich
workload: {nodes: 2, ranks: 2, sizes: [8, 64KiB]}
timing: {max_samples: 10, time_cap: 2ms}
budget: {search: 10min, ablation: 10ms, confirmation: 1s, trials: 2}
run_time_limit: 60s
narrow:
  MPIR_CVAR_DEVICE_COLLECTIVES: [all]
  MPIR_CVAR_ALLREDUCE_POSIX_INTRA_ALGORITHM: [mpir]
slurm: {mpi: pmi2, poll: 0.3s, late_files: 3s}
"""
#: The first job of a folder lasts a second, which is more than a search of 100 ms may take: Slurm
#: counts whole seconds, and a job that began and ended within one of them took none.
_A_SECOND = 'test -e "$HOME/began" || { sleep 1; touch "$HOME/began"; }'
#: Jobs wait at a gate before their first run, if there is one.
_BEFORE = f'{_A_SECOND}; while [ -e "$HOME/gate" ]; do sleep 0.05; done'
#: A job of four runs of the default, and nothing else.
ONE_BLOCK = TWO_NODES.replace("search: 10min", "search: 100ms").replace(
    "poll: 0.3s", f"poll: 0.3s, before: '{_BEFORE}'"
)
#: A job of four runs of the default, one of one configuration, traces of both, and seven jobs that
#: compare the two, several of them in flight.
ONE_CANDIDATE = f"""\
campaign: 1
name: small
space: mpich-host-allreduce
mpi: wheel:mpich
workload: {{nodes: 2, ranks: 2, sizes: [8, 64KiB]}}
timing: {{max_samples: 10, time_cap: 2ms}}
budget: {{search: 100ms, ablation: 10ms, confirmation: 1s}}
run_time_limit: 60s
first: [{{MPIR_CVAR_DEVICE_COLLECTIVES: none}}]
narrow: {{MPIR_CVAR_DEVICE_COLLECTIVES: [none]}}
slurm:
  mpi: pmi2
  poll: 0.3s
  late_files: 3s
  before: {_BEFORE}
"""


def with_long_runs(text: str, seconds: float) -> str:
    """The campaign with runs that take this long or twice as long."""
    timing = f"{{max_samples: 100000, time_cap: {seconds}s, relative_ci: 0}}"
    return text.replace("{max_samples: 10, time_cap: 2ms}", timing)


def with_run_limit(text: str, limit: str) -> str:
    """The campaign with runs that may take so long."""
    return text.replace("run_time_limit: 60s", f"run_time_limit: {limit}")
