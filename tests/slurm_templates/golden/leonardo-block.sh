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
#SBATCH --exclude=lrdn[0001-0003]
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
module load 'openmpi' || exit 3
ulimit -s unlimited

(
export NOTE=$'a\012$(b)'
export UCX_RNDV_THRESH='inf'
exec -- 'srun' --nodes=2 --ntasks-per-node=4 --cpu-bind=sockets --export=ALL bash -c 'export UCX_NET_DEVICES='\''mlx5_'\''"$SLURM_LOCALID"'\'':1'\''; exec -- "$@"' rank /home/me/bench
) </dev/null >'0.out' 2>&1
commtune_status=$?
printf '%s\n' "$commtune_status" >'0.exit.part' &&
  mv -f -- '0.exit.part' '0.exit'

echo done
