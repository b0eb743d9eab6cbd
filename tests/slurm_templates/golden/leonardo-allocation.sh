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
# A requeued job appends to its output.
#SBATCH --open-mode=append
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
# Ranks inherit the variables that this script sets.
export SLURM_EXPORT_ENV=ALL
module load 'openmpi' || exit 3
ulimit -s unlimited

# Passes signals to the controller: the warning before the time limit, and the job's cancellation.
(exec -- 'commtune' tune 'my campaign.yaml') &
commtune_controller=$!
trap 'commtune_asked=1; kill -s USR1 "$commtune_controller"' USR1
trap 'commtune_asked=1; kill -s TERM "$commtune_controller"' TERM
while :; do
  commtune_asked=
  wait "$commtune_controller"
  commtune_status=$?
  # A signal interrupts the wait, not the controller.
  [ -n "$commtune_asked" ] && [ "$commtune_status" -gt 128 ] || break
done

echo done
exit "$commtune_status"
