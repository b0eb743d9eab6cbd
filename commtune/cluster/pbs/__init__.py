"""What PBS says: states of jobs, the queue, nodes, and what starts ranks in its jobs."""
