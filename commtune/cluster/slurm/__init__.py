"""What Slurm says: states of jobs, the queue, accounting, and where a job's nodes stand."""
