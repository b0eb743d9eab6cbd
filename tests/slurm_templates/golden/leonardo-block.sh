#!/bin/bash
#SBATCH --job-name=commtune-7-3
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --time=0-00:30:00
#SBATCH --output=/scratch/me/block.out
#SBATCH --account=project_1
#SBATCH --partition=boost_usr_prod
#SBATCH --qos=boost_qos_dbg
#SBATCH --gres=gpu:4
#SBATCH --mem=0
#SBATCH --exclusive
#SBATCH --exclude=lrdn0001,lrdn0003
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
# A background command beside a run. The last line of its output says how it ended; only if that
# says "to the end", it ran all the time.
commtune_beside_begin() {
  # OUTPUT STOP_FILE SIGN SECONDS COMMAND...: starts it, and waits for the sign in its output.
  commtune_beside_output=$1
  commtune_beside_stop=$2
  commtune_beside_sign=$3
  commtune_beside_limit=$4
  shift 4
  [ -z "$commtune_beside_stop" ] || rm -f -- "$commtune_beside_stop"
  : >"$commtune_beside_output"
  (exec -- timeout --kill-after=10 0 "$@") </dev/null >>"$commtune_beside_output" 2>&1 &
  commtune_beside=$!
  commtune_beside_since=$SECONDS
  [ -n "$commtune_beside_sign" ] || return 0
  until grep -qsF -e "$commtune_beside_sign" -- "$commtune_beside_output"; do
    if ! kill -0 "$commtune_beside" 2>/dev/null; then
      commtune_beside_over 'this ended before it began its work'
      return 1
    fi
    if [ "$((SECONDS - commtune_beside_since))" -ge "$commtune_beside_limit" ]; then
      commtune_beside_over "this did not begin its work within $commtune_beside_limit s"
      return 1
    fi
    sleep 0.05
  done
}
commtune_beside_over() {
  # [WORDS]: ends it, and writes the last line: these words, or by default how it ended.
  commtune_beside_words=${1-this was there to the end}
  if ! kill -0 "$commtune_beside" 2>/dev/null; then
    commtune_beside_words=${1-this ended before what it stood beside}
  elif [ -n "$commtune_beside_stop" ]; then
    : >"$commtune_beside_stop"
    for commtune_try in {1..100}; do
      sleep 0.05
      kill -0 "$commtune_beside" 2>/dev/null || break
    done
  fi
  kill -s TERM "$commtune_beside" 2>/dev/null
  wait "$commtune_beside"
  commtune_beside_status=$?
  # An srun that had to be killed leaves its ranks.
  [ "$commtune_beside_status" -ne 137 ] ||
    commtune_beside_words="$commtune_beside_words, and had to be killed"
  [ -z "$commtune_beside_stop" ] || rm -f -- "$commtune_beside_stop"
  printf 'commtune: %s\n' "$commtune_beside_words" >>"$commtune_beside_output"
}
# Ranks inherit the variables that this script sets.
export SLURM_EXPORT_ENV=ALL
module load 'openmpi' || exit 3
ulimit -s unlimited

commtune_status=125
if commtune_beside_begin '0.out.beside' '' '' '60' 'srun' noise; then
while :; do
commtune_now
commtune_begin=$commtune_time
(
export NOTE=$'a\012$(b)'
export UCX_RNDV_THRESH='inf'
exec -- timeout --signal=TERM --kill-after=10 '30' 'srun' --nodes=2 --ntasks=8 --ntasks-per-node=4 --cpu-bind=sockets --kill-on-bad-exit=1 --export=ALL bash -c 'export UCX_NET_DEVICES='\''mlx5_'\''"$SLURM_LOCALID"'\'':1'\''; exec -- "$@"' rank /home/me/bench
) </dev/null >'0.out' 2>&1
commtune_status=$?
commtune_now
[ "$commtune_status" -ne 0 ] && commtune_refused '0.out' || break
done
commtune_beside_over
else
commtune_now
commtune_begin=$commtune_time
fi
[ "$commtune_beside_status" -ne 137 ] || commtune_end_steps
[ "$commtune_status" -ne 137 ] || commtune_end_steps
commtune_put '0.exit' "$commtune_status $commtune_begin $commtune_time" || exit 3

echo done

exit 0
