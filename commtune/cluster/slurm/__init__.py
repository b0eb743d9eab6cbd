"""Slurm as a scheduler: its jobs, queue, accounting, and nodes' places in the network."""
