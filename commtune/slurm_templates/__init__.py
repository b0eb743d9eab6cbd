"""Job scripts for Slurm: templates, and a renderer under which no value can run."""
