"""A program of one's own whose speed depends on a variable, and campaigns of it."""

from __future__ import annotations

import re

from command_line import SMALL, CommandLine

#: A program whose speed depends on a variable of a library that nobody has to know. The last
#: digits of the clock make it as uncertain as programs are.
STEP_PROGRAM = """\
case ${MYLIB_MODE:-unset} in
    fast) time=1.0$(date +%N | cut -c7-9)e-3 ;;
    broken) exit 7 ;;
    wrong) echo '{"bytes": 1, "time_s": 1e-9, "wrong": 1}'; exit 0 ;;
    *) time=2.0$(date +%N | cut -c7-9)e-3 ;;
esac
echo "step with $*"
echo "{\\"bytes\\": 1, \\"time_s\\": $time}"
"""
STEP_CAMPAIGN = """\
campaign: 1
name: step
space: ./space.yaml
mpi: wheel:mpich
benchmark: {command: [sh, step.sh, "{run_id}"], output: json-line, name: step}
workload: {ranks: 2, sizes: [1]}
budget: {search: 10min, ablation: 1s, confirmation: 5s, trials: 4}
run_time_limit: 60s
"""
MODES_SPACE = """\
space: 1
name: modes
library: mylib
parameters:
  - {name: MYLIB_MODE, kind: choice, values: [fast, slow, broken, wrong]}
"""
#: For tests that are not about MPI: a run takes a hundredth of what one of SMALL takes of a core.
ONE_RANK = (
    STEP_CAMPAIGN.replace("mpi: wheel:mpich\n", "")
    .replace("name: step\n", "name: small\n", 1)
    .replace("ranks: 2", "ranks: 1")
    .replace("confirmation: 5s, trials: 4", "confirmation: 1s, trials: 3")
)
#: The same with MPICH's variables and its launcher.
LAUNCHED = re.sub(
    r"workload:\n.*\ntiming: .*\n",
    'benchmark: {command: [sh, step.sh, "{run_id}"], output: json-line, name: step}\n'
    "workload: {ranks: 1, sizes: [1]}\n",
    SMALL,
)


def write_one_rank(line: CommandLine, run_s: float = 0.1, campaign: str = ONE_RANK) -> None:
    """Writes such a campaign, all of whose runs work and sleep for a while."""
    line.write(f"sleep {run_s:g}\n{STEP_PROGRAM}", "step.sh")
    line.write(MODES_SPACE.replace("broken, wrong", "slower, slowest"), "space.yaml")
    line.write(campaign)
