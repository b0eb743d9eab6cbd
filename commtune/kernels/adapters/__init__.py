"""Users' own commands as benchmarks, with measurements from their output."""
