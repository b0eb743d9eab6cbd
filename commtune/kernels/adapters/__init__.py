"""A user's own command as the benchmark: what it prints becomes measurements."""
