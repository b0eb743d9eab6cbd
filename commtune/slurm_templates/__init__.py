"""Templates of job scripts for Slurm and PBS, and a renderer that never lets a value run."""
