"""PBS as a scheduler: its jobs, queue and nodes, and launchers in its jobs."""
