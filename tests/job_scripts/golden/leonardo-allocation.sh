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
#SBATCH --signal=B:USR1@120
# A job that is requeued goes on printing where it was.
#SBATCH --open-mode=append
# A job that Slurm starts a second time would measure a second time.
#SBATCH --no-requeue
# Everything but ALL makes Slurm run the user's login profile, which costs a second a job.
#SBATCH --export=ALL

# A clean base: what the scheduler sets and the site gives everybody, nothing of the user's shell.
compgen -e >/dev/null || exit 3
for name in $(compgen -e); do
  case $name in
    # Of Slurm's, what describes this job; not what srun takes for options.
    SLURM_CLUSTER_NAME | SLURM_CONF | SLURM_CPUS_* | SLURM_GPUS* | SLURM_GTIDS | SLURM_JOB_* | \
      SLURM_JOBID | SLURM_JWT | SLURM_LOCALID | SLURM_MEM_PER_* | SLURM_NNODES | SLURM_NODE* | \
      SLURM_NPROCS | SLURM_NTASKS* | SLURM_PROCID | SLURM_RESTART_COUNT | SLURM_SHARDS* | \
      SLURM_SUBMIT_* | SLURM_TASK_PID | SLURM_TASKS_PER_NODE | SLURM_TOPOLOGY_* | \
      SLURM_TRES_PER_* | SLURM_WORKING_CLUSTER | SLURMD_*) ;;
    HOME | HOSTNAME | LOGNAME | PWD | SHELL | SHLVL | TMPDIR | USER | _) ;;
    CUDA_VISIBLE_DEVICES | GPU_DEVICE_ORDINAL | ROCR_VISIBLE_DEVICES | ZE_AFFINITY_MASK)
      [ -n "${SLURM_JOB_GPUS-}" ] || unset -v "$name" ;;
    # Set to keep hardware safe: they stay, whoever set them.
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
# What this script sets reaches the ranks.
export SLURM_EXPORT_ENV=ALL
module load 'openmpi' || exit 3
ulimit -s unlimited

# The controller gets the warning before the time limit, and the end if somebody cancels the job.
(exec -- 'commtune' tune 'my campaign.yaml') &
commtune_controller=$!
trap 'commtune_asked=1; kill -s USR1 "$commtune_controller"' USR1
trap 'commtune_asked=1; kill -s TERM "$commtune_controller"' TERM
while :; do
  commtune_asked=
  wait "$commtune_controller"
  commtune_status=$?
  # A signal ends the wait, not the controller.
  [ -n "$commtune_asked" ] && [ "$commtune_status" -gt 128 ] || break
done

echo done
exit "$commtune_status"
