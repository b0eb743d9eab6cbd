#!/bin/bash
#SBATCH --job-name=commtune-7-3
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --time=0-00:25:00
#SBATCH --output=/scratch/me/block.out
#SBATCH --account=project_1
#SBATCH --partition=batch
#SBATCH --gres=gpu:8
#SBATCH --exclusive
# A job that Slurm starts a second time would measure a second time.
#SBATCH --no-requeue
# With any other value, Slurm runs the user's login profile, which takes a second per job.
#SBATCH --export=ALL

# A clean environment: from the scheduler and the site, without variables of the user's shell.
compgen -e >/dev/null || exit 3
for name in $(compgen -e); do
  case $name in
    # Of Slurm's variables, those that describe this job, not those that srun reads as options.
    SLURM_CLUSTER_NAME | SLURM_CONF | SLURM_CPUS_* | SLURM_GPUS* | SLURM_GTIDS | SLURM_JOB_* | \
      SLURM_JOBID | SLURM_JWT | SLURM_LOCALID | SLURM_MEM_PER_* | SLURM_NNODES | SLURM_NODE* | \
      SLURM_NPROCS | SLURM_NTASKS* | SLURM_PROCID | SLURM_RESTART_COUNT | SLURM_SHARDS* | \
      SLURM_SUBMIT_* | SLURM_TASK_PID | SLURM_TASKS_PER_NODE | SLURM_TOPOLOGY_* | \
      SLURM_TRES_PER_* | SLURM_WORKING_CLUSTER | SLURMD_*) ;;
    HOME | HOSTNAME | LOGNAME | PWD | SHELL | SHLVL | TMPDIR | USER | _) ;;
    CUDA_VISIBLE_DEVICES | GPU_DEVICE_ORDINAL | ROCR_VISIBLE_DEVICES | ZE_AFFINITY_MASK)
      [ -n "${SLURM_JOB_GPUS-}" ] || unset -v "$name" ;;
    # Protected variables keep hardware safe: they are kept, whoever set them.
    NCCL_NVLS_ENABLE) ;;
    NVSHMEM_DISABLE_NVLS) ;;
    TORCH_SYMM_MEM_DISABLE_MULTICAST) ;;
    *) unset -v "$name" ;;
  esac
done
for name in $(compgen -A function); do unset -f "$name"; done
unset -v name
export PATH=/usr/local/bin:/usr/bin:/bin
[ ! -r /etc/profile ] || . /etc/profile
commtune_now() {
  # In whole microseconds: the decimal separator depends on the locale.
  # Older versions of bash lack EPOCHREALTIME.
  commtune_time=${EPOCHREALTIME-$(date +%s%6N)}
  commtune_time=${commtune_time//[!0123456789]/}
  commtune_time=${commtune_time%??????}.${commtune_time: -6}
}
commtune_put() {
  printf '%s\n' "$2" >"$1.part" && mv -f -- "$1.part" "$1"
}
commtune_finish() {
  commtune_now
  commtune_put './finished' "$1 $commtune_started $commtune_time"
}
commtune_refused() {
  # OUTPUT: whether Slurm's controller gave srun no answer, so that nothing began; waits a while.
  # A controller that just came back may call a job that runs completing.
  grep -qsE -e '^srun: error: Unable to (confirm allocation|create step) .*: (Unable to contact|Socket timed out|Connection refused|Zero Bytes|Job/step already completing)' -- "$1" || return 1
  [ "$commtune_waited" -lt 600 ] || return 1
  sleep "$commtune_pause"
  commtune_waited=$((commtune_waited + commtune_pause))
  [ "$commtune_pause" -ge 16 ] || commtune_pause=$((2 * commtune_pause))
  commtune_put './waited' "$commtune_waited"
}
commtune_waited=0
commtune_pause=1
commtune_end_steps() {
  # An srun that was killed leaves its ranks, which would disturb the next run.
  for commtune_try in 1 2 3 4 5 6 7 8 9 10; do
    commtune_left=
    for commtune_step in $(squeue --noheader --steps --format=%i --jobs="$SLURM_JOB_ID"); do
      case $commtune_step in
        *.batch | *.extern) ;;
        *.*) commtune_left=1 && scancel "$commtune_step" ;;
      esac
    done
    [ -n "$commtune_left" ] || break
    sleep "$commtune_try"
  done
}
# Of two jobs for one block, the second measures nothing.
if ! mkdir -- './started' 2>/dev/null; then
  if [ -d './started' ]; then
    echo 'commtune: this block was already started; nothing is measured'
    exit 0
  fi
  printf 'commtune: nothing can be written in %s\n' '.' >&2
  exit 3
fi
commtune_now
commtune_started=$commtune_time
trap 'commtune_finish "$?"' EXIT
trap 'exit 143' TERM
commtune_nodes="SLURM_JOB_ID=${SLURM_JOB_ID-}
SLURM_JOB_NODELIST=${SLURM_JOB_NODELIST-}"
[ -z "${SLURM_TOPOLOGY_ADDR-}" ] || commtune_nodes="$commtune_nodes
SLURM_TOPOLOGY_ADDR=$SLURM_TOPOLOGY_ADDR
SLURM_TOPOLOGY_ADDR_PATTERN=${SLURM_TOPOLOGY_ADDR_PATTERN-}"
commtune_put './nodes' "$commtune_nodes"
# Ranks inherit the variables that this script sets.
export SLURM_EXPORT_ENV=ALL

while :; do
commtune_now
commtune_begin=$commtune_time
(
export NCCL_MIN_NCHANNELS='8'
exec -- timeout --signal=TERM --kill-after=10 '30' 'srun' --nodes=2 --ntasks=16 --ntasks-per-node=8 --mpi=pmix --kill-on-bad-exit=1 --export=ALL /home/me/bench
) </dev/null >'0.out' 2>&1
commtune_status=$?
commtune_now
[ "$commtune_status" -ne 0 ] && commtune_refused '0.out' || break
done
[ "$commtune_status" -ne 137 ] || commtune_end_steps
commtune_put '0.exit' "$commtune_status $commtune_begin $commtune_time" || exit 3

exit 0
