#!/bin/bash
#SBATCH --job-name=commtune-7-3
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --time=0-01:00:00
#SBATCH --output=/scratch/me/block.out
#SBATCH --account=project_1
#SBATCH --partition=standard-g
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
# A job that Slurm starts a second time would measure a second time.
#SBATCH --no-requeue
# Everything but ALL makes Slurm run the user's login profile, which costs a second a job.
#SBATCH --export=ALL

# A clean base: what Slurm sets and what the site gives everybody, nothing of the user's shell.
compgen -e >/dev/null || exit 3
for name in $(compgen -e); do
  case $name in
    SLURM_* | SLURMD_* | HOME | HOSTNAME | LOGNAME | PWD | SHELL | SHLVL | TMPDIR | USER | _) ;;
    CUDA_VISIBLE_DEVICES | GPU_DEVICE_ORDINAL | ROCR_VISIBLE_DEVICES | ZE_AFFINITY_MASK)
      [ -n "${SLURM_JOB_GPUS-}" ] || unset -v "$name" ;;
    *) unset -v "$name" ;;
  esac
done
for name in $(compgen -A function); do unset -f "$name"; done
unset -v name
export PATH=/usr/local/bin:/usr/bin:/bin
[ ! -r /etc/profile ] || . /etc/profile
# What this script sets reaches the ranks.
export SLURM_EXPORT_ENV=ALL
export MPICH_GPU_SUPPORT_ENABLED='1'

(
exec -- 'srun' --nodes=2 --ntasks-per-node=8 --cpu-bind=map_cpu:49,57,17,25,1,9,33,41 --export=ALL bash -c 'export ROCR_VISIBLE_DEVICES="$SLURM_LOCALID"; exec -- "$@"' rank /home/me/bench --op allreduce
) </dev/null >'/scratch/me/a night'\''s campaign/0.out' 2>&1
commtune_status=$?
printf '%s\n' "$commtune_status" >'/scratch/me/a night'\''s campaign/0.exit.part' &&
  mv -f -- '/scratch/me/a night'\''s campaign/0.exit.part' '/scratch/me/a night'\''s campaign/0.exit'
(
export FI_CXI_RDZV_THRESHOLD='16384'
export MPICH_OFI_NIC_POLICY='GPU'
exec -- 'srun' --nodes=2 --ntasks-per-node=8 --cpu-bind=map_cpu:49,57,17,25,1,9,33,41 --export=ALL bash -c 'export ROCR_VISIBLE_DEVICES="$SLURM_LOCALID"; exec -- "$@"' rank /home/me/bench --op allreduce
) </dev/null >'/scratch/me/a night'\''s campaign/1.out' 2>&1
commtune_status=$?
printf '%s\n' "$commtune_status" >'/scratch/me/a night'\''s campaign/1.exit.part' &&
  mv -f -- '/scratch/me/a night'\''s campaign/1.exit.part' '/scratch/me/a night'\''s campaign/1.exit'
