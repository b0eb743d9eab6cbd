"""A program of one's own whose speed depends on a variable, and a campaign of it."""

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
