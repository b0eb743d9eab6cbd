"""Search spaces: environment variables with their domains, conditions, constraints and risks."""
